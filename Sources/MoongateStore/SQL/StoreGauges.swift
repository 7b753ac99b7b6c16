import Foundation
import MoongateCore
import Synchronization

/// What a store holds and how large it is: read when the metrics are read, and cached for 15 seconds, so that many
/// scrapers cost no more than one. A store of millions of sessions takes a second to count them: it spends a hundredth
/// of its time on that, and no more.
package actor StoreGauges {
  private static let life: Duration = .seconds(15)
  /// How much longer a count is believed than it took.
  private static let patience = 100

  private let store: any SQLStore
  private let clock: any GatewayClock
  /// Of a SQLite store.
  private let path: String?
  private var known: (families: [MetricFamily], until: ContinuousClock.Instant)?
  private let steady: @Sendable () -> ContinuousClock.Instant

  /// - Parameter path: the file of a SQLite store; nil: the database says how large it is.
  package init(
    _ store: any SQLStore, clock: any GatewayClock, path: String?,
    steady: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.store = store
    self.clock = clock
    self.path = path
    self.steady = steady
  }

  /// As Prometheus reads it; without what the store holds while it does not answer.
  package func families() async -> [MetricFamily] {
    let began = steady()
    if let known, began < known.until { return timing + known.families }
    guard let counts = try? await store.gauges(at: clock.now()) else { return timing }
    let families = [
      MetricFamily(.locks, counts.locks),
      MetricFamily(.sessions, counts.sessions),
      MetricFamily(.storeBytes, sizes(counts.bytes)),
    ]
    let now = steady()
    known = (families, now + max(Self.life, (now - began) * Self.patience))
    return timing + families
  }

  /// With what the look itself took.
  private var timing: [MetricFamily] { store.memory.timing.families }

  private func sizes(_ bytes: Int?) -> [MetricFamily.Sample] {
    let size = { (path: String) in (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0 }
    guard let path else { return bytes.map { [MetricFamily.Sample([("part", "database")], Double($0))] } ?? [] }
    return [
      MetricFamily.Sample([("part", "database")], Double(size(path))),
      MetricFamily.Sample([("part", "wal")], Double(size(path + "-wal"))),
    ]
  }
}

extension SQLStore {
  /// Walks the table of sessions: milliseconds for a hundred thousand, off the path of requests.
  fileprivate func gauges(at now: Timestamp) async throws(StoreFault) -> (locks: Int, sessions: Int, bytes: Int?) {
    try await read { rows in
      let locks = try rows.row(
        "SELECT count(*) FROM counter WHERE disabled_since IS NOT NULL OR locked_until > ?1", [SQLValue(now)])?.count(0)
      let sessions = try rows.row("SELECT count(*) FROM session WHERE expires_at > ?1", [SQLValue(now)])?.count(0)
      let bytes =
        rows.dialect == .postgres ? try rows.row("SELECT pg_database_size(current_database())")?.count(0) : nil
      return (locks ?? 0, sessions ?? 0, bytes)
    }
  }
}
