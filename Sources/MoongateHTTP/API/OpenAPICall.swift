import MoongateCore

/// `GET /api/auth/openapi.json`: an OpenAPI 3.1 document of the API that is generated from the endpoints.
struct OpenAPICall: Sendable {
  let endpoints: [Endpoint]

  /// - Parameters:
  /// - others: all other endpoints of the API.
  /// - regions: the valid country codes.
  /// - more: schemas that only some of the endpoints use.
  init(describing others: [Endpoint], regions: [String], schemas more: [(key: String, value: JSONValue)]) {
    let tags = others.compactMap(\.operation?.tag).reduce(into: Operation.Tag.ofAPI) { tags, tag in
      if !tags.contains(tag) { tags.append(tag) }
    }
    let info = OpenAPIDocument(
      title: "Moongate",
      description:
        "Sign-in by steps. Every refusal is application/problem+json (RFC 9457) with a code; its decision_id names it to the operator.",
      tags: tags, security: "session",
      schemas: Array(Components.schemas) + Array(Components.export) + Array(Components.tokens) + more,
      lists: ["Region": regions])
    endpoints = [info.endpoint(.openAPI, servesAllDomains: true, describing: others)]
  }
}
