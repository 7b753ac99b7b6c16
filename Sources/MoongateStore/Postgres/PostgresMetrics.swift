import MoongateCore
import Synchronization

/// The metrics of a node's use of PostgreSQL.
final class PostgresMetrics: Sendable {
  /// The outcomes of transactions.
  enum Outcome: String, CaseIterable {
    case committed
    /// Retried, because it conflicted with another one.
    case restarted
    /// Rolled back by the store because of a conflict.
    case rolledBack = "rolled_back"
    case failed
    /// The connection broke during the commit.
    case unknown
  }

  struct Count: Equatable {
    var statements = 0
    var roundTrips = 0
    var transactions: [Outcome: Int] = [:]
    var connects = 0
    var refusedConnects = 0
    /// Work that was refused because no connection was free in time.
    var busy = 0
    var notifications = 0
  }

  private let state = Mutex(Count())

  var count: Count { state.withLock { $0 } }

  func add(statements: Int, roundTrips: Int) {
    state.withLock { count in
      count.statements += statements
      count.roundTrips += roundTrips
    }
  }

  func ended(_ outcome: Outcome) { state.withLock { $0.transactions[outcome, default: 0] += 1 } }

  func connected() { state.withLock { $0.connects += 1 } }
  func failedToConnect() { state.withLock { $0.refusedConnects += 1 } }
  func wasBusy() { state.withLock { $0.busy += 1 } }
  func wasNotified() { state.withLock { $0.notifications += 1 } }

  /// The metrics for `GET /metrics`.
  func families(pool: (busy: Int, idle: Int, waiting: Int)) -> [MetricFamily] {
    let count = count
    return [
      MetricFamily(.storeStatementsTotal, count.statements),
      MetricFamily(.storeRoundTripsTotal, count.roundTrips),
      MetricFamily(
        .storeTransactionsTotal,
        Outcome.allCases.map { MetricFamily.Sample([("outcome", $0.rawValue)], Double(count.transactions[$0] ?? 0)) }),
      MetricFamily(
        .storeConnections,
        [
          MetricFamily.Sample([("state", "busy")], Double(pool.busy)),
          MetricFamily.Sample([("state", "idle")], Double(pool.idle)),
        ]),
      MetricFamily(.storeWaiting, pool.waiting),
      MetricFamily(.storeBusyTotal, count.busy),
      MetricFamily(.storeConnectsTotal, count.connects),
      MetricFamily(.storeConnectsFailedTotal, count.refusedConnects),
      MetricFamily(.storeNotificationsTotal, count.notifications),
    ]
  }
}
