import MoongateCore
import MoongateSDK
import NIOCore

/// A route with the state that one event loop needs to serve it.
final class RoutePlan {
  /// The entry of routes.lua.
  let rule: Route
  /// The index of the route in the metrics.
  let metricsIndex: Int
  let targets: [UpstreamTarget]
  /// What the route changes between clients and its service; nil for nothing.
  let rewriting: ServiceRewriting?
  /// How refusals on the route are shown; nil for the usual page.
  let refusalStyle: RefusalStyle?
  /// The headers that the route adds to requests, as header lines.
  let headerLines: [UInt8]
  /// The normalized names of these headers, and of the identity headers of all routes. Client fields with these names
  /// are removed, even in variants that lenient services accept.
  let headerNames: [[UInt8]]
  /// The lengths of these names: bit n for n bytes, and bit 63 for longer ones. Most fields need no comparison.
  private let headerNameLengths: UInt64
  let identity: RouteIdentity
  let timeout: TimeAmount
  /// Whether an upstream is spoken to by HTTP/2.
  let usesHTTP2: Bool
  /// The minimum rate of a request body, in bytes per window; nil for no limit.
  let bodyRate: (bytes: Int, window: TimeAmount)?
  /// Whether the route is open to some networks.
  let hasOpenNetworks: Bool
  /// The requests that it has accepted; nil if the route has no `rate`. `ProxyLoop` sets it.
  var rate: RouteRateCounter?
  /// Whether requests have a choice of upstreams or attempts.
  let hasAttempts: Bool
  /// The order of the targets; nil if there is only one.
  private var order: UpstreamOrder?
  /// The retries that are left for all requests.
  var retryBudget = RetryBudget()
  /// The requesters for whom `decide` is paused.
  var pauses = DecidePauses()

  /// - Parameter removed: the normalized names of further headers that are removed from what clients send.
  init(
    _ route: Route, metricsIndex: Int, targets: [UpstreamTarget], identity: RouteIdentity = RouteIdentity(),
    removed: [[UInt8]] = []
  ) {
    rule = route
    self.identity = identity
    hasAttempts = targets.count > 1 || route.retry != nil
    self.metricsIndex = metricsIndex
    self.targets = targets
    rewriting = ServiceRewriting(route)
    refusalStyle = RefusalStyle(route)
    headerLines =
      (rewriting?.prefixLine ?? []) + route.headers.flatMap { Array("\($0.name): \($0.value)\r\n".utf8) }
    let names = route.headers.map { ByteClass.folded($0.name) } + removed
    headerNames = names
    headerNameLengths = names.reduce(0) { $0 | Self.lengthBit($1.count) }
    timeout = .nanoseconds(
      max(1_000_000, route.timeout.wholeMilliseconds.multipliedReportingOverflow(by: 1_000_000).partialValue))
    usesHTTP2 = route.upstreams.contains(where: \.usesHTTP2)
    hasOpenNetworks = !route.openNetworks.isEmpty
    bodyRate = route.bodyRate.map { ($0.bytes, .milliseconds($0.window.wholeMilliseconds)) }
  }

  /// Prepares the order of the targets.
  /// - Parameters:
  ///   - health: what health checks find out about each target; empty without them.
  ///   - keys: for `sticky`.
  func setOrder(health: [UpstreamHealth], keys: KeyRing) {
    guard targets.count > 1 else { return }
    order = UpstreamOrder(rule, targets: targets, health: health, keys: keys)
  }

  /// The attempts of a new request.
  /// - Parameter isIdempotent: whether `retry` may add some.
  func attempts(
    isIdempotent: Bool, for requester: @autoclosure () -> UpstreamOrder.StickySubject, at now: NIODeadline
  ) -> UpstreamAttempts {
    let order = order?.take(for: requester(), at: now) ?? []
    guard let retry = rule.retry else { return UpstreamAttempts(order: order) }
    retryBudget.requestBegan()
    return UpstreamAttempts(order: order, retries: isIdempotent ? retry.times : 0, until: now + timeout)
  }

  /// Whether the request is allowed without any further check. This is the common case and creates no facts.
  /// - Parameter isSignedIn: whether the request has a session or an access token.
  func admits(isSignedIn: Bool, _ entitlements: Result<Entitlements, PolicyFault>) -> Bool {
    if rule.isOpen { return true }
    guard isSignedIn, rule.decide == nil, rule.requirement == nil, case .success(let known) = entitlements else {
      return false
    }
    return rule.groups?.isMet(by: known) ?? true
  }

  private static func lengthBit(_ length: Int) -> UInt64 { 1 << UInt64(min(length, 63)) }

  /// Whether the route sets a header with this name, or any route states something about users by it.
  func replaces(_ bytes: Span<UInt8>, _ name: Range<Int>) -> Bool {
    guard headerNameLengths & Self.lengthBit(name.count) != 0 else { return false }
    return headerNames.contains { wanted in
      guard wanted.count == name.count else { return false }
      for offset in wanted.indices where wanted[offset] != ByteClass.folded(bytes[name.lowerBound + offset]) {
        return false
      }
      return true
    }
  }
}
