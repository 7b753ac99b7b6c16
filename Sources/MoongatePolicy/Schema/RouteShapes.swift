import MoongateCore
import MoongateSDK

/// The tables of routes.lua.
extension TableShape {
  static let route = TableShape(
    name: "Route",
    summary:
      "A route: which requests it matches, their upstream and their requirements. The first matching route applies.",
    entries: matching + access + service + [
      .optional("timeout", "moongate.Duration", Entry.durationKind, .text("30s")),
      .optional("websocket", "boolean", "true or false", .flag(false)),
      .optional("service_worker", "boolean", "true or false", .flag(false)),
      .optional(
        "headers", "table<string, string>",
        "request headers to set for the upstream, as in { [\"X-Tenant\"] = \"demo\" }"),
      .optional(
        "response_headers", "table<string, string|false>",
        "headers of the service's responses to set, or to remove with false, as in { [\"Server\"] = false }"),
      .optional("body", "string", "a size, such as \"64MiB\""),
      .optional("body_rate", "string|false", Entry.bodyRateKind),
      .optional(
        "rate", "moongate.RouteRate",
        "how many requests the route accepts, as in { \"100/s\", per = \"account\" }"),
      .optional(
        "frames", "string[]",
        "the origins of other sites that may show the route in a frame, as in { \"https://portal.example.com\" }"),
      .optional(
        "error_pages", "string",
        "the folder below pages/ with the templates of refusals on this route, such as \"errors\""),
    ])

  /// Which requests a route matches, and where it sends them.
  private static let matching: [Entry] = [
    .optional("host", "string", "a host, such as \"wallet.example.com\""),
    .required("path", "string", "a pattern, such as \"/pay/**\""),
    .optional("methods", "string[]", "a list, such as { \"GET\", \"POST\" }"),
    .optional(
      "encoded", Entry.list(of: EncodedPathWord.allCases.map(\.rawValue)),
      "what the route passes on and others refuse: `slash` for %2F, `backslash` for %5C, `empty` for //"),
    .required("to", "string|string[]", "an upstream, such as \"http://127.0.0.1:3000\""),
    .optional(
      "strip", "string", "the beginning of the path that is removed before it is sent on, such as \"/wiki\""),
    .optional(
      "host_header", "string",
      "the Host that the service receives: \"keep\" for the client's, \"upstream\" for the upstream's, or a name",
      .text("keep")),
  ]

  /// Who may pass.
  private static let access: [Entry] = [
    .optional("allow", "boolean|moongate.RouteAllow", "true: open to all", .flag(false)),
    .optional("flow", "string", "the name of a flow", .text(FlowPurpose.signIn.usualName)),
    .optional("require", "moongate.Requirement", "the requirements on the session"),
    .optional(
      "tokens", "boolean|moongate.RouteTokens",
      "the service and personal tokens that the route accepts: true, { \"ci\" } or { personal = true }"),
    .optional("decide", "fun(f: moongate.RouteFacts): moongate.Decision", "a function of facts"),
  ]

  /// How the service is spoken to.
  private static let service: [Entry] = [
    .optional(
      "identity", "moongate.RouteIdentity",
      "the headers that tell the service who the user is, as in { user = \"X-WEBAUTH-USER\" }"),
    .choice(
      "encoding", HeaderEncoding.self,
      "how identity values that are not ASCII are written: as UTF-8, percent-encoded, or as encoded words", .utf8),
    .optional(
      "bearer", "string",
      "the app whose access token for the user the service receives as Authorization: Bearer, such as \"reports\""),
    .choice(
      "balance", UpstreamBalance.self,
      "which of several upstreams a request tries first: `first` in their order, `round_robin` in turn, `least_busy`, or `sticky` for the same one for each account",
      .first),
    .optional(
      "retry", "moongate.RouteRetry",
      "when an idempotent request is sent again, as in { on = { \"connect\", \"503\" }, times = 2 }"),
    .optional(
      "health", "moongate.RouteHealth",
      "the request that finds out whether an upstream works, as in { path = \"/healthz\", every = \"10s\" }"),
    .optional("http2", "boolean", "whether an https:// upstream is spoken to by HTTP/2", .flag(false)),
    .optional(
      "upstream_tls", "moongate.UpstreamTLS",
      "the certificates between the gateway and an https:// upstream, as in { ca = \"tls/ca.pem\" }"),
  ]

  static let requirement = TableShape(
    name: "Requirement",
    summary:
      "Requirements on the session: a group, and either a passed provider or a verified email address.",
    entries: [
      .optional("group", "string|moongate.AnyOf", "the name of a group, or any_of { … } of several"),
      .optional("passed", "string", "the name of a provider"),
      .optional("within", "moongate.Duration", Entry.durationKind),
      .optional("email_verified", "boolean", "true or false"),
    ])

