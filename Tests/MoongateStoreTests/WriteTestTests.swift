import MoongateCore
import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateStore

/// A database that refuses writes while it is full.
private struct FullDatabase<Base: SQLDatabase>: SQLDatabase {
  let base: Base
  let isFull = Flag()
  let writes = Flag()

  final class Flag: Sendable {
    private let value = Mutex(0)
    var count: Int {
      get { value.withLock { $0 } }
      set { value.withLock { $0 = newValue } }
    }
  }

  func read<Value: Sendable>(_ body: @escaping @Sendable (Base.Transaction) throws -> Value) async throws -> Value {
    try await base.read(body)
  }

  func write<Value: Sendable>(
    at moment: Timestamp, _ body: @escaping @Sendable (Base.Transaction) throws -> Value
  ) async throws -> Value {
    writes.count += 1
    if isFull.count > 0 { throw StoreFault("its disk is full") }
    return try await base.write(at: moment, body)
  }

  func forgetDeleted() async { await base.forgetDeleted() }

  func close() throws(StoreFault) { try base.close() }
}

private struct FullStore<Base: SQLDatabase>: SQLStore {
  let database: FullDatabase<Base>
  let memory = SQLStoreMemory()
}

/// Whether a store can be written, for `/readyz`.
@Suite struct WriteTestTests {
  private let now = Timestamp(milliseconds: 1_767_225_600_000)

  @Test func writesAreTestedAfterOneHasFailed() async throws {
    let store = FullStore(database: FullDatabase(base: try SQLiteStore.memory().database))
    let node = ServingNode(id: "a", generation: "g", seenAt: now)
    _ = try await store.recordHeartbeat(node)
    try await store.demandWrites(at: now)
    #expect(store.database.writes.count == 1, "it costs nothing while writes succeed")
    store.database.isFull.count = 1
    try await store.demandWrites(at: now)
    await #expect(throws: StoreFault.self) { _ = try await store.recordHeartbeat(node) }
    for _ in 0..<3 {
      let fault = await #expect(throws: StoreFault.self) { try await store.demandWrites(at: now) }
      #expect(fault?.description.contains("its disk is full") ?? false)
    }
    _ = try await store.latestMoment()
    store.database.isFull.count = 0
    _ = try await store.recordHeartbeat(node)
    let before = store.database.writes.count
    try await store.demandWrites(at: now)
    #expect(store.database.writes.count == before + 2, "the small write of the heartbeat is no proof")
    try await store.demandWrites(at: now)
    #expect(store.database.writes.count == before + 2)
    let holder = try await store.read { rows in
      try rows.row("SELECT holder FROM lease WHERE name = 'write test'")?.text(0)
    }
    #expect(holder == "-", "the test leaves no large row")
  }
}
