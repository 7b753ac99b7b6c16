import Foundation
import GRDB
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateStore

/// Copying SQLite into SQLite: nothing is lost, and what fails leaves nothing.
@Suite struct StoreCopyTests {
  private let folder: ScratchFolder
  private var source: String { folder.path("source.db") }
  private var target: String { folder.path("deep/target.db") }

  init() throws { folder = try ScratchFolder() }

  private func vault(_ path: String) throws -> StoreVault { try StoreVault(.sqlite(path: path)) }

  private func fill(rounds: Int = 20) async throws {
    let store = try SQLiteStore(path: source, keyFingerprint: [1])
    try await Estate.fill(store, rounds: rounds)
    try store.close()
  }

  private func rows(_ path: String) throws -> [String: Int] {
    try DatabaseQueue(path: path).read { db in
      try Dictionary(uniqueKeysWithValues: Schema.tables.map { ($0.name, try Int.fetchOne(db, sql: "SELECT count(*) FROM \($0.name)") ?? -1) })
    }
  }

  @Test func nothingIsLost() async throws {
    // More rows than a page has, and more than one batch.
    try await fill(rounds: 620)
    var copied: [CopiedTable] = []
    #expect(try vault(source).copy(to: vault(target)) { copied.append($0) } == false)
    #expect(copied.map(\.name) == Schema.tables.map(\.name).filter { $0 != "node" })
    #expect(copied.allSatisfy { $0.digest.count == 64 && $0.rows > 0 }, "\(copied)")
    #expect(try rows(target) == rows(source))
    #expect(try vault(target).check().findings == [])
    let store = try SQLiteStore(path: target, keyFingerprint: [1])
    #expect(try await Estate.missing(in: store, rounds: 620) == [])
    #expect(throws: StoreRefusal.otherKey(path: target)) { try SQLiteStore(path: target, keyFingerprint: [2]) }
  }

  @Test func theSameRowsHaveTheSameDigest() async throws {
    try await fill()
    var first: [CopiedTable] = []
    var second: [CopiedTable] = []
    _ = try vault(source).copy(to: vault(target)) { first.append($0) }
    _ = try vault(target).copy(to: vault(folder.path("again.db"))) { second.append($0) }
    #expect(first == second)
  }

  @Test func whatIsNotEmptyIsNotTouched() async throws {
    try await fill()
    try SQLiteStore(path: target, keyFingerprint: [7]).close()
    let refusal = CopyRefusal.notEmpty(name: "sqlite:\(target)", table: "meta")
    #expect(throws: refusal) { try vault(source).copy(to: vault(target)) { _ in } }
    #expect(refusal.description == "sqlite:\(target) is not empty: its table meta has rows. Name a database that no gateway has used.")
    #expect(try rows(target)["meta"] == 1 && rows(target)["account"] == 0)
    // Onto itself, too.
    #expect(throws: CopyRefusal.self) { try vault(source).copy(to: vault(source)) { _ in } }
  }

  @Test func whatFailsHalfWayLeavesNothing() async throws {
    try await fill()
    // A row that somebody else wrote, in the last table.
    try await DatabaseQueue(path: source).write { db in try db.execute(sql: "INSERT INTO event (id, at, event) VALUES ('dc', 'noon', x'')") }
    var told = 0
    #expect(throws: StoreFault("the store holds a damaged number")) { try vault(source).copy(to: vault(target)) { _ in told += 1 } }
    #expect(told == 11)
    #expect(try rows(target).values.allSatisfy { $0 == 0 })
    #expect(throws: CopyRefusal.nothingThere(name: "sqlite:\(folder.path("none.db"))")) {
      try vault(folder.path("none.db")).copy(to: vault(target)) { _ in }
    }
  }

  @Test func whatIsWrittenMeanwhileIsLeftOutAndTold() async throws {
    try await fill()
    let other = try DatabaseQueue(path: source)
    let before = try rows(source)
    let goesOn = try vault(source).copy(to: vault(target)) { table in
      guard table.name == "meta" else { return }
      #expect(throws: Never.self) { try other.write { db in try db.execute(sql: "INSERT INTO event (id, at, event) VALUES ('dc', 1, x'')") } }
    }
    #expect(goesOn)
    #expect(try rows(target) == before)
  }

  @Test func anOlderSchemaIsNotCopied() throws {
    try Self.makeFirst(source)
    let refusal = CopyRefusal.olderSchema(name: "sqlite:\(source)", found: 1, known: 2)
    #expect(throws: refusal) { try vault(source).copy(to: vault(target)) { _ in } }
    #expect(
      refusal.description
        == "The schema of sqlite:\(source) is 1, and this program's is 2: bring it up to date first, by `moongate store migrate`.")
  }

  /// A store as the first version of the schema has it.
  static func makeFirst(_ path: String) throws {
    try DatabaseQueue(path: path).write { db in
      try db.execute(sql: Schema.steps(after: 0, .sqlite)[0])
      try db.execute(sql: "PRAGMA application_id = \(Schema.application); PRAGMA user_version = 1")
    }
  }
}
