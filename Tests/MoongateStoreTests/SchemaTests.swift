import GRDB
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateStore

/// The steps of the schema: shipped steps never change, and the lists kept beside them agree with it.
@Suite struct SchemaTests {
  /// A shipped step is never run again: changing it would result in two schemas with the same number.
  @Test(arguments: [(0, "6a49309c3d9932fdcb0196d53b867290c39424c4d950bf44f78ae66c529f831f")])
  func shippedSQLiteStepsDoNotChange(step: Int, digest: String) {
    let hash = TokenHash(of: Schema.steps(after: step, .sqlite)[0].utf8).bytes
    #expect(hash.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() == digest)
  }

  @Test func anOlderStoreIsBroughtUpToDateWithAllThatItHas() async throws {
    let folder = try ScratchFolder()
    let path = folder.path("moongate.db")
    try StoreCopyTests.makeFirst(path)
    try await DatabaseQueue(path: path).write { db in
      try db.execute(
        sql: "INSERT INTO meta VALUES (1, x'01', 5); INSERT INTO account VALUES ('ac_1', 'Asha', NULL, 1, 2, 0)")
    }
    let copier = try StoreCopier(.sqlite(path: path))
    #expect(try copier.version() == 1)
    #expect(try copier.migrate() == 1)
    #expect(try copier.version() == Schema.version && copier.migrate() == Schema.version)
    let store = try SQLiteStore(path: path, keyFingerprint: [1])
    #expect(try await store.account("ac_1")?.firstName == "Asha")
    #expect(try await store.account("ac_1")?.epoch == 0)
    #expect(try await store.latestMoment() == Timestamp(milliseconds: 5))
  }

  /// Copies and checks of a store read tables by this list.
  @Test func theListOfTablesIsTheSchemas() async throws {
    let store = try DatabaseQueue()
    try await store.write { db in for step in Schema.steps(after: 0, .sqlite) { try db.execute(sql: step) } }
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
