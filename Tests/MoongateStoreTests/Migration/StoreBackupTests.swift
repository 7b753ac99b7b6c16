import Foundation
import GRDB
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateStore

/// Backups: complete, readable by their owner only, and refused if any part was changed.
@Suite struct StoreBackupTests {
  private let folder: ScratchFolder
  private let keys: KeyRing
  private let now = Timestamp(milliseconds: 1_700_000_000_000)
  private var file: String { folder.path("moongate.backup") }

  init() throws {
    folder = try ScratchFolder()
    keys = try KeyRing(master: [UInt8](repeating: 1, count: 32))
  }

  private func sqlite(_ name: String) throws -> StoreCopier { try StoreCopier(.sqlite(path: folder.path(name))) }

  private func fill(_ name: String = "source.db") async throws -> SQLiteStore {
    let store = try SQLiteStore(path: folder.path(name), keyFingerprint: keys.fingerprint)
    try await PopulatedStore.fill(store, rounds: 20)
    return store
  }

  private func restore(to store: StoreCopier, replaces: Bool = false, keepsSessions: Bool = true) throws
    -> StoreCopier.Restored
  {
    try store.restore(from: file, by: keys, replaces: replaces, keepsSessions: keepsSessions) { _ in }
  }

  private func digests(_ store: StoreCopier) throws -> [CopiedTable] {
    var tables: [CopiedTable] = []
    try store.copy(to: sqlite(UUID().uuidString)) { tables.append($0) }
    return tables
  }

