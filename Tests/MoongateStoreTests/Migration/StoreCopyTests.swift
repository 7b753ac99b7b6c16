import Foundation
import GRDB
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateStore

/// Copies from SQLite to SQLite: nothing is lost, and a failed copy leaves nothing.
@Suite struct StoreCopyTests {
  private let folder: ScratchFolder
  private var source: String { folder.path("source.db") }
  private var target: String { folder.path("deep/target.db") }

  init() throws { folder = try ScratchFolder() }

  private func copier(_ path: String) throws -> StoreCopier { try StoreCopier(.sqlite(path: path)) }

  private func fill(rounds: Int = 20) async throws {
    let store = try SQLiteStore(path: source, keyFingerprint: [1])
    try await PopulatedStore.fill(store, rounds: rounds)
    try store.close()
  }

  private func rows(_ path: String) throws -> [String: Int] {
    try DatabaseQueue(path: path).read { db in
      try Dictionary(
        uniqueKeysWithValues: Schema.tables.map {
          ($0.name, try Int.fetchOne(db, sql: "SELECT count(*) FROM \($0.name)") ?? -1)
        })
    }
  }

  @Test func nothingIsLost() async throws {
    // More rows than a page has, and more than one batch.
    try await fill(rounds: 620)
    var copied: [CopiedTable] = []
    try copier(source).copy(to: copier(target)) { copied.append($0) }
    #expect(copied.map(\.name) == Schema.tables.map(\.name).filter { !["node", "lease", "audit_cursor"].contains($0) })
    #expect(copied.allSatisfy { $0.digest.count == 64 && $0.rows > 0 }, "\(copied)")
    #expect(try rows(target) == rows(source))
    #expect(try copier(target).check().findings == [])
    let store = try SQLiteStore(path: target, keyFingerprint: [1])
    #expect(try await PopulatedStore.missing(in: store, rounds: 620) == [])
    #expect(throws: StoreRefusal.otherKey(path: target)) { try SQLiteStore(path: target, keyFingerprint: [2]) }
  }

  @Test func theSameRowsHaveTheSameDigest() async throws {
    try await fill()
    var first: [CopiedTable] = []
    var second: [CopiedTable] = []
    try copier(source).copy(to: copier(target)) { first.append($0) }
    try copier(target).copy(to: copier(folder.path("again.db"))) { second.append($0) }
    #expect(first == second)
  }

