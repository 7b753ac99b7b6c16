import Foundation
import GRDB
import MoongateCore

/// The file of a SQLite store before it is opened: creates it with the right modes, and checks that it is ours.
struct DatabaseFile {
  let path: String
  var schema = Schema.current

  var isThere: Bool { access(path, F_OK) == 0 }

  /// Creates the file with mode 0600, and missing parent folders with mode 0700. SQLite gives `-wal` and `-shm` the
  /// file's mode.
  ///
  /// Attack: created by SQLite itself, the file would be as readable as the umask allows, if only for a moment.
  func create() throws(StoreRefusal) {
    try createFolder(path.parentFolder)
    let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw unwritable() }
    close(file)
  }

  /// Checks the file without changing it. Opening it for writing would switch it to WAL.
  /// - Returns: the schema version; 0 if the file is empty.
  func inspect() throws(StoreRefusal) -> Int {
    let found: (application: Int32, version: Int, tables: Int)
    do {
      var configuration = SQLiteConfiguration.base
      configuration.readonly = true
      found = try DatabaseQueue(path: path, configuration: configuration).read { db in
        (
          try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0,
          try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0,
          try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") ?? 0
        )
      }
    } catch {
      throw refusal(error)
    }
    if found.application == 0, found.version == 0, found.tables == 0 { return 0 }
    guard found.application == Schema.application else { throw .foreign(path: path) }
    guard found.version <= schema.version else {
      throw .newerSchema(path: path, found: found.version, known: schema.version)
    }
    return found.version
  }

  /// Removes the permissions of group and others. `-wal` and `-shm` may not exist.
  func tighten() throws(StoreRefusal) {
    guard chmod(path, 0o600) == 0 else { throw unwritable() }
    for suffix in ["-wal", "-shm"] { chmod(path + suffix, 0o600) }
  }

  /// Maps a SQLite error to a refusal.
  func refusal(_ error: any Error) -> StoreRefusal {
    if let refusal = error as? StoreRefusal { return refusal }
    guard let error = error as? DatabaseError else { return .fault(path: path, reason: "unexpected error") }
    return switch error.resultCode {
    case .SQLITE_NOTADB, .SQLITE_CORRUPT: .unreadable(path: path)
    case .SQLITE_FULL: .diskFull(path: path)
    case .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM: .unwritable(path: path, reason: error.words)
    default: .fault(path: path, reason: error.words)
    }
  }

  private func createFolder(_ folder: String) throws(StoreRefusal) {
    guard !folder.isEmpty, access(folder, F_OK) != 0 else { return }
    try createFolder(folder.parentFolder)
    guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw unwritable() }
  }

  private func unwritable() -> StoreRefusal {
    switch errno {
    case ENOSPC, EDQUOT: .diskFull(path: path)
    case let code: .unwritable(path: path, reason: String(cString: strerror(code)))
    }
  }
}

/// The configuration of connections.
enum SQLiteConfiguration {
  /// How long a writer waits for another process's transaction.
  static let busyTimeout: Double = 5

  static var base: Configuration {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = true
    configuration.busyMode = .timeout(busyTimeout)
    // `CommitQueue` and `Readers` begin and end their transactions themselves and leave none open.
    configuration.allowsUnsafeTransactions = true
    configuration.prepareDatabase { db in
      // NORMAL with WAL survives a crash of the process at any point (sqlite.org/pragma.html#pragma_synchronous).
      // 8 MiB of cache: bounds memory, even if many users are attacked at once.
      // Checkpoint after 16 MiB of log: a page that changes often is written back once.
      // Overwrite deleted data, regardless of SQLite's build defaults: users have a right to erasure.
      try db.execute(
        sql: """
          PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4096; PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;
          PRAGMA trusted_schema = OFF; PRAGMA secure_delete = ON
          """)
    }
    return configuration
  }

  /// The number of read connections: one for each thread that runs tasks, and some for other threads.
  static let readers = ProcessInfo.processInfo.activeProcessorCount + 2

  /// The configuration of the write connection. It does not block readers.
  static var writing: Configuration {
    var configuration = base
    configuration.journalMode = .wal
    return configuration
  }

  /// The configuration of a read connection.
  static var reading: Configuration {
    var configuration = base
    configuration.readonly = true
    return configuration
  }
}

extension DatabaseError {
  /// The name of the error code, without SQL or values.
  var words: String { "\(extendedResultCode)" }
}
