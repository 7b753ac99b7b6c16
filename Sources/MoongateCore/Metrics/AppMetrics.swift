import Synchronization

/// Counts the token requests of apps.
package final class AppMetrics: Sendable {
  /// What became of a token request.
  package enum Outcome: String, Sendable {
    case issued, refreshed, refused, revoked
  }

  private struct Key: Hashable {
    let app: String
    let outcome: Outcome
  }

  private let counts = Mutex<[Key: UInt64]>([:])

  package init() {}

  /// Attack: labels that a client chooses would create an unlimited number of series.
  /// - Parameter app: the `client_id` of an app of apps.lua, never one that only a request names.
  package func count(_ app: String, _ outcome: Outcome) {
    counts.withLock { $0[Key(app: app, outcome: outcome), default: 0] += 1 }
  }

  /// The metrics for Prometheus.
  package var families: [MetricFamily] {
    let sorted = counts.withLock { $0 }.sorted {
      ($0.key.app, $0.key.outcome.rawValue) < ($1.key.app, $1.key.outcome.rawValue)
    }
    return [
      MetricFamily(
        .appTokensTotal,
        sorted.map {
          MetricFamily.Sample([("app", $0.key.app), ("outcome", $0.key.outcome.rawValue)], Double($0.value))
        })
    ]
  }
}
