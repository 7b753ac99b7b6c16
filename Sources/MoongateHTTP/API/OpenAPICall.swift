import Hummingbird
import MoongateCore

/// `GET /api/auth/openapi.json`: an OpenAPI 3.1 document of the API that is generated from the endpoints.
struct OpenAPICall: Sendable {
  private let document: [UInt8]

  /// - Parameters:
  /// - endpoints: all endpoints of the gateway. Those without a description do not belong to the API.
  /// - regions: the valid country codes.
  /// - events: the names of client events.
  init(describing endpoints: [Endpoint], regions: [String], events: [String]) {
    let info = OpenAPIDocument(
      title: "Moongate",
      description:
        "Sign-in by steps. Every refusal is application/problem+json (RFC 9457) with a code; its decision_id names it to the operator.",
      tags: Operation.Tag.ofAPI, security: "session",
      schemas: Array(Components.schemas) + Array(Components.export) + Array(Components.tokens),
      lists: ["Region": regions, "ClientEventName": events])
    document =
      info.document(of: endpoints + [Self.endpoint { _ throws(Refusal) in .nothing }]).bytes + [UInt8(ascii: "\n")]
  }

  var endpoints: [Endpoint] {
    [Self.endpoint { [document] _ throws(Refusal) in .plain(.ok, type: "application/json", document) }]
  }

  private static func endpoint(_ handle: @escaping @Sendable (Exchange) async throws(Refusal) -> Response) -> Endpoint {
    Endpoint(.call, .openAPI, servesAllDomains: true, handle: handle)
  }
}
