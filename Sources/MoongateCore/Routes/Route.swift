import MoongateSDK

/// One entry of routes.lua.
package struct Route: Sendable {
  /// Exact, lower case, without port; nil: every host.
  package let host: String?
  package let path: PathPattern
  /// Exact upper-case names; nil: every method. HEAD goes with GET.
  package let methods: Set<String>?
  /// Tried in turn; at least one.
  package let upstreams: [Upstream]
  /// Open to all, session or not.
  package let isOpen: Bool
  /// Where someone without a session is sent.
  package let flow: String
  package let requirement: Requirement?
  /// The groups of which a requester must be in one: `require.group`. Judged before `requirement`.
  package let groups: GroupRequirement?
  /// The tokens of programs that it takes besides the sessions of people; nil: none.
  package let tokens: RouteTokens?
  package let decide: FunctionName?
  /// The longest silence of an upstream: connecting, before its head, inside its body.
  package let timeout: Duration
  package let allowsUpgrade: Bool
  /// Headers that are set on requests, replacing the client's.
  package let headers: [(name: String, value: String)]
  /// The most bytes of a request's body; nil: no limit.
  package let bodyLimit: Int?
  /// The least that a client sends of a request's body; nil: no limit.
  package let bodyRate: BodyRate?
  package let location: SourceLocation

  package init(
    host: String?, path: PathPattern, methods: Set<String>?, upstreams: [Upstream], isOpen: Bool, flow: String,
    requirement: Requirement?,
    decide: FunctionName?, timeout: Duration, allowsUpgrade: Bool, headers: [(name: String, value: String)],
    bodyLimit: Int?,
    bodyRate: BodyRate? = .standard, groups: GroupRequirement? = nil, tokens: RouteTokens? = nil,
    location: SourceLocation
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
    self.headers = headers
    self.bodyLimit = bodyLimit
    self.bodyRate = bodyRate
    self.location = location
  }
}

/// Where requests of a route go: scheme, host and port.
package struct Upstream: Sendable, Hashable {
  package let isSecure: Bool
  package let host: String
  package let port: Int

  package init(isSecure: Bool, host: String, port: Int) {
    self.isSecure = isSecure
    self.host = host
    self.port = port
  }
}

/// What a session must have besides being alive.
package enum Requirement: Sendable, Hashable {
  /// The provider was passed, at most so long ago.
  case passed(ProviderName, within: Duration?)
  case emailVerified
}

/// The segments of a route's `path`.
package struct PathPattern: Sendable, Hashable {
  /// One part between slashes.
  package enum Segment: Sendable, Hashable {
    /// Literal bytes and `*`s, which stand for any run of bytes within the segment.
    case glob([UInt8])
    /// `**`: any number of segments, none included.
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

/// All routes, in the operator's order: the first that matches wins.
package struct RouteTable: Sendable {
  package let routes: [Route]

  package init(routes: [Route]) { self.routes = routes }
}
