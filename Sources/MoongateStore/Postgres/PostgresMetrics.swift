import MoongateCore
import Synchronization

/// What a node asks of PostgreSQL, counted.
final class PostgresMetrics: Sendable {
  /// How transactions end.
  enum Outcome: String, CaseIterable {
    case committed
    /// Begun anew, because it met another one.
    case restarted
    /// Taken back by the store: a conflict.
    case rolledBack = "rolled_back"
    case failed
    /// The connection broke at the commit.
    case unknown
  }

  struct Count: Equatable {
    var statements = 0
    var roundTrips = 0
    var transactions: [Outcome: Int] = [:]
    var connects = 0
    var refusedConnects = 0
    /// Work that was turned away because nobody came to it in time.
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

  /// As `GET /metrics` shows them.
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
