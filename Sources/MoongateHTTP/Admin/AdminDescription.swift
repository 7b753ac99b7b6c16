import MoongateCore

/// `GET /openapi.json` of the admin listener: an OpenAPI 3.1 document that is generated from the endpoints.
struct AdminDescription: Sendable {
  let endpoints: [Endpoint]

  /// - Parameter others: all other endpoints of the listener. Those without a description are pages.
  init(describing others: [Endpoint]) {
    let info = OpenAPIDocument(
      title: "Moongate admin listener",
      description: """
        For operators and their programs. If gateway.lua defines tokens, every call except /healthz and /readyz must carry one; \
        calls that change something refuse a token with the role read.
        """, tags: Operation.Tag.ofAdmin, security: "token",
      schemas: Array(Components.admin) + Array(Components.export)
        + Components.tokens.filter { $0.key == "PersonalToken" }
        + Components.schemas.filter { $0.key == "Problem" || $0.key == "Ignored" },
      lists: ["EventKind": AuditEvent.Kind.allCases.map(\.rawValue).sorted()], refusals: Operation.adminRefusals,
      everyCallNeedsToken: true)
    endpoints = [info.endpoint(.adminOpenAPI, describing: others)]
  }
}