  private func leftovers() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path("")).filter {
      $0.hasPrefix("moongate.backup") && $0 != "moongate.backup"
    }
  }

  private func mode(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  /// Attack: another user of the machine reads a backup, which contains every phone number, or finds it half-written.
  @Test func theFileIsForItsOwnerAlone() async throws {
    let store = try await fill()
    let before = umask(0)
    defer { umask(before) }
    try sqlite("source.db").backUp(to: file, by: keys, overwrites: false, at: now) { _ in }
    #expect(try mode(file) == 0o600)
    #expect(try leftovers() == [])
    for open in [0o640, 0o604, 0o620] {
      chmod(file, mode_t(open))
      #expect(throws: BackupRefusal.open(path: file, mode: String(open, radix: 8))) {
        try restore(to: sqlite("target.db"))
      }
    }
    #expect(!FileManager.default.fileExists(atPath: folder.path("target.db")))
    try store.close()
  }

  @Test func restoreContainsTheStateAtTheStartOfTheBackup() async throws {
    let store = try await fill()
    // A gateway serves from it and continues to write.
    _ = try await store.recordHeartbeat(
      ServingNode(id: "here 127.0.0.1:1 x", generation: "g", seenAt: Timestamp(milliseconds: .max / 2), keys: []))
    var rows = 0
    try sqlite("source.db").backUp(to: file, by: keys, overwrites: false, at: now) { rows += $0.rows }
    #expect(rows > 20)
    try store.close()
    try await DatabaseQueue(path: folder.path("source.db")).write { try $0.execute(sql: "DELETE FROM node") }
    let restored = try restore(to: sqlite("target.db"))
    #expect(
      restored.header.createdAt == now.milliseconds && restored.header.schema == Schema.current.version
        && restored.header.key == keys.currentName)
    #expect(try digests(sqlite("target.db")) == digests(sqlite("source.db")))
    #expect(try sqlite("target.db").check().findings == [])
    #expect(try leftovers() == [])
  }

  @Test func restoreReplacesNothingWithoutConfirmation() async throws {
    let store = try await fill()
    try store.close()
    let source = try sqlite("source.db")
    try source.backUp(to: file, by: keys, overwrites: false, at: now) { _ in }
    #expect(throws: BackupRefusal.exists(path: file)) {
      try source.backUp(to: file, by: keys, overwrites: false, at: now) { _ in }
    }
    // A symbolic link at the path is not followed.
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link"), withDestinationPath: folder.path("elsewhere"))
    #expect(throws: BackupRefusal.self) {
      try source.backUp(to: folder.path("link"), by: keys, overwrites: false, at: now) { _ in }
    }
    #expect(!FileManager.default.fileExists(atPath: folder.path("elsewhere")))
    try source.backUp(to: file, by: keys, overwrites: true, at: now) { _ in }
    #expect(throws: BackupRefusal.notEmpty(name: source.name)) { try restore(to: source) }
    try await DatabaseQueue(path: folder.path("source.db")).write {
      try $0.execute(sql: "DELETE FROM event; DELETE FROM spent_code")
    }
    _ = try restore(to: source, replaces: true)
    let events = try await DatabaseQueue(path: folder.path("source.db")).read {
      try Int.fetchOne($0, sql: "SELECT count(*) FROM event") ?? 0
    }
    #expect(events > 0)
    // The store of another installation is not replaced by mistake.
    try SQLiteStore(path: folder.path("other.db"), keyFingerprint: [7]).close()
    let other = try sqlite("other.db")
    #expect(throws: BackupRefusal.otherTarget(name: other.name)) { try restore(to: other, replaces: true) }
  }

  @Test func aStoreThatIsInUseIsNotRestored() async throws {
    let store = try await fill()
    try sqlite("source.db").backUp(to: file, by: keys, overwrites: false, at: now) { _ in }
    let before = try await store.events(limit: 10_000).count
    _ = try await store.recordHeartbeat(
      ServingNode(id: "here 127.0.0.1:8080 x", generation: "g", seenAt: Timestamp(milliseconds: .max / 2), keys: []))
    let source = try sqlite("source.db")
    #expect(throws: CopyRefusal.served(name: source.name, gateways: ["here 127.0.0.1:8080"])) {
      try restore(to: source, replaces: true)
    }
    #expect(try await store.events(limit: 10_000).count == before)
    try store.close()
  }

  /// Attack: a session that an operator ended, or a code that was used, would be valid again after a restore.
  @Test func sessionsAndFlowsStayOut() async throws {
    try await fill().close()
    try sqlite("source.db").backUp(to: file, by: keys, overwrites: false, at: now) { _ in }
    _ = try restore(to: sqlite("target.db"), keepsSessions: false)
    let counts = Dictionary(uniqueKeysWithValues: try sqlite("target.db").check().counts.map { ($0.table, $0.rows) })
    let left = [
      "session", "site_session", "session_domain", "flow", "session_change", "app_grant", "app_connection",
      "device_request",
    ]
    for table in left { #expect(counts[table] == 0, "\(table)") }
    for table in ["account", "counter", "tally", "event", "access_token", "spent_code"] {
      #expect((counts[table] ?? 0) > 0, "\(table)")
    }
    #expect(try sqlite("target.db").check().findings == [])
  }

  /// Attack: somebody who can write to the backups gives an account another phone number and waits for the next
  /// restore.
  @Test func alteredBackupIsRefusedBeforeAnyWrite() async throws {
    try await fill().close()
    try sqlite("source.db").backUp(to: file, by: keys, overwrites: false, at: now) { _ in }
    let whole = try Data(contentsOf: URL(fileURLWithPath: file))
    func refusal(_ bytes: Data, by ring: KeyRing? = nil) throws -> BackupRefusal? {
      try bytes.write(to: URL(fileURLWithPath: file))
      chmod(file, 0o600)
      do {
        _ = try sqlite("target.db").restore(from: file, by: ring ?? keys, replaces: true, keepsSessions: true) { _ in }
        return nil
      } catch let refusal as BackupRefusal {
        return refusal
      }
    }
    for place in [whole.count - 1, whole.count - 40, whole.count / 2, 400] {
      var bytes = whole
      bytes[place] ^= 1
      #expect(try refusal(bytes) == .altered(path: file), "byte \(place)")
    }
    let start = try #require(whole.range(of: Data("\"schema\":".utf8)))
    var newer = whole
    newer.replaceSubrange(start, with: Data("\"schema\":9".utf8))
    let version = try #require(Int("9\(Schema.current.version)"))
    #expect(try refusal(newer) == .newerSchema(path: file, found: version, known: Schema.current.version))
    for length in [0, 10, 30] { #expect(try refusal(whole.prefix(length)) == .foreign(path: file)) }
    for length in [500, whole.count - 1] {
      #expect(try refusal(whole.prefix(length)) == .truncated(path: file, expected: whole.count, found: length))
    }
    #expect(try refusal(whole + [0]) == .truncated(path: file, expected: whole.count, found: whole.count + 1))
    let other = try KeyRing(master: [UInt8](repeating: 2, count: 32))
    #expect(try refusal(whole, by: other) == .unknownKey(path: file, key: keys.currentName))
    #expect(!FileManager.default.fileExists(atPath: folder.path("target.db")))
    #expect(try leftovers() == [])
    #expect(try refusal(whole) == nil)
  }

  @Test func anOlderSchemaIsBroughtUpToDate() async throws {
    try await fill().close()
    try sqlite("source.db").backUp(to: file, by: keys, overwrites: false, at: now) { _ in }
    let target = try StoreCopier(.sqlite(path: folder.path("target.db")), schema: .next)
    #expect(try restore(to: target).header.schema == Schema.current.version)
    #expect(try target.version() == Schema.next.version && target.check().findings == [])
  }

  /// One backup format for both databases.
  @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) func theFileIsTheSameForPostgreSQL()
    async throws
  {
    try await fill().close()
    let server = try #require(PostgresServer.shared)
    let postgres = try StoreCopier(.postgres(url: server.url(try server.makeDatabase())))
    try sqlite("source.db").backUp(to: file, by: keys, overwrites: false, at: now) { _ in }
    _ = try restore(to: postgres)
    try postgres.backUp(to: file, by: keys, overwrites: true, at: now) { _ in }
    _ = try restore(to: postgres, replaces: true)
    _ = try restore(to: sqlite("back.db"))
    #expect(try digests(sqlite("back.db")) == digests(sqlite("source.db")))
    #expect(try postgres.check().findings == [])
  }
}