  @Test func nonEmptyTargetIsNotChanged() async throws {
    try await fill()
    try SQLiteStore(path: target, keyFingerprint: [7]).close()
    let refusal = CopyRefusal.notEmpty(name: "sqlite:\(target)", table: "meta")
    #expect(throws: refusal) { try copier(source).copy(to: copier(target)) { _ in } }
    #expect(
      refusal.description
        == "sqlite:\(target) is not empty: its table meta has rows. Name a database that no gateway has used.")
    #expect(try rows(target)["meta"] == 1 && rows(target)["account"] == 0)
    // Copying a store onto itself is refused too.
    #expect(throws: CopyRefusal.self) { try copier(source).copy(to: copier(source)) { _ in } }
  }

  @Test func failedCopyLeavesAnEmptyTarget() async throws {
    try await fill()
    // An invalid row in a late table, written by another program.
    try await DatabaseQueue(path: source).write { db in
      try db.execute(sql: "INSERT INTO event (id, at, event) VALUES ('dc', 'noon', x'')")
    }
    var told = 0
    #expect(throws: StoreFault("the store holds a damaged number")) {
      try copier(source).copy(to: copier(target)) { _ in told += 1 }
    }
    #expect(told > 0 && told == Schema.moved.firstIndex { $0.name == "event" })
    #expect(try rows(target).values.allSatisfy { $0 == 0 })
    #expect(throws: CopyRefusal.nothingThere(name: "sqlite:\(folder.path("none.db"))")) {
      try copier(folder.path("none.db")).copy(to: copier(target)) { _ in }
    }
  }

  /// Whatever is written during a copy would be lost with the source: in each table, by any writer, even if nothing
  /// else changes.
  @Test(arguments: [
    ("event", "INSERT INTO event (id, at, event) VALUES ('dc', 1, x'')"),
    ("account", "UPDATE account SET is_locked = 1 WHERE id = 'ac_3'"),
    ("tally", "DELETE FROM tally"), ("session", "UPDATE session SET last_seen_at = last_seen_at + 1"),
    ("timer", "DELETE FROM timer"),
    ("meta", "UPDATE meta SET moment = moment + 1"),
  ])
  func concurrentWriteFailsTheCopy(table: String, sql: String) async throws {
    try await fill()
    let other = try DatabaseQueue(path: source)
    let refusal = CopyRefusal.written(name: "sqlite:\(source)", table: table)
    #expect(throws: refusal) {
      try copier(source).copy(to: copier(target)) { copied in
        // This happens after its own table has been copied, too.
        guard copied.name == "event" else { return }
        #expect(throws: Never.self) { try other.write { db in try db.execute(sql: sql) } }
      }
    }
    #expect(try rows(target).values.allSatisfy { $0 == 0 })
    // The next attempt copies it.
    try copier(source).copy(to: copier(target)) { _ in }
    #expect(try rows(target) == rows(source))
  }

  /// A gateway reports every three seconds that it serves; what it writes to one store would be missing in the other.
  @Test func servedStoreIsNotCopied() async throws {
    try await fill()
    let store = try SQLiteStore(path: source, keyFingerprint: [1])
    let now = SystemClock(floor: Timestamp(milliseconds: 0)).now()
    _ = try await store.recordHeartbeat(ServingNode(id: "here 127.0.0.1:8080 x", generation: "g", seenAt: now))
    let refusal = CopyRefusal.served(name: "sqlite:\(source)", gateways: ["here 127.0.0.1:8080"])
    var told = 0
    #expect(throws: refusal) { try copier(source).copy(to: copier(target)) { _ in told += 1 } }
    #expect(told == 0)
    #expect(
      refusal.description
        == "sqlite:\(source) is served by here 127.0.0.1:8080; nothing was changed. Stop every gateway that serves from it, "
        + "and try again. One that was killed counts for 15s more.")
    // One that ends says so, and one that was killed is forgotten.
    _ = try await store.recordHeartbeat(
      ServingNode(id: "there 127.0.0.1:8080 y", generation: "g", seenAt: now - ServingNode.livenessTimeout))
    try await store.leave("here 127.0.0.1:8080 x", at: now)
    try copier(source).copy(to: copier(target)) { _ in }
    // A gateway that starts during the copy.
    #expect(throws: refusal) {
      try copier(source).copy(to: copier(folder.path("late.db"))) { table in
        guard table.name == "meta" else { return }
        #expect(throws: Never.self) {
          try DatabaseQueue(path: source).write { db in
            try db.execute(
              sql: "INSERT INTO node VALUES ('here 127.0.0.1:8080 z', 'g', ?, '')",
              arguments: [now.milliseconds + 60_000])
          }
        }
      }
    }
    #expect(try rows(folder.path("late.db")).values.allSatisfy { $0 == 0 })
  }

  @Test func aTargetThatIsServedIsNotTouched() async throws {
    try await fill()
    let store = try SQLiteStore(path: target, keyFingerprint: [1])
    let now = SystemClock(floor: Timestamp(milliseconds: 0)).now()
    _ = try await store.recordHeartbeat(ServingNode(id: "here 127.0.0.1:8080 x", generation: "g", seenAt: now))
    // The target is emptied while a gateway serves from it.
    try await DatabaseQueue(path: target).write { db in try db.execute(sql: "DELETE FROM meta") }
    #expect(throws: CopyRefusal.served(name: "sqlite:\(target)", gateways: ["here 127.0.0.1:8080"])) {
      try copier(source).copy(to: copier(target)) { _ in }
    }
  }

  /// A NUL that a statement of an operator has stored: PostgreSQL refuses it.
  @Test func storedNULIsReplacedByTheCopy() async throws {
    try await fill()
    try await DatabaseQueue(path: source).write { db in
      try db.execute(sql: "UPDATE account SET first_name = CAST(x'610062' AS TEXT) WHERE id = 'ac_3'")
    }
    try copier(source).copy(to: copier(target)) { _ in }
    let store = try SQLiteStore(path: target, keyFingerprint: [1])
    #expect(try await store.account("ac_3")?.firstName == "a\u{fffd}b")
  }

  @Test func anOlderSchemaIsNotCopied() async throws {
    try await fill()
    let known = Schema.current.version
    let refusal = CopyRefusal.olderSchema(name: "sqlite:\(source)", found: known, known: known + 1)
    let newer = try StoreCopier(.sqlite(path: source), schema: .next)
    #expect(throws: refusal) { try newer.copy(to: StoreCopier(.sqlite(path: target), schema: .next)) { _ in } }
    #expect(
      refusal.description
        == "The schema of sqlite:\(source) is \(known), and this program's is \(known + 1): bring it up to date first, by `moongate store migrate`."
    )
  }
}
