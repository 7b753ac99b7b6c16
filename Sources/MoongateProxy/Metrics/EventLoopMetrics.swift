import MoongateCore

/// The outcome of a request.
enum Outcome: Int, CaseIterable, Sendable {
  /// An upstream responded, with any status.
  case passed
  /// The gateway's own pages or calls responded.
  case own
  /// Redirected to a page where the user can continue.
  case redirected
  /// Refused by the gateway with a status under 500.
  case refused
  /// The gateway or an upstream failed, and the gateway responded with 5xx.
  case failed
  /// The request became a tunnel (WebSocket), which has ended.
  case tunnel
  /// One side disconnected before the response was complete.
  case aborted

  var name: String {
    switch self {
    case .passed: "passed"
    case .own: "own"
    case .redirected: "redirected"
    case .refused: "refused"
    case .failed: "failed"
    case .tunnel: "tunnel"
    case .aborted: "aborted"
    }
  }
}

/// The counters of one event loop. Only the loop writes them; readers run on the loop. No request takes a lock or
/// shares a cache line with another core.
struct EventLoopMetrics: Sendable {
  /// The HTTP version of a client connection.
  enum HTTPVersion: Int, CaseIterable, Sendable {
    case http1, http2

    var name: String { self == .http1 ? "http/1.1" : "h2" }
  }

  struct Connections: Sendable {
    private(set) var opened = 0
    private(set) var now = 0

    mutating func open() {
      opened += 1
      now += 1
    }

    mutating func close() { now -= 1 }

    mutating func merge(_ other: Self) {
      opened += other.opened
      now += other.now
    }
  }

  /// Values by HTTP version.
  struct ByVersion: Sendable {
    private var http1 = Connections()
    private var http2 = Connections()

    subscript(_ wire: HTTPVersion) -> Connections {
      get { wire == .http1 ? http1 : http2 }
      set { if wire == .http1 { http1 = newValue } else { http2 = newValue } }
    }
  }

  struct Route: Sendable {
    let label: String
    /// By outcome and status class, five classes each.
    var counts: [UInt64]
    var duration = DurationHistogram()
    /// By cause.
    var upstreamErrors: [UInt64]
    /// The requests beyond its `rate`.
    var rateLimited: UInt64 = 0

    init(_ label: String) {
      self.label = label
      counts = Array(repeating: 0, count: Outcome.allCases.count * 5)
      upstreamErrors = Array(repeating: 0, count: UpstreamFailureCause.allCases.count)
    }

    mutating func merge(_ other: Self) {
      for index in counts.indices { counts[index] += other.counts[index] }
      duration.merge(other.duration)
      for index in upstreamErrors.indices { upstreamErrors[index] += other.upstreamErrors[index] }
      rateLimited += other.rateLimited
    }
  }

  struct Upstream: Sendable {
    var idle = 0
    var open = 0
    var opened = 0
    var failed = 0
    var reused = 0
    /// Attempts after which a request was sent again.
    var retries: [UpstreamFailureCause: Int] = [:]

    mutating func merge(_ other: Self) {
      retries.merge(other.retries) { $0 + $1 }
      idle += other.idle
      open += other.open
      opened += other.opened
      failed += other.failed
      reused += other.reused
    }
  }

  struct Cache: Sendable {
    var entries = 0
    var live = 0
    var dead = 0
    var asked = 0
    var unavailable = 0

    mutating func merge(_ other: Self) {
      entries += other.entries
      live += other.live
      dead += other.dead
      asked += other.asked
      unavailable += other.unavailable
    }
  }

  /// The index of requests without a route, and of requests to the gateway itself.
  static let unrouted = 0
  static let own = 1
  /// The maximum number of route labels, including those of previous configurations.
  private static let maxRoutes = 1000

  private(set) var routes = [Route("(none)"), Route("(own)")]
  private var indices: [String: Int] = [:]
  var connections = ByVersion()
  var refusedConnections = 0
  var failedHandshakes = 0
  var tunnels = 0
  var policy = DurationHistogram()
  var cache = Cache()
  var upstreams: [String: Upstream] = [:]

  /// The index of the route with this label.
  mutating func index(of label: String) -> Int {
    if let known = indices[label] { return known }
    guard routes.count < Self.maxRoutes else { return Self.unrouted }
    routes.append(Route(label))
    indices[label] = routes.count - 1
    return routes.count - 1
  }

  mutating func count(_ route: Int, _ outcome: Outcome, status: Int, nanoseconds: Int64) {
    routes[route].counts[outcome.rawValue * 5 + min(max(status / 100, 1), 5) - 1] += 1
    routes[route].duration.record(nanoseconds: nanoseconds)
  }

  mutating func count(_ route: Int, _ cause: UpstreamFailureCause) {
    guard let index = UpstreamFailureCause.allCases.firstIndex(of: cause) else { return }
    routes[route].upstreamErrors[index] += 1
  }

  mutating func countRateLimited(_ route: Int) { routes[route].rateLimited += 1 }

  /// The label of the route at the index.
  func label(_ route: Int) -> String { routes[route].label }

  mutating func merge(_ other: Self) {
    for (index, route) in other.routes.enumerated() {
      routes[index < 2 ? index : self.index(of: route.label)].merge(route)
    }
    for wire in HTTPVersion.allCases { connections[wire].merge(other.connections[wire]) }
    refusedConnections += other.refusedConnections
    failedHandshakes += other.failedHandshakes
    tunnels += other.tunnels
    policy.merge(other.policy)
    cache.merge(other.cache)
    for (name, metrics) in other.upstreams { upstreams[name, default: Upstream()].merge(metrics) }
  }
}
