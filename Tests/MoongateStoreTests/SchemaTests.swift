import GRDB
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateStore

/// The steps of the schema, and the lists kept beside them.
@Suite struct SchemaTests {
  /// A program with a further step migrates a store, and keeps everything in it. A gateway that does not know the step
  /// and has the store open continues; its next start is refused.
  @Test func aFurtherStepKeepsAllDataAndRunningGateways() async throws {
    let folder = try ScratchFolder()
    let path = folder.path("moongate.db")
    let running = try SQLiteStore(path: path, keyFingerprint: [1])
    try await PopulatedStore.fill(running)
    let known = Schema.current.version
    let newer = try StoreCopier(.sqlite(path: path), schema: .next)
    #expect(try newer.version() == known)
    #expect(try newer.migrate() == known)
    #expect(try newer.version() == known + 1 && newer.migrate() == known + 1)
    let report = try newer.check()
    #expect(report.findings == [] && report.counts.first { $0.table == "account" }?.rows == 21)
    let queue = try DatabaseQueue(path: path)
    #expect(try await queue.read { db in try Int.fetchOne(db, sql: "SELECT count(made_up) FROM account") } == 0)
    try await queue.write { db in try db.execute(sql: "INSERT INTO made_up_table (name) VALUES ('new')") }
    _ = try await running.recordHeartbeat(ServingNode(id: "a b c", generation: "g", seenAt: PopulatedStore.now))
    #expect(try await running.nodes(at: PopulatedStore.now).count == 1)
    try running.close()
    #expect(throws: StoreRefusal.newerSchema(path: path, found: known + 1, known: known)) {
      try SQLiteStore(path: path, keyFingerprint: [1])
    }
  }

  @Test func anEmptyStoreGetsAllSteps() async throws {
    let folder = try ScratchFolder()
    let store = try StoreCopier(.sqlite(path: folder.path("moongate.db")), schema: .next)
    #expect(try store.version() == nil && store.migrate() == 0)
    #expect(try store.version() == Schema.next.version)
  }

  /// Copies and checks of a store read tables by this list.
  @Test func theListOfTablesIsTheSchemas() async throws {
    let store = try DatabaseQueue()
    try await store.write { db in for step in Schema.current.steps(after: 0, .sqlite) { try db.execute(sql: step) } }
    try await store.read { db in
      let names = try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'table'")
      #expect(Set(names) == Set(Schema.tables.map(\.name)))
      for table in Schema.tables {
        let found = try Row.fetchAll(
          db, sql: "SELECT name, type, pk FROM pragma_table_info('\(table.name)') ORDER BY cid")
        #expect(found.map { $0[0] as String } == table.columns.map(\.name), "\(table.name)")
        let kinds: [Schema.Column.Kind: String] = [.integer: "INTEGER", .text: "TEXT", .bytes: "BLOB"]
        #expect(found.map { $0[1] as String } == table.columns.compactMap { kinds[$0.kind] }, "\(table.name)")
        let key = found.filter { ($0[2] as Int) > 0 }.sorted { ($0[2] as Int) < ($1[2] as Int) }
        #expect(key.map { $0[0] as String } == table.key, "\(table.name)")
      }
    }
  }

  @Test func theKeyOfAStoreIsReplacedOnce() async throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1])
    let now = ManualClock.start
    #expect(try await store.replaceFingerprint([3], with: [2], at: now) == .notTheirs)
    // Attack: somebody guesses while one gateway counts by the old key and another by the new one, and has twice the
    // attempts.
    let node = ServingNode(id: "here 127.0.0.1:8080 x", generation: "g", seenAt: now)
    _ = try await store.recordHeartbeat(node)
    #expect(try await store.replaceFingerprint([1], with: [2], at: now + .milliseconds(14_999)) == .served([node]))
    #expect(node.name == "here 127.0.0.1:8080")
    #expect(try await store.replaceFingerprint([1], with: [2], at: now + .seconds(15)) == .replaced)
    #expect(
      try await store.replaceFingerprint([1], with: [2], at: now + .seconds(15)) == .replaced,
      "what was done already is no error")
    try store.close()
    #expect(throws: StoreRefusal.self) { try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1]) }
    try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [2]).close()
  }
}
