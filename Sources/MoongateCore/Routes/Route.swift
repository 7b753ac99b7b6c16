import MoongateSDK

/// An entry of routes.lua.
package struct Route: Sendable {
  /// Exact, lower case, without the port; nil: every host.
  package let host: String?
  package let path: PathPattern
  /// Exact upper-case names; nil: every method. GET includes HEAD.
  package let methods: Set<String>?
  /// At least one. `balance` says which one a request tries first.
  package let upstreams: [Upstream]
  /// Whether the route needs no session.
  package let isOpen: Bool
  /// The flow that a client without a session is sent to.
  package let flow: String
  package let requirement: Requirement?
  /// `require.group`: the requester must be in one of these groups. Checked before `requirement`.
  package let groups: GroupRequirement?
  /// The tokens that the route accepts in addition to sessions; nil: none.
  package let tokens: RouteTokens?
  package let decide: FunctionName?
  /// The timeout for connecting to an upstream, for its response head, and between parts of its body.
  package let timeout: Duration
  package let allowsUpgrade: Bool
  /// `service_worker`: whether a service worker of the route may control the sign-in pages, which are on the host of
  /// public_url.
  package let allowsServiceWorker: Bool
  /// Headers to set on requests. They replace the client's.
  package let headers: [(name: String, value: String)]
  /// The maximum size of a request body in bytes; nil: no limit.
  package let bodyLimit: Int?
  /// The minimum rate at which a client must send a request body; nil: no limit.
  package let bodyRate: BodyRate?
  package let location: SourceLocation
  /// `strip` and the path in `to`: how the path that the service sees differs from the path of the request.
  package var rewrite = PathRewrite()
  package var hostHeader = ServiceHost.kept
  /// `encoded`: the bytes of a path that are refused on other routes.
  package var encoded: EncodedPathBytes = []
  /// `allow = { networks = … }`: the addresses for which the route needs no session. Not with `isOpen`.
  package var openNetworks: [AddressBlock] = []
  package var identity = ServiceIdentity()
  /// `bearer`: the app of apps.lua whose access token (RFC 9068) the service receives in Authorization.
  package var bearer: String?
  /// `response_headers`: headers to set on the service's responses; nil: to remove. They replace the service's.
  package var responseHeaders: [(name: String, value: String?)] = []
  /// `retry`: when a request is sent again; nil: if the service cannot have seen it, or it is a GET, HEAD or OPTIONS
  /// without a body.
  package var retry: RetryRule?
  package var balance = UpstreamBalance.first
  package var health: HealthCheck?
  package var rate: RouteRate?
  /// `frames`: the origins of other sites that may show the route's pages in a frame, such as
  /// `https://portal.example.com`.
  package var frames: [String] = []
  /// `error_pages`: the folder below `pages/` with the templates of the refusals on this route.
  package var errorPages: String?

  /// More than five parameters: one for each field.
  package init(
    host: String?, path: PathPattern, methods: Set<String>?, upstreams: [Upstream], isOpen: Bool, flow: String,
    requirement: Requirement?,
    decide: FunctionName?, timeout: Duration, allowsUpgrade: Bool, headers: [(name: String, value: String)],
    bodyLimit: Int?,
    bodyRate: BodyRate? = .standard, groups: GroupRequirement? = nil, tokens: RouteTokens? = nil,
    allowsServiceWorker: Bool = false, location: SourceLocation
  ) {
    self.host = host
    self.path = path
    self.methods = methods
    self.upstreams = upstreams
    self.isOpen = isOpen
    self.flow = flow
    self.requirement = requirement
    self.groups = groups
    self.tokens = tokens
    self.decide = decide
    self.timeout = timeout
    self.allowsUpgrade = allowsUpgrade
    self.allowsServiceWorker = allowsServiceWorker
    self.headers = headers
    self.bodyLimit = bodyLimit
    self.bodyRate = bodyRate
    self.location = location
  }
}

/// A backend that a route forwards requests to: scheme, host, port, and how it is spoken to. Two routes share
/// connections if their upstreams are equal.
package struct Upstream: Sendable, Hashable, CustomStringConvertible {
  package let isSecure: Bool
  package let host: String
  package let port: Int
  /// `http2 = true` or `h2c://`: whether it is spoken to by HTTP/2.
  package var usesHTTP2 = false
  /// `upstream_tls`; nil: the certificate authorities of the system, and no certificate of our own.
  package var trust: UpstreamTrust?

  package init(isSecure: Bool, host: String, port: Int) {
    self.isSecure = isSecure
    self.host = host
    self.port = port
  }

  /// As in routes.lua: `http://127.0.0.1:3000`.
  package var description: String {
    "\(isSecure ? "https" : usesHTTP2 ? "h2c" : "http")://\(host):\(port)"
  }
}

/// What a session must have proved.
package enum Requirement: Sendable, Hashable {
  /// The provider was passed, not longer ago than `within`.
  case passed(ProviderName, within: Duration?)
  case emailVerified
}

/// The segments of a route's `path`.
package struct PathPattern: Sendable, Hashable {
  /// One part between slashes.
  package enum Segment: Sendable, Hashable {
    /// Literal bytes, and `*` for any sequence of bytes within the segment.
    case glob([UInt8])
    /// `**`: any number of segments, including none.
    case anySegments
  }

  /// As the operator wrote it.
  package let text: String
  package let segments: [Segment]

  package init(text: String, segments: [Segment]) {
    self.text = text
    self.segments = segments
  }
}

/// All routes in the operator's order. The first match applies.
package struct RouteTable: Sendable {
  package let routes: [Route]

  package init(routes: [Route]) { self.routes = routes }
}
