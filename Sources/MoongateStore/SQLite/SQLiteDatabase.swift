import GRDB
import MoongateCore
import Synchronization

/// A SQLite file, or an in-memory database, with one write connection and several read connections.
package final class SQLiteDatabase: SQLDatabase {
  private let database: DatabaseQueue
  private let commits: CommitQueue
  private let readers: Readers
  private let usage = Mutex(Usage())
  private let isInMemory: Bool

  /// The users of the database. GRDB crashes when a closed connection is read, so the last user closes it.
  private struct Usage {
    var isOpen = true
    var active = 0
  }

  /// Opens the file and migrates its schema. Blocks the calling thread.
  /// - Parameter makes: whether to create a missing file.
  init(path: String, keyFingerprint: [UInt8], makes: Bool = true) throws(StoreRefusal) {
    let file = DatabaseFile(path: path)
    let isFile = path != ":memory:"
    isInMemory = !isFile
    if isFile {
      if makes { try file.create() }
      guard makes || file.isThere else { throw .nothingThere(path: path) }
      let version = try file.inspect()
      guard makes || version > 0 else { throw .nothingThere(path: path) }
      try file.tighten()
    }
    do {
      database =
        isFile
        ? try DatabaseQueue(path: path, configuration: SQLiteConfiguration.writing)
        : try MemoryDatabases.take()
      let recorded = try database.writeWithoutTransaction { db in
        try Schema.current.migrate(db, path: path)
        let rows = SQLiteTransaction(db)
        if !makes, try MetaRows.owner(rows) == nil { throw StoreRefusal.nothingThere(path: path) }
        let meta = try MetaRows.assignOwner(fingerprint: keyFingerprint, rows)
        guard meta.isOwn else { throw StoreRefusal.otherKey(path: path) }
        return meta.moment
      }
      commits = CommitQueue(writer: database, recorded: recorded, runsInPlace: !isFile)
      readers = Readers(
        isFile
          ? try (0..<SQLiteConfiguration.readers).map { _ in
            try DatabaseQueue(path: path, configuration: SQLiteConfiguration.reading)
          } : [database])
      if isFile { try file.tighten() }
    } catch {
      throw file.refusal(error)
    }
  }

  deinit {
    guard isInMemory, usage.withLock(\.isOpen) else { return }
    MemoryDatabases.giveBack(database)
  }

  package func read<Value: Sendable>(_ body: @escaping @Sendable (SQLiteTransaction) throws -> Value) async throws
    -> Value
  {
    try await working { try readers.read { db in try body(SQLiteTransaction(db)) } }
  }

  package func write<Value: Sendable>(
    at moment: Timestamp, _ body: @escaping @Sendable (SQLiteTransaction) throws -> Value
  ) async throws -> Value {
    try await working { try await commits.write(at: moment) { db in try body(SQLiteTransaction(db)) } }
  }

  /// Empties the log, which holds old versions of pages with deleted data. This needs a moment without readers, and
  /// delays other writes by at most a quarter of a second at a time. If there is no such moment, the next deletion, or
  /// the last process to close the database, does it.
  package func forgetDeleted() async {
    try? await working {
      for _ in 0..<8 {
        let emptied = try? await database.writeWithoutTransaction { db in
          try db.execute(sql: "PRAGMA busy_timeout = 250")
          defer { try? db.execute(sql: "PRAGMA busy_timeout = \(Int(SQLiteConfiguration.busyTimeout * 1000))") }
          return try db.checkpoint(.truncate)
        }
        if emptied != nil { return }
      }
    }
  }

  package func close() throws(StoreFault) {
    let isLast = usage.withLock { usage in
      defer { usage.isOpen = false }
      return usage.isOpen && usage.active == 0
    }
    if isLast { try closeFile() }
  }

  private func working<Value>(_ body: () async throws -> Value) async throws -> Value {
    try usage.withLock { usage throws(StoreFault) in
      guard usage.isOpen else { throw StoreFault("the store is closed") }
      usage.active += 1
    }
    defer {
      let isLast = usage.withLock { usage in
        usage.active -= 1
        return !usage.isOpen && usage.active == 0
      }
      if isLast { try? closeFile() }
    }
    do { return try await body() } catch let error as DatabaseError { throw StoreFault(error) }
  }

  private func closeFile() throws(StoreFault) {
    do {
      // Close the write connection last: it moves the log into the file.
      try readers.close()
      try database.close()
    } catch let error as DatabaseError {
      throw StoreFault(error)
    } catch {
      throw StoreFault("SQLite: the file could not be closed")
    }
  }
}

extension StoreFault {
  /// The SQLite error as the store's callers see it. Contains no SQL and no values.
  init(_ error: DatabaseError) { self.init("SQLite: \(error.words)") }
}
