import MoongateSDK
import Synchronization

/// Counts sign-ins and attempts by outcome, for `/metrics`. It is updated from audit events and adds no work to a
/// request.
package final class SignInMetrics: Sendable {
  /// The name that labels a series, and the outcome.
  private struct Key: Hashable, Comparable {
    let name: String
    let outcome: String

    static func < (left: Self, right: Self) -> Bool { (left.name, left.outcome) < (right.name, right.outcome) }
  }

  private struct Counts {
    var signIns: [Key: UInt64] = [:]
    var attempts: [Key: UInt64] = [:]
  }

  /// The maximum number of series per family. Flows, providers, codes and reasons come from the configuration; this
  /// bounds the effect of many reloads.
  private static let maxSeries = 1000

  private let counts = Mutex(Counts())

  package init() {}

  /// Counts stored events. Refusals are counted individually by `note(refused:)`, because a flood of them is stored as
  /// one event.
  package func note(_ events: [AuditEvent]) {
    for event in events where event.kind == .sessionStarted || event.kind == .codeVerified {
      counts.withLock { counts in
        if event.kind == .sessionStarted, let flow = event.flow { Self.count(flow, "completed", &counts.signIns) }
        if event.kind == .codeVerified, let provider = event.provider {
          Self.count(provider.rawValue, "verified", &counts.attempts)
        }
      }
    }
  }

  /// Counts a refused request.
  package func note(refused event: AuditEvent) {
    guard event.flow != nil || event.provider != nil else { return }
    counts.withLock { counts in
      if let flow = event.flow { Self.count(flow, "refused", &counts.signIns) }
      if let provider = event.provider, let code = event.code { Self.count(provider.rawValue, code, &counts.attempts) }
    }
  }

  private static func count(_ name: String, _ outcome: String, _ series: inout [Key: UInt64]) {
    let key = Key(name: name, outcome: outcome)
    guard series[key] != nil || series.count < maxSeries else { return }
    series[key, default: 0] += 1
  }

  /// The metrics for Prometheus.
  package var families: [MetricFamily] {
    let counts = counts.withLock { $0 }
    let samples = { (label: String, series: [Key: UInt64]) in
      series.sorted { $0.key < $1.key }.map {
        MetricFamily.Sample([(label, $0.key.name), ("outcome", $0.key.outcome)], Double($0.value))
      }
    }
    return [
      MetricFamily(.signInsTotal, samples("flow", counts.signIns)),
      MetricFamily(.attemptsTotal, samples("provider", counts.attempts)),
    ]
  }
}
