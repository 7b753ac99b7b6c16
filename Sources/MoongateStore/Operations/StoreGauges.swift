import Foundation
import MoongateCore
import Synchronization

/// The contents and size of a store, read when metrics are requested and cached for 15 seconds, so that many scrapers
/// cost no more than one. Counting millions of sessions takes a second; at most a hundredth of the time is spent on it.
package actor StoreGauges {
  private static let life: Duration = .seconds(15)
  /// How many times longer than it took a count is cached.
  private static let lifeFactor = 100

  private let store: any SQLStore
  private let clock: any GatewayClock
  /// The path of a SQLite store.
  private let path: String?
  private var known: (families: [MetricFamily], until: ContinuousClock.Instant)?
  private let steady: @Sendable () -> ContinuousClock.Instant

  /// - Parameter path: the file of a SQLite store; nil to ask the database for its size.
  package init(
    _ store: any SQLStore, clock: any GatewayClock, path: String?,
    steady: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.store = store
    self.clock = clock
    self.path = path
    self.steady = steady
  }

  /// The metrics for Prometheus. Without counts if the store does not respond.
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
    known = (families, now + max(Self.life, (now - began) * Self.lifeFactor))
    return timing + families
  }

  /// Includes the query of the counts itself.
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
  /// Scans the table of sessions: milliseconds for a hundred thousand, outside of requests.
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
