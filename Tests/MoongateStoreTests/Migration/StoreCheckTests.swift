import GRDB
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateStore

/// What `moongate store check` finds, and what it leaves alone.
@Suite struct StoreCheckTests {
  private let folder: ScratchFolder
  private var path: String { folder.path("moongate.db") }

  init() throws { folder = try ScratchFolder() }

  private func findings() throws -> [String] { try StoreCopier(.sqlite(path: path)).check().findings }

  private func harm(_ sql: String) async throws {
    let store = try SQLiteStore(path: path, keyFingerprint: [1])
    try await PopulatedStore.fill(store)
    // Otherwise its last connection, which ends some time later, would still lock the file.
    try store.close()
    try await DatabaseQueue(path: path).writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; \(sql)")
    }
  }

  @Test func aStoreInUseIsWhole() async throws {
    let store = try SQLiteStore(path: path, keyFingerprint: [1])
    try await PopulatedStore.fill(store)
    let report = try StoreCopier(.sqlite(path: path)).check()
    #expect(report.findings == [] && report.version == Schema.current.version)
    #expect(report.counts.first { $0.table == "account" }?.rows == 21)
    while try await store.prune(at: PopulatedStore.now + .seconds(7200)) {}
    #expect(try findings() == [])
  }

  @Test(arguments: [
    ("DELETE FROM meta", "accounts in a store that names no master key: 21"),
    (
      "UPDATE counter SET counted = counted + 1 WHERE key = x'00ff07'",
      "counters with a wrong number of attempts: 1"
    ),
    ("UPDATE counter SET oldest = 5 WHERE key = x'00ff07'", "counters with a wrong time of the oldest attempt: 1"),
    ("DELETE FROM counter WHERE key = x'00ff07'", "missing counters that have attempts: 1"),
    (
      "DROP INDEX identifier_verified; INSERT INTO identifier (account, position, kind, value, display, attributes, verified_at) SELECT 'ac_1', 5, kind, value, '', '{}', 1 FROM identifier WHERE kind = 'phone'",
      "identifiers verified by more than one account: 1"
    ),
    (
      "INSERT INTO identifier (account, position, kind, value, display, attributes) SELECT account, 7, kind, value, display, attributes FROM identifier WHERE kind = 'phone'",
      "identifiers stored twice for one account: 1"
    ),
    ("DELETE FROM account WHERE id = 'ac_3'", "sessions without an account: 1"),
    ("DELETE FROM account WHERE id = 'ac_zoe'", "identifiers without an account: 2"),
    ("DELETE FROM account WHERE id = 'ac_zoe'", "providers' records without an account: 1"),
    ("DELETE FROM account WHERE id = 'ac_zoe'", "connected apps without an account: 1"),
    ("UPDATE app_grant SET session_due = NULL", "grants of apps whose sessions are not watched: 1"),
    ("UPDATE account SET is_locked = 1 WHERE id = 'ac_3'", "sessions of locked accounts: 1"),
    (
      "INSERT INTO session_change VALUES (9, 1, x'00', NULL)",
      "missing numbers of session changes: "
    ),
    ("INSERT INTO session_change (at) VALUES (1)", "session changes without a token or an account: 1"),
    ("UPDATE flow SET version = 0 WHERE number = 1", "flows without a version: 1"),
  ])
  func findsDamage(harm sql: String, finding: String) async throws {
    try await harm(sql)
    let found = try findings()
    #expect(found.contains { $0.hasPrefix(finding) }, "\(found)")
  }

  @Test func findsDamagedReferencesAndAnOldSchema() async throws {
    try await harm("DELETE FROM account WHERE id = 'ac_3'; DROP TABLE node")
    let known = Schema.current.version
    let found = try StoreCopier(.sqlite(path: path), schema: .next).check()
    #expect(found.version == known && found.counts == [])
    #expect(found.findings.first == "damage: a row of session belongs to nothing")
    #expect(
      found.findings.last
        == "the schema is \(known), and this program's is \(known + 1): `moongate store migrate` brings it up to date")
  }

  @Test func missingStoreIsReported() {
    #expect(throws: CopyRefusal.nothingThere(name: "sqlite:\(path)")) { try StoreCopier(.sqlite(path: path)).check() }
    #expect(
      CopyRefusal.nothingThere(name: "sqlite:\(path)").description
        == "There is no store at sqlite:\(path) yet. A gateway creates it at its first start; "
        + "if one has used it before, `store` names another place.")
  }
}
