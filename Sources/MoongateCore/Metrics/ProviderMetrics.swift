import MoongateSDK
import Synchronization

/// Counts the calls of each provider by what came of them, and how long they took: for `/metrics`.
package final class ProviderMetrics: Sendable {
  /// What a provider is called for.
  enum Call: String, Sendable, Comparable {
    case begin, submit, deliver

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  }

  /// What came of a call.
  enum Outcome: String, Sendable {
    case asked, redirected, proved, refused, malformed, delivered
    /// The provider failed: nothing was charged to the person.
    case fault

    init(_ answer: StepAnswer) {
      self =
        switch answer {
        case .ask: .asked
        case .redirect: .redirected
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

  private let calls = Mutex<[ProviderName: [Call: Calls]]>([:])

  package init() {}

  /// - Parameter start: when the call began.
  func record(_ call: Call, of provider: ProviderName, _ outcome: Outcome, since start: ContinuousClock.Instant) {
    let (seconds, attoseconds) = (ContinuousClock.now - start).components
    calls.withLock { calls in
      calls[provider, default: [:]][call, default: Calls()].outcomes[outcome, default: 0] += 1
      calls[provider, default: [:]][call, default: Calls()].durations.record(nanoseconds: seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }
  }

  /// As Prometheus reads it; empty families before the first call.
  package var families: [MetricFamily] {
    let all = calls.withLock { $0 }.sorted { $0.key < $1.key }.flatMap { provider, calls in
      calls.sorted { $0.key < $1.key }.map { (labels: [("provider", provider.rawValue), ("call", $0.key.rawValue)], calls: $0.value) }
    }
    return [
      MetricFamily(
        "moongate_provider_calls_total", .counter, "Calls of providers, by what came of them.",
        all.flatMap { labels, calls in
          calls.outcomes.sorted { $0.key.rawValue < $1.key.rawValue }.map {
            MetricFamily.Sample(labels + [("outcome", $0.key.rawValue)], Double($0.value))
          }
        }),
      MetricFamily(
        "moongate_provider_call_seconds", .histogram, "How long calls of providers took.", all.flatMap { $0.calls.durations.samples($0.labels) }),
    ]
  }
}
