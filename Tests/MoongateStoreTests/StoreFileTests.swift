import Foundation
import GRDB
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateStore

/// The database file: its permissions, and the messages with which a file is refused.
@Suite struct StoreFileTests {
  let folder: ScratchFolder
  var path: String { folder.path("data/deep/moongate.db") }

  init() throws { folder = try ScratchFolder() }

  private func open(_ path: String? = nil, key: [UInt8] = [1]) throws(StoreRefusal) -> SQLiteStore {
    try SQLiteStore(path: path ?? self.path, keyFingerprint: key)
  }

  private func mode(_ path: String) throws -> Int {
    try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int) & 0o777
  }

  private func refusal(_ path: String? = nil, key: [UInt8] = [1]) -> StoreRefusal? {
    do throws(StoreRefusal) {
      _ = try open(path, key: key)
      return nil
    } catch {
      return error
    }
  }

  @Test(arguments: [mode_t(0), 0o022, 0o077]) func onlyTheOwnerReadsIt(mask: mode_t) async throws {
    let before = umask(mask)
    defer { umask(before) }
    let store = try open()
    _ = try await store.apply([.clearTimer([1])], at: ManualClock.start)
    for suffix in ["", "-wal", "-shm"] { #expect(try mode(path + suffix) == 0o600, "moongate.db\(suffix)") }
    #expect(try mode(folder.path("data")) == 0o700)
    #expect(try mode(folder.path("data/deep")) == 0o700)
  }

  @Test func aLooseModeIsTightened() async throws {
    try open().close()
    chmod(path, 0o644)
    let store = try open()
    _ = try await store.apply([.clearTimer([1])], at: ManualClock.start)
    for suffix in ["", "-wal", "-shm"] { #expect(try mode(path + suffix) == 0o600) }
  }

  @Test func aNewerSchemaIsRefusedAndLeftAsItIs() throws {
    try open().close()
    try DatabaseQueue(path: path).write { db in try db.execute(sql: "PRAGMA user_version = 99") }
    let refused = try #require(refusal())
    #expect(
      refused.description
        == "The store \(path) was written by a newer Moongate (its schema is 99, this program knows \(Schema.current.version)). "
        + "Start the newer program, or name another store in gateway.lua.")
    #expect(try DatabaseQueue(path: path).read { db in try Int.fetchOne(db, sql: "PRAGMA user_version") } == 99)
  }

  @Test func anotherProgramsDatabaseIsRefusedAndLeftAsItIs() throws {
    let path = folder.path("other.db")
    try DatabaseQueue(path: path).write { db in try db.execute(sql: "CREATE TABLE theirs (id INTEGER PRIMARY KEY)") }
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    #expect(refusal(path) == .foreign(path: path))
    #expect(
      refusal(path)?.description
        == "\(path) is the database of another program. Name a file of Moongate's own as `store` in gateway.lua; it is created at the first start."
    )
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
  }

  @Test(arguments: ["SQLite format 4\0", String(repeating: "not a database. ", count: 500)])
  func fileThatIsNotADatabaseIsRefused(text: String) throws {
    try folder.write(text, to: "notes.txt")
    let path = folder.path("notes.txt")
    #expect(refusal(path) == .unreadable(path: path))
    #expect(
      refusal(path)?.description
        == "\(path) is not a SQLite database, or it is damaged. Restore it from a backup, or name another file as `store` in gateway.lua."
    )
  }

  @Test func anotherKeyIsRefused() throws {
    try open(key: [1]).close()
    #expect(refusal(key: [2]) == .otherKey(path: path))
    #expect(
      refusal(key: [2])?.description
        == "The store \(path) was made with another master key. Name that key as `key` in gateway.lua, or name another store."
    )
    try open(key: [1]).close()
  }

  @Test func readOnlyStoreIsRefused() throws {
    try folder.write("a file where a folder should be", to: "file")
    for path in [folder.path("file/moongate.db"), folder.path, "/proc/moongate/moongate.db"] {
      let refused = try #require(refusal(path))
      guard case .unwritable(path, let reason) = refused else {
        Issue.record("\(refused)")
        continue
      }
      #expect(
        refused.description
          == "The store \(path) cannot be written (\(reason)). Let Moongate's user write the file and its folder, "
          + "or name another file as `store` in gateway.lua.")
    }
  }

  @Test func fullDiskIsNotAMatterOfPermissions() throws {
    try open().close()
    let file = DatabaseFile(path: path)
    let database = try DatabaseQueue(path: path)
    do {
      try database.writeWithoutTransaction { db in
        try db.execute(sql: "PRAGMA max_page_count = \(try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0)")
        try db.execute(sql: "CREATE TABLE large AS SELECT randomblob(1000000)")
      }
      Issue.record("the database should be full")
    } catch {
      #expect(file.refusal(error) == .diskFull(path: path))
      #expect(
        file.refusal(error).description
          == "The store \(path) cannot be written: its disk is full, or the quota of its user is used up. Free some space, then start again."
      )
    }
  }

  @Test func anEmptyFileBecomesTheStore() async throws {
    try folder.write("", to: "empty.db")
    let store = try open(folder.path("empty.db"))
    #expect(try await store.locks(at: ManualClock.start).isEmpty)
  }

  @Test func aDamagedPageIsAFaultAndNoCrash() async throws {
    try open().close()
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    for index in 4096..<bytes.count { bytes[index] = 0xa5 }
    try bytes.write(to: URL(fileURLWithPath: path))
    #expect(refusal().map { "\($0)".contains(path) } ?? true)
  }

  @Test func latestMomentIsStored() async throws {
    let store = try open()
    let highest = ManualClock.start + .seconds(3600)
    _ = try await store.reserve(
      ReservationRequest(id: ReservationID(from: SeededRandom()), now: highest, limits: [], timer: nil))
    try store.close()
    let floor = try await open().latestMoment()
    #expect(floor == highest)
    let clock = SystemClock(floor: floor, wall: { ManualClock.start })
    #expect(clock.now() >= highest && clock.isSuspect)
  }

  @Test func aClosedStoreIsAFault() async throws {
    let store = try open()
    try store.close()
    try store.close()
    await #expect(throws: StoreFault("the store is closed")) { try await store.locks(at: ManualClock.start) }
    await #expect(throws: StoreFault("the store is closed")) { try await store.apply([], at: ManualClock.start) }
  }

  @Test func closingLetsWorkEnd() async throws {
    let store = try open()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<200 {
        group.addTask { _ = try? await store.apply([.clearTimer([1])], at: ManualClock.start) }
        group.addTask { _ = try? await store.flow(TokenHash(of: [])) }
        if number == 100 { group.addTask { try? store.close() } }
      }
    }
    try open().close()
  }

  @Test func faultContainsNoValues() async throws {
    let store = try open()
    let account = Account(id: "ac_secret", createdAt: ManualClock.start, lastSeenAt: ManualClock.start)
    _ = try await store.apply([.createAccount(account)], at: ManualClock.start)
    do {
      _ = try await store.apply([.createAccount(account)], at: ManualClock.start)
      Issue.record("the second account of one id was accepted")
    } catch {
      #expect(error == StoreFault("SQLite: \(ResultCode.SQLITE_CONSTRAINT_PRIMARYKEY)"))
      #expect(!error.description.contains("ac_secret"))
    }
  }
}