  static let routeTokens = TableShape(
    name: "RouteTokens",
    summary: "The tokens that a route accepts: service tokens by name, and personal tokens.",
    items: "string the name of a service token",
    entries: [
      .optional(
        "personal", "boolean", "true accepts personal tokens, which users create on their account page", .flag(false))
    ])

  static let routeAllow = TableShape(
    name: "RouteAllow", summary: "The client addresses for which a route is open. All others sign in.",
    entries: [
      .required("networks", "string[]", "a list of address blocks, such as { \"10.0.0.0/8\" }")
    ])

  // MARK: identity

  static let routeIdentity = TableShape(
    name: "RouteIdentity",
    summary:
      "How a service learns who the user is. A name replaces the usual header, and is removed from what clients send, on every route.",
    entries: ServiceIdentity.Statement.allCases.map { statement in
      .optional(
        statement.rawValue, "string|moongate.IdentityHeader",
        "the header with \(statement.meaning), instead of \(statement.usualHeader)")
    } + [
      .optional(
        "basic", "moongate.IdentityBasic",
        "HTTP Basic for services that know nothing else, as in { user = \"{email}\", password = file \"wiki.secret\" }")
    ])

  static let identityHeader = TableShape(
    name: "IdentityHeader", summary: "A header with a value of your own, as in { \"X-User\", value = \"{email}\" }.",
    items: "string the name of the header",
    entries: [
      .optional(
        "value", "string",
        "a text with {id}, {email}, {phone}, {name}, {username}, {first_name}, {last_name}, {groups} or {claim.NAME}")
    ])

  static let identityBasic = TableShape(
    name: "IdentityBasic",
    summary: "The user and the password that the service receives as Authorization: Basic, for every session.",
    entries: [
      .required("user", "string", "a text with {id}, {email} and the other parts of `value`, such as \"{email}\""),
      .required("password", "moongate.Secret", "the password, as in file \"wiki.secret\""),
    ])

  // MARK: upstreams

  static let routeRetry = TableShape(
    name: "RouteRetry",
    summary:
      "When a request is sent again: to the next upstream, if there are several. Only for idempotent methods, such as GET and PUT.",
    entries: [
      .required(
        "on", Entry.list(of: RetryWord.allCases.map(\.rawValue)),
        "the failures: `connect` for no connection or no response, and the statuses `500`, `502`, `503` and `504`"),
      .optional("times", "integer", "the number of further attempts, from 1 to 5", .integer(1)),
    ])

  static let routeHealth = TableShape(
    name: "RouteHealth", summary: "The request that finds out whether an upstream works.",
    entries: [
      .required("path", "string", "a path that a working upstream answers with 200 to 399, such as \"/healthz\""),
      .optional("every", "moongate.Duration", "the time between two requests, such as \"10s\"", .text("10s")),
    ])

  static let routeRate = TableShape(
    name: "RouteRate",
    summary: "The number of requests that a route accepts, as in { \"100/s\", per = \"account\" }.",
    items: "string the rate, such as \"100/s\" or \"1000/10m\"",
    entries: [
      .choice(
        "per", RouteRate.Subject.self,
        "what is counted separately: each account, client address or token, or all requests together", .account)
    ])

  static let upstreamTLS = TableShape(
    name: "UpstreamTLS", summary: "The certificates between the gateway and a service.",
    entries: [
      .optional(
        "ca", "string",
        "the PEM file of the authorities that the service's certificate must come from, instead of the system's"),
      .optional("cert", "string", "the PEM file of the certificate that the gateway shows, with its chain"),
      .optional("key", "moongate.Secret", "the private key of `cert` in PEM, as in file \"tls/client.key\""),
      .optional("name", "string", "the name that the service's certificate must have, instead of the upstream's host"),
    ])
}

/// The words of `encoded`.
enum EncodedPathWord: String, CaseIterable {
  case slash, backslash, empty

  var bytes: EncodedPathBytes {
    switch self {
    case .slash: .slash
    case .backslash: .backslash
    case .empty: .empty
    }
  }
}

/// The words of `on` in `retry`.
enum RetryWord: String, CaseIterable {
  case connect
  case internalServerError = "500"
  case badGateway = "502"
  case serviceUnavailable = "503"
  case gatewayTimeout = "504"
}

extension ServiceIdentity.Statement {
  /// What it states, for the description of its field.
  fileprivate var meaning: String {
    switch self {
    case .user: "the id of the account"
    case .email: "the verified email address"
    case .phone: "the verified phone number"
    case .name: "the full name"
    case .groups: "the groups"
    }
  }
}
