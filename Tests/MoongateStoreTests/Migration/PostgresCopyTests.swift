import Foundation
import GRDB
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateStore

/// Copies to PostgreSQL, back, and between two databases: nothing is lost, digests agree, and a failed copy leaves
/// nothing.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) struct PostgresCopyTests {
  private let folder: ScratchFolder
  private let server: PostgresServer

  init() throws {
    folder = try ScratchFolder()
    server = try #require(PostgresServer.shared)
  }

  private func sqlite(_ name: String) throws -> StoreCopier { try StoreCopier(.sqlite(path: folder.path(name))) }
  private func postgres(_ database: String) throws -> StoreCopier {
    try StoreCopier(.postgres(url: server.url(database)))
  }

  private func copied(_ source: StoreCopier, _ target: StoreCopier) throws -> [CopiedTable] {
    var tables: [CopiedTable] = []
    try source.copy(to: target) { tables.append($0) }
    return tables
  }

  /// Fills `source.db`.
  private func fill(rounds: Int = 20) async throws {
    let store = try SQLiteStore(path: folder.path("source.db"), keyFingerprint: [1])
    try await PopulatedStore.fill(store, rounds: rounds)
    try store.close()
  }

  @Test func copyThereAndBackLosesNothing() async throws {
    try await fill(rounds: 620)
    let (first, second) = (try server.makeDatabase(), try server.makeDatabase())
    let there = try copied(try sqlite("source.db"), try postgres(first))
    let on = try copied(try postgres(first), try postgres(second))
    let back = try copied(try postgres(second), try sqlite("back.db"))
    #expect(there == on && on == back)
    #expect(there.allSatisfy { $0.rows > 0 })
    for copier in [try postgres(first), try postgres(second), try sqlite("back.db")] {
      #expect(try copier.check().findings == [], "\(copier.name)")
    }
    let moved = try PostgresStore(url: server.url(second), keyFingerprint: [1])
    #expect(try await PopulatedStore.missing(in: moved, rounds: 620) == [])
    try moved.close()
    #expect(
      try await PopulatedStore.missing(
        in: try SQLiteStore(path: folder.path("back.db"), keyFingerprint: [1]), rounds: 620)
        == [])
    #expect(throws: StoreRefusal.self) { try PostgresStore(url: server.url(first), keyFingerprint: [2]) }
  }

  @Test func failedCopyLeavesAnEmptyTarget() async throws {
    try await fill()
    // An invalid row in the last table, written by another program.
    try await DatabaseQueue(path: folder.path("source.db")).write { db in
      try db.execute(sql: "INSERT INTO event (id, at, event) VALUES ('dc', 'noon', x'')")
    }
    let database = try server.makeDatabase()
    #expect(throws: (any Error).self) { try sqlite("source.db").copy(to: postgres(database)) { _ in } }
    for table in Schema.tables {
      #expect(try server.sql("SELECT count(*) FROM \(table.name)", in: database) == "0", "\(table.name)")
    }
  }

  /// Attack on ourselves: a gateway that still serves writes its time at most once a second and may write nothing else;
  /// whatever it writes would be lost.
  @Test func concurrentWriteFailsTheCopy() async throws {
    let database = try server.makeDatabase()
    let store = try PostgresStore(url: server.url(database), keyFingerprint: [1])
    try await PopulatedStore.fill(store)
    try store.close()
    let source = try postgres(database)
    #expect(throws: CopyRefusal.written(name: source.name, table: "tally")) {
      try source.copy(to: sqlite("target.db")) { table in
        guard table.name == "event" else { return }
        #expect(throws: Never.self) { try server.sql("DELETE FROM tally", in: database) }
      }
    }
    #expect(try sqlite("target.db").fingerprint() == nil)
    // The copy succeeds without concurrent writes, and is refused while a gateway serves from either store.
    let beat = "INSERT INTO node VALUES ('here 127.0.0.1:8080 x', 'g', extract(epoch FROM now()) * 1000, '')"
    try server.sql(beat, in: database)
    #expect(throws: CopyRefusal.served(name: source.name, gateways: ["here 127.0.0.1:8080"])) {
      try source.copy(to: sqlite("target.db")) { _ in }
    }
    try server.sql("DELETE FROM node", in: database)
    let other = try server.makeDatabase()
    let target = try postgres(other)
    _ = try target.migrate()
    try server.sql(beat, in: other)
    #expect(throws: CopyRefusal.served(name: target.name, gateways: ["here 127.0.0.1:8080"])) {
      try source.copy(to: target) { _ in }
    }
    try server.sql("DELETE FROM node", in: other)
    try source.copy(to: target) { _ in }
    #expect(try target.fingerprint() == [1])
  }

  /// A gateway that starts on the target during the copy finds either nothing or everything, and does not claim the
  /// target in between.
  @Test func aGatewayThatStartsOnTheTargetMeanwhileWaits() async throws {
    try await fill()
    let database = try server.makeDatabase()
    try sqlite("source.db").copy(to: postgres(database)) { table in
      guard table.name == "meta" else { return }
      #expect(throws: (any Error).self) {
        try server.sql(
          "SET lock_timeout = '100ms'; INSERT INTO meta VALUES (1, '\\x07', 0) ON CONFLICT DO NOTHING", in: database)
      }
      #expect(throws: (any Error).self) {
        try server.sql("SET lock_timeout = '100ms'; INSERT INTO node VALUES ('n', 'g', 1, '')", in: database)
      }
    }
    #expect(try postgres(database).fingerprint() == [1])
  }

  /// SQLite would store a NUL in text and PostgreSQL refuses it: neither store keeps one.
  @Test func storedNULIsReplacedByTheCopy() async throws {
    try await fill()
    try await DatabaseQueue(path: folder.path("source.db")).write { db in
      try db.execute(sql: "UPDATE account SET first_name = CAST(x'610062' AS TEXT) WHERE id = 'ac_3'")
    }
    let database = try server.makeDatabase()
    let there = try copied(try sqlite("source.db"), try postgres(database))
    #expect(try server.sql("SELECT first_name FROM account WHERE id = 'ac_3'", in: database) == "a\u{fffd}b")
    #expect(try copied(try postgres(database), try sqlite("back.db")) == there)
  }

  @Test func nonEmptyOrMissingDatabaseIsRefused() async throws {
    let database = try server.makeDatabase()
    #expect(throws: CopyRefusal.self) { try postgres(database).copy(to: sqlite("target.db")) { _ in } }
    try PostgresStore(url: server.url(database), keyFingerprint: [7]).close()
    try SQLiteStore(path: folder.path("source.db"), keyFingerprint: [1]).close()
    let target = try postgres(database)
    #expect(throws: CopyRefusal.notEmpty(name: target.name, table: "meta")) {
      try sqlite("source.db").copy(to: target) { _ in }
    }
    #expect(!target.name.contains("secret"), "a password is not told")
  }

  /// Copies and checks of a store read tables by this list.
  @Test func theListOfTablesIsTheSchemas() throws {
    let database = try server.makeDatabase()
    #expect(try postgres(database).migrate() == 0)
    #expect(try postgres(database).version() == Schema.current.version)
    for table in Schema.tables {
      // The transaction id of an event is meaningful only in its own database.
      let found = try server.sql(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '\(table.name)' AND (column_name <> 'xact' OR table_name <> 'event') ORDER BY ordinal_position",
        in: database)
      let kinds: [Schema.Column.Kind: String] = [.integer: "bigint", .text: "text", .bytes: "bytea"]
      #expect(
        found == table.columns.map { "\($0.name)|\(kinds[$0.kind] ?? "")" }.joined(separator: "\n"), "\(table.name)")
    }
  }

  /// A program with a further step migrates a store, and keeps everything in it. A gateway that does not know the step
  /// and is connected continues; its next start is refused.
  @Test func aFurtherStepKeepsAllDataAndRunningGateways() async throws {
    let database = try server.makeDatabase()
    let running = try PostgresStore(url: server.url(database), keyFingerprint: [1])
    try await PopulatedStore.fill(running)
    let known = Schema.current.version
    let newer = try StoreCopier(.postgres(url: server.url(database)), schema: .next)
    #expect(try newer.migrate() == known && newer.migrate() == known + 1)
    let report = try newer.check()
    #expect(report.findings == [] && report.counts.first { $0.table == "account" }?.rows == 21)
    #expect(
      try server.sql(
        "INSERT INTO made_up_table VALUES ('new'); SELECT count(made_up) FROM account; SELECT version FROM moongate_schema",
        in: database) == "0\n\(known + 1)")
    _ = try await running.recordHeartbeat(ServingNode(id: "a b c", generation: "g", seenAt: PopulatedStore.now))
    try running.close()
    #expect(throws: StoreRefusal.newerSchema(path: newer.name, found: known + 1, known: known)) {
      try PostgresStore(url: server.url(database), keyFingerprint: [1])
    }
  }

  @Test(arguments: [
    ("DELETE FROM session_number", "session_number does not have exactly one row: session changes cannot be numbered"),
    ("UPDATE session_number SET number = 0", "the next number of session changes is already in use"),
    (
      "UPDATE counter SET counted = counted + 1 WHERE key = '\\x00ff07'",
      "counters with a wrong number of attempts: 1"
    ),
  ])
  func findsDamage(harm sql: String, finding: String) async throws {
    let database = try server.makeDatabase()
    let store = try PostgresStore(url: server.url(database), keyFingerprint: [1])
    try await PopulatedStore.fill(store)
    try store.close()
    #expect(try postgres(database).check().findings == [])
    try server.sql(sql, in: database)
    #expect(try postgres(database).check().findings == [finding])
  }
}
