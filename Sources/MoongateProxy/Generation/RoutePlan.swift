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
  /// The normalized names of these headers. Client fields with these names are removed, even in variants that lenient
  /// services accept.
  let headerNames: [[UInt8]]
  let timeout: TimeAmount
  /// The minimum rate of a request body, in bytes per window; nil for no limit.
  let bodyRate: (bytes: Int, window: TimeAmount)?
  /// The index of the target that the next request tries first.
  private var next = 0
  /// The requesters for whom `decide` is paused.
  var pauses = DecidePauses()

  init(_ route: Route, metricsIndex: Int, targets: [UpstreamTarget]) {
    rule = route
    self.metricsIndex = metricsIndex
    self.targets = targets
    rewriting = ServiceRewriting(route)
    refusalStyle = RefusalStyle(route)
    headerLines =
      (rewriting?.prefixLine ?? []) + route.headers.flatMap { Array("\($0.name): \($0.value)\r\n".utf8) }
    headerNames = route.headers.map { header in header.name.utf8.map { ByteClass.folded($0) } }
    timeout = .nanoseconds(
      max(1_000_000, route.timeout.wholeMilliseconds.multipliedReportingOverflow(by: 1_000_000).partialValue))
    bodyRate = route.bodyRate.map { ($0.bytes, .milliseconds($0.window.wholeMilliseconds)) }
  }

  /// The order in which the next request tries the targets: each in turn is first, and those that failed recently come
  /// last.
  func takeOrder(at now: NIODeadline) -> [Int] {
    let first = next
    next = (first + 1) % targets.count
    let all = targets.indices.map { (first + $0) % targets.count }
    return all.filter { !targets[$0].isDown(at: now) } + all.filter { targets[$0].isDown(at: now) }
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

  /// Whether the route sets a header with this name.
  func replaces(_ bytes: Span<UInt8>, _ name: Range<Int>) -> Bool {
    headerNames.contains { wanted in
      guard wanted.count == name.count else { return false }
      for offset in wanted.indices where wanted[offset] != ByteClass.folded(bytes[name.lowerBound + offset]) {
        return false
      }
      return true
    }
  }
}
