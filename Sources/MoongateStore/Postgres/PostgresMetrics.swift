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
      MetricFamily("moongate_store_statements_total", .counter, "Statements that the store's database was asked to carry out.", count.statements),
      MetricFamily("moongate_store_round_trips_total", .counter, "How often the store waited for its database's answer.", count.roundTrips),
      MetricFamily(
        "moongate_store_transactions_total", .counter, "Transactions of the store, by how they ended.",
        Outcome.allCases.map { MetricFamily.Sample([("outcome", $0.rawValue)], Double(count.transactions[$0] ?? 0)) }),
      MetricFamily(
        "moongate_store_connections", .gauge, "Connections to the store's database, by what they do.",
        [MetricFamily.Sample([("state", "busy")], Double(pool.busy)), MetricFamily.Sample([("state", "idle")], Double(pool.idle))]),
      MetricFamily("moongate_store_waiting", .gauge, "Work that waits for a connection to the store's database.", pool.waiting),
      MetricFamily("moongate_store_busy_total", .counter, "Work turned away because no connection was free in time.", count.busy),
      MetricFamily("moongate_store_connects_total", .counter, "Connections that were opened to the store's database.", count.connects),
      MetricFamily(
        "moongate_store_connects_failed_total", .counter, "Connections to the store's database that could not be opened.", count.refusedConnects),
      MetricFamily(
        "moongate_store_notifications_total", .counter, "Times that the database told of changes of sessions, so that nobody waited for a look.",
        count.notifications),
    ]
  }
}
