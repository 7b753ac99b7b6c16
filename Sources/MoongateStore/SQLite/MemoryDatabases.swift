import GRDB
import Synchronization

/// In-memory databases that are used again, emptied. Creating one runs every step of the schema and compiles every
/// statement, which takes longer than the test case of a policy that uses it.
enum MemoryDatabases {
  private struct Changed: Error {}

  private static let idle = Mutex<[DatabaseQueue]>([])
  /// The maximum number of unused databases.
  private static let maxIdle = 4

  /// An empty database, with or without tables.
  static func take() throws -> DatabaseQueue {
    if let used = idle.withLock({ $0.popLast() }) { return used }
    return try DatabaseQueue(configuration: SQLiteConfiguration.base)
  }

  /// The maximum size of an unused database, in pages of 4 KiB.
  private static let maxPages = 500

  /// Empties a database that nothing uses any more, for the next store. It is discarded if it cannot be emptied, if it
  /// has become large, or if somebody has added a trigger.
  static func giveBack(_ database: DatabaseQueue) {
    do { try database.inTransaction(.immediate, empty) } catch { return }
    idle.withLock { if $0.count < maxIdle { $0.append(database) } }
  }

  private static func empty(_ db: Database) throws -> Database.TransactionCompletion {
    let added = "SELECT 1 FROM sqlite_master WHERE type = 'trigger' UNION ALL SELECT 1 FROM sqlite_temp_master"
    let pages = try Int.fetchOne(db.cachedStatement(sql: "PRAGMA page_count")) ?? .max
    guard try pages <= maxPages && Row.fetchAll(db.cachedStatement(sql: added)).isEmpty else { throw Changed() }
    // Tables that refer to others come later.
    for table in Schema.tables.reversed() { try db.cachedStatement(sql: "DELETE FROM \(table.name)").execute() }
    return .commit
  }
}
