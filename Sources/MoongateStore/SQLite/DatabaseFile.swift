import Foundation
import GRDB
import MoongateCore

/// The file of a SQLite store before it is opened for work: made with the right modes, and known to be ours.
struct DatabaseFile {
  let path: String

  var isThere: Bool { access(path, F_OK) == 0 }

  /// Makes the file, mode 0600, and missing folders above it, mode 0700. SQLite gives `-wal` and `-shm` the file's own
  /// mode.
  ///
  /// Attack: made by SQLite itself, the file would be as readable as the umask allows, if only for a moment.
  func create() throws(StoreRefusal) {
    try createFolder((path as NSString).deletingLastPathComponent)
    let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw unwritable() }
    close(file)
  }

  /// Looks at what the file holds, without changing it: opening it for work would already turn it to WAL.
  /// - Returns: the version of its schema; 0 where it holds nothing yet.
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
    guard found.version <= Schema.version else {
      throw .newerSchema(path: path, found: found.version, known: Schema.version)
    }
    return found.version
  }

  /// Takes from group and others what somebody may have given them. `-wal` and `-shm` may not be there.
  func tighten() throws(StoreRefusal) {
    guard chmod(path, 0o600) == 0 else { throw unwritable() }
    for suffix in ["-wal", "-shm"] { chmod(path + suffix, 0o600) }
  }

  /// The refusal that an error of SQLite means.
  func refusal(_ error: any Error) -> StoreRefusal {
    if let refusal = error as? StoreRefusal { return refusal }
    guard let error = error as? DatabaseError else { return .fault(path: path, reason: "unexpected error") }
    return switch error.resultCode {
    case .SQLITE_NOTADB, .SQLITE_CORRUPT: .unreadable(path: path)
    case .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_FULL: .unwritable(path: path, reason: error.words)
    default: .fault(path: path, reason: error.words)
    }
  }

  private func createFolder(_ folder: String) throws(StoreRefusal) {
    guard !folder.isEmpty, access(folder, F_OK) != 0 else { return }
    try createFolder((folder as NSString).deletingLastPathComponent)
    guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw unwritable() }
  }

  private func unwritable() -> StoreRefusal { .unwritable(path: path, reason: String(cString: strerror(errno))) }
}

/// How connections are set up.
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
      // NORMAL with WAL survives the death of the process at any point (sqlite.org/pragma.html#pragma_synchronous).
      // 8 MiB of cache: bounded memory, whatever number of people is attacked at once.
      // Checkpoints after 16 MiB of log: a page that changes often is written back once.
      // What is deleted is overwritten, whatever SQLite was built with: people have a right to be forgotten.
      try db.execute(
        sql: """
          PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4096; PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;
          PRAGMA trusted_schema = OFF; PRAGMA secure_delete = ON
          """)
    }
    return configuration
  }

  /// How many connections read: one for each thread that runs tasks, and some for threads of other kinds.
  static let readers = ProcessInfo.processInfo.activeProcessorCount + 2

  /// The connection that writes a file: readers go on meanwhile.
  static var writing: Configuration {
    var configuration = base
    configuration.journalMode = .wal
    return configuration
  }

  /// A connection that reads a file.
  static var reading: Configuration {
    var configuration = base
    configuration.readonly = true
    return configuration
  }
}

extension DatabaseError {
  /// What went wrong, in SQLite's words for the code: no SQL, no values.
  var words: String { "\(extendedResultCode)" }
}
