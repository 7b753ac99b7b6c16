import MoongateCore
import Synchronization

/// What the health checks of one upstream have found out, for all event loops.
final class UpstreamHealth: Sendable {
  /// A check of one upstream. Routes with equal checks share their results.
  struct Check: Hashable, Sendable {
    let upstream: Upstream
    /// The Host of its requests.
    let host: String
    let rule: HealthCheck
  }

  /// The number of failed checks in a row after which the upstream is not used.
  static let tolerated = 2

  let check: Check
  private let passing = Atomic<Bool>(true)
  private let claimed = Atomic<Bool>(false)
  private let ended = Atomic<Bool>(false)
  private let passed = Atomic<Int>(0)
  private let failed = Atomic<Int>(0)

  init(_ check: Check) { self.check = check }

  /// Whether the upstream is to be used. It is, until checks fail.
  var isPassing: Bool { passing.load(ordering: .relaxed) }

  /// Whether no route has the check any more.
  var isOver: Bool { ended.load(ordering: .relaxed) }

  /// The numbers of checks since the first one.
  var counts: (passed: Int, failed: Int) {
    (passed.load(ordering: .relaxed), failed.load(ordering: .relaxed))
  }

  /// Makes the caller the one that checks.
  /// - Returns: false if there is one.
  func claim() -> Bool { !claimed.exchange(true, ordering: .relaxed) }

  func end() { ended.store(true, ordering: .relaxed) }

  /// A check has ended.
  /// - Parameter failures: the number of failed checks in a row; 0 if it has passed.
  /// - Returns: whether `isPassing` has changed.
  func record(failures: Int) -> Bool {
    if failures == 0 { passed.add(1, ordering: .relaxed) } else { failed.add(1, ordering: .relaxed) }
    let isPassing = failures == 0 || failures < Self.tolerated && self.isPassing
    return passing.exchange(isPassing, ordering: .relaxed) != isPassing
  }
}

/// The health checks of the active generation. The process makes each check once, on one of its event loops.
final class HealthCheckTable: Sendable {
  private let known = Mutex<[UpstreamHealth.Check: UpstreamHealth]>([:])
  /// The generation whose checks are made.
  private let version = Atomic<UInt64>(0)

  /// What is found out about the upstreams of a route, in their order; empty without `health`.
  func health(of route: Route) -> [UpstreamHealth] {
    let checks = route.healthChecks
    return checks.isEmpty ? [] : known.withLock { known in checks.map { Self.entry(of: $0, in: &known) } }
  }

  /// Whether `adopt` must be called for the generation.
  func isOutdated(_ version: UInt64) -> Bool { self.version.load(ordering: .relaxed) != version }

  /// Ends the checks that the generation does not have.
  /// - Returns: the checks that the caller must make until they are over.
  func adopt(_ routes: RouteTable, version: UInt64) -> [UpstreamHealth] {
    guard self.version.exchange(version, ordering: .relaxed) != version else { return [] }
    let wanted = Set(routes.routes.flatMap(\.healthChecks))
    return known.withLock { known in
      for (check, health) in known where !wanted.contains(check) {
        health.end()
        known[check] = nil
      }
      return wanted.map { Self.entry(of: $0, in: &known) }.filter { $0.claim() }
    }
  }

  private static func entry(
    of check: UpstreamHealth.Check, in known: inout [UpstreamHealth.Check: UpstreamHealth]
  ) -> UpstreamHealth {
    if let health = known[check] { return health }
    let made = UpstreamHealth(check)
    known[check] = made
    return made
  }

  /// The metrics.
  var families: [MetricFamily] {
    let byUpstream = Dictionary(grouping: known.withLock { Array($0.values) }) { $0.check.upstream.description }
      .sorted { $0.key < $1.key }
    return [
      MetricFamily(
        .upstreamHealthChecksTotal,
        byUpstream.flatMap { name, all in
          [
            MetricFamily.Sample(
              [("upstream", name), ("outcome", "passed")], Double(all.reduce(0) { $0 + $1.counts.passed })),
            MetricFamily.Sample(
              [("upstream", name), ("outcome", "failed")], Double(all.reduce(0) { $0 + $1.counts.failed })),
          ]
        }),
      MetricFamily(
        .upstreamHealthy,
        byUpstream.map { name, all in
          MetricFamily.Sample([("upstream", name)], all.allSatisfy(\.isPassing) ? 1 : 0)
        }),
    ]
  }
}

extension Route {
  /// The health checks of the upstreams, in their order; empty without `health`.
  var healthChecks: [UpstreamHealth.Check] {
    guard let health else { return [] }
    return upstreams.map { upstream in
      let isUsual = upstream.port == (upstream.isSecure ? 443 : 80)
      let own = isUsual ? upstream.host : "\(upstream.host):\(upstream.port)"
      // Services often refuse another Host than the one that their users name.
      let sent =
        switch hostHeader {
        case .kept: host ?? own
        case .upstream: own
        case .named(let name): name
        }
      return UpstreamHealth.Check(upstream: upstream, host: sent, rule: health)
    }
  }
}
