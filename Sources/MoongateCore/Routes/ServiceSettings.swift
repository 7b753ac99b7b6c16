import MoongateSDK

/// How the path that a service sees differs from the path of the request.
package struct PathRewrite: Sendable, Hashable {
  /// `strip`: whole segments that are removed from the beginning of the path, such as `/wiki`; empty for none. Every
  /// path that the route matches begins with it.
  package var strip = ""
  /// The path in `to`, such as `/base`, which is put in front; empty for none. It is the same for all upstreams.
  package var base = ""

  package init(strip: String = "", base: String = "") {
    self.strip = strip
    self.base = base
  }

  package var isIdentity: Bool { strip.isEmpty && base.isEmpty }
}

/// `host_header`: the Host that a service receives. `X-Forwarded-Host` stays the client's.
package enum ServiceHost: Sendable, Hashable {
  /// The host of the request.
  case kept
  /// The host and port of the upstream.
  case upstream
  /// A host, with or without a port, in lower case.
  case named(String)
}

/// `encoded`: bytes of a path that two programs could read differently, which a route passes on byte for byte.
package struct EncodedPathBytes: OptionSet, Sendable, Hashable {
  package let rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// `%2F` within a segment.
  package static let slash = EncodedPathBytes(rawValue: 1)
  /// `%5C` within a segment.
  package static let backslash = EncodedPathBytes(rawValue: 2)
  /// `//`: empty segments.
  package static let empty = EncodedPathBytes(rawValue: 4)
}

/// `identity` and `encoding`: how a service learns who the user is.
package struct ServiceIdentity: Sendable {
  /// What is stated about a user, in the order of the headers.
  package enum Statement: String, Sendable, Hashable, CaseIterable {
    case user, email, phone, name, groups

    /// The name of the header without `identity`.
    package var usualHeader: String {
      switch self {
      case .user: "Remote-User"
      case .email: "Remote-Email"
      case .phone: "Remote-Phone"
      case .name: "Remote-Name"
      case .groups: "Remote-Groups"
      }
    }
  }

  /// A header that states one thing in place of the usual one.
  package struct Header: Sendable, Hashable {
    package let name: String
    package let value: IdentityTemplate

    package init(name: String, value: IdentityTemplate) {
      self.name = name
      self.value = value
    }
  }

  /// `identity.basic`: HTTP Basic for services that know nothing else (RFC 7617).
  package struct Basic: Sendable {
    package let user: IdentityTemplate
    package let password: SecretText

    package init(user: IdentityTemplate, password: SecretText) {
      self.user = user
      self.password = password
    }
  }

  /// Headers in place of the usual ones. What is not here has its usual name and value.
  package var headers: [Statement: Header] = [:]
  package var basic: Basic?
  package var encoding = HeaderEncoding.utf8

  package init() {}

  /// Whether the service receives the usual headers, unchanged.
  package var isUsual: Bool { headers.isEmpty && basic == nil && encoding == .utf8 }
}

/// `encoding`: how an identity value with other characters than ASCII is written.
package enum HeaderEncoding: String, Sendable, Hashable, CaseIterable {
  case utf8 = "utf-8"
  /// The bytes of UTF-8, percent-encoded (RFC 3986 section 2.1), as in JavaScript's `encodeURIComponent`.
  case percent
  /// Encoded words (RFC 2047 section 2).
  case rfc2047
}

/// A text with placeholders for facts about a user, such as `{email}`.
package struct IdentityTemplate: Sendable, Hashable {
  /// A piece of the text, or a fact.
  package enum Part: Sendable, Hashable {
    case text(String)
    case id, email, phone, name, username
    case firstName, lastName, groups
    case claim(String)
  }

  package let parts: [Part]

  package init(_ parts: [Part]) { self.parts = parts }
}

/// `retry`: for which failures an idempotent request (RFC 9110 section 9.2.2) is sent again.
package struct RetryRule: Sendable, Hashable {
  /// `connect`: the upstream accepts no connection, or ends it before a response.
  package var onConnect: Bool
  /// The statuses of responses that are dropped, among 500, 502, 503 and 504.
  package var statuses: Set<Int>
  /// The number of further attempts, 1 to 5.
  package var times: Int

  package init(onConnect: Bool, statuses: Set<Int>, times: Int) {
    self.onConnect = onConnect
    self.statuses = statuses
    self.times = times
  }
}

/// `balance`: which of several upstreams a request tries first.
package enum UpstreamBalance: String, Sendable, Hashable, CaseIterable {
  /// The first that works, in their order.
  case first
  case roundRobin = "round_robin"
  /// The one with the fewest requests of this event loop.
  case leastBusy = "least_busy"
  /// The same one for all requests of an account, or of an address without one, as long as it works.
  case sticky
}

/// `health`: requests that find out whether an upstream works.
package struct HealthCheck: Sendable, Hashable {
  /// A path and query that an upstream which works answers with a status from 200 to 399.
  package let path: String
  package let interval: Duration

  package init(path: String, interval: Duration) {
    self.path = path
    self.interval = interval
  }
}

/// `rate`: the number of requests that a route accepts.
package struct RouteRate: Sendable, Hashable {
  /// Whose requests are counted together.
  package enum Subject: String, Sendable, Hashable, CaseIterable {
    /// An account; an address for requests without one.
    case account
    case ip
    /// An access token; an account, or an address, for requests without one.
    case token
    case global
  }

  /// 1 or more.
  package let count: Int
  package let window: Duration
  package let subject: Subject

  package init(count: Int, window: Duration, subject: Subject) {
    self.count = count
    self.window = window
    self.subject = subject
  }
}

/// `upstream_tls`: which certificate a service must have, and which one the gateway shows. The contents of the files,
/// in PEM.
package struct UpstreamTrust: Sendable, Hashable {
  /// The certificates of the authorities; nil: those of the system.
  package var authorities: [UInt8]?
  /// The gateway's certificate with its chain, and its key.
  package var certificate: [UInt8]?
  package var key: [UInt8]?
  /// The name that the certificate must have; nil: the host of the upstream.
  package var name: String?

  package init() {}
}

/// Always printed as `•••`, so that a log line or an error cannot leak the key.
extension UpstreamTrust: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "•••" }
  package var debugDescription: String { "•••" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
