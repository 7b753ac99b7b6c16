import MoongateCore

/// `GET /api/auth/openapi.json`: an OpenAPI 3.1 document of the API that is generated from the endpoints.
struct OpenAPICall: Sendable {
  let endpoints: [Endpoint]

  /// - Parameters:
  /// - others: all other endpoints of the gateway. Those without a description do not belong to the API.
  /// - regions: the valid country codes.
  /// - events: the names of client events.
  init(describing others: [Endpoint], regions: [String], events: [String]) {
    let info = OpenAPIDocument(
      title: "Moongate",
      description:
        "Sign-in by steps. Every refusal is application/problem+json (RFC 9457) with a code; its decision_id names it to the operator.",
      tags: Operation.Tag.ofAPI, security: "session",
      schemas: Array(Components.schemas) + Array(Components.export) + Array(Components.tokens),
      lists: ["Region": regions, "ClientEventName": events])
    endpoints = [info.endpoint(.openAPI, servesAllDomains: true, describing: others)]
  }
}
