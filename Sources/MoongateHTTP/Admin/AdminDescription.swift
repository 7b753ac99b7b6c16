import Hummingbird
import MoongateCore

/// `GET /openapi.json` of the admin listener: OpenAPI 3.1 of its calls, written from the endpoints themselves.
struct AdminDescription: Sendable {
  private let document: [UInt8]

  /// - Parameter endpoints: all of the listener's; those without a description are files of its pages.
  init(describing endpoints: [Endpoint]) {
    let info = OpenAPIDocument(
      title: "Moongate admin listener",
      description: """
        For operators and their programs. Where gateway.lua names tokens, every call but /healthz and /readyz carries one of them; \
        a token with the role read is refused by calls that change something.
        """, tags: Operation.Tag.ofAdmin, security: "token",
      schemas: Array(Components.admin) + Array(Components.export)
        + Components.tokens.filter { $0.key == "PersonalToken" }
        + Components.schemas.filter { $0.key == "Problem" || $0.key == "Ignored" },
      lists: ["EventKind": AuditEvent.Kind.allCases.map(\.rawValue).sorted()], refusals: Operation.adminRefusals,
      everyCallNeedsToken: true)
    document =
      info.document(of: endpoints + [Self.endpoint { _ throws(Refusal) in .nothing }]).bytes + [UInt8(ascii: "\n")]
  }

  var endpoints: [Endpoint] {
    [Self.endpoint { [document] _ throws(Refusal) in .plain(.ok, type: "application/json", document) }]
  }

  private static func endpoint(_ handle: @escaping @Sendable (Exchange) async throws(Refusal) -> Response) -> Endpoint {
    Endpoint(.call, .get, "/openapi.json", .adminOpenAPI, handle: handle)
  }
}
