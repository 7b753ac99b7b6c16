import MoongateSDK
import Synchronization

/// Counts the calls of each provider by outcome, with their durations, for `/metrics`.
package final class ProviderMetrics: Sendable {
  /// The operations for which a provider is called.
  enum Call: String, Sendable, Comparable {
    case begin, submit, deliver, hook, upgrade, maintain, recheck

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  }

  /// The outcome of a call.
  enum Outcome: String, Sendable {
    case asked, redirected, waiting, proved, refused, malformed, delivered, accepted, upgraded, maintained
    /// A recheck: the site has confirmed the identity, or its sessions end.
    case confirmed, ended
    /// A delivery failed for a reason that the provider declares.
    case undeliverable
    /// The provider failed. The user was not charged.
    case fault

    init(_ answer: StepAnswer) {
      self =
        switch answer {
        case .ask: .asked
        case .redirect: .redirected
        case .wait: .waiting
        case .proved: .proved
        case .refused, .refusedAndAsked: .refused
        case .malformed: .malformed
        }
    }
  }

  private struct Calls: Sendable {
    var outcomes: [Outcome: UInt64] = [:]
    var durations = DurationHistogram()
  }

  /// The number of recent failures of one call of a provider.
  struct FaultTally: Sendable, Equatable {
    var count: Int
    /// The time of the first of them.
    let since: Timestamp
  }

  /// The period over which faults are counted together.
  private static let tallied: Duration = .seconds(3600)

  private let calls = Mutex<[ProviderName: [Call: Calls]]>([:])
  /// Keyed by provider and call. Clients cannot add keys.
  private let faults = Mutex<[ProviderName: [Call: FaultTally]]>([:])

  package init() {}

  /// - Parameter start: when the call began.
  func record(_ call: Call, of provider: ProviderName, _ outcome: Outcome, since start: ContinuousClock.Instant) {
    let took = ContinuousClock.now - start
    calls.withLock { calls in
      calls[provider, default: [:]][call, default: Calls()].outcomes[outcome, default: 0] += 1
      calls[provider, default: [:]][call, default: Calls()].durations.record(nanoseconds: took.wholeNanoseconds)
    }
  }

  /// Counts a fault, and returns the count since the first one of the hour.
  func tallyFault(_ call: Call, of provider: ProviderName, at now: Timestamp) -> FaultTally {
    faults.withLock { faults in
      var tally = faults[provider]?[call] ?? FaultTally(count: 0, since: now)
      if now >= tally.since + Self.tallied { tally = FaultTally(count: 0, since: now) }
      tally.count += 1
      faults[provider, default: [:]][call] = tally
      return tally
    }
  }

  /// The metrics for Prometheus, with empty families before the first call.
  package var families: [MetricFamily] {
    let all = calls.withLock { $0 }.sorted { $0.key < $1.key }.flatMap { provider, calls in
      calls.sorted { $0.key < $1.key }.map {
        (labels: [("provider", provider.rawValue), ("call", $0.key.rawValue)], calls: $0.value)
      }
    }
    return [
      MetricFamily(
        .providerCallsTotal,
        all.flatMap { labels, calls in
          calls.outcomes.sorted { $0.key.rawValue < $1.key.rawValue }.map {
            MetricFamily.Sample(labels + [("outcome", $0.key.rawValue)], Double($0.value))
          }
        }),
      MetricFamily(.providerCallSeconds, all.flatMap { $0.calls.durations.samples($0.labels) }),
    ]
  }
}
