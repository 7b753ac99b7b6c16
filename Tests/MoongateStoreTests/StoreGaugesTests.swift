import Foundation
import MoongateCore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateStore

/// What `/metrics` reports about a store.
@Suite struct StoreGaugesTests {
  private func value(_ name: String, _ families: [MetricFamily], _ label: String? = nil) -> Double? {
    families.first { $0.name == name }?.samples.first { sample in
      label == nil || sample.labels.contains { $0.value == label }
    }?.value
  }

  @Test func gaugesIncludeLocksSessionsAndSizes() async throws {
    let folder = try ScratchFolder()
    let path = folder.path("moongate.db")
    let store = try SQLiteStore(path: path, keyFingerprint: [1])
    try await PopulatedStore.fill(store)
    let clock = ManualClock()
    let passed = Mutex<Duration>(.zero)
    let start = ContinuousClock.now
    let gauges = StoreGauges(store, clock: clock, path: path, steady: { start + passed.withLock { $0 } })
    let families = await gauges.families()
    let sessions = try #require(value("moongate_sessions", families))
    #expect(sessions > 0)
    #expect(value("moongate_locks", families) == Double(try await store.locks(at: clock.now()).count))
    #expect(
      (value("moongate_store_bytes", families, "database") ?? 0) > 0
        && value("moongate_store_bytes", families, "wal") != nil)
    let transactions = try #require(families.first { $0.name == "moongate_store_transaction_seconds" })
    let counts = transactions.samples.filter { $0.suffix == "_count" }
    #expect(counts.count == 2 && counts.allSatisfy { $0.value > 0 })
    // Attack on ourselves: many scrapers would keep the store counting. It counts again after an interval.
    clock.advance(by: .seconds(86_400 * 3650))
    #expect(value("moongate_sessions", await gauges.families()) == sessions)
    passed.withLock { $0 = .seconds(15) }
    #expect(value("moongate_sessions", await gauges.families()) == 0)
    // A closed store reports no contents, and earlier counts remain.
    try store.close()
    passed.withLock { $0 = .seconds(30) }
    let closed = await gauges.families()
    #expect(value("moongate_sessions", closed) == nil && (value("moongate_store_faults_total", closed) ?? 0) > 0)
  }

  /// Attack on ourselves: a store with millions of sessions, which takes seconds to count them, counts all the time.
  @Test func expensiveCountsRunRarely() async throws {
    let folder = try ScratchFolder()
    let path = folder.path("moongate.db")
    let store = try SQLiteStore(path: path, keyFingerprint: [1])
    try await PopulatedStore.fill(store)
    let clock = ManualClock()
    // Each reading of the clock is two seconds later, so the count takes two seconds.
    let passed = Mutex<Duration>(.zero)
    let start = ContinuousClock.now
    let gauges = StoreGauges(
      store, clock: clock, path: path,
      steady: {
        start
          + passed.withLock {
            $0 += .seconds(2)
            return $0
          }
      })
    let sessions = try #require(value("moongate_sessions", await gauges.families()))
    clock.advance(by: .seconds(86_400 * 3650))
    for _ in 0..<50 { #expect(value("moongate_sessions", await gauges.families()) == sessions) }
    passed.withLock { $0 += .seconds(100) }
    #expect(value("moongate_sessions", await gauges.families()) == 0)
    try store.close()
  }
}
