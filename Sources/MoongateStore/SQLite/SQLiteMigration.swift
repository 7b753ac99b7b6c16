import GRDB

extension Schema {
  /// Brings the database up to date, in one transaction: of two processes that start at once, one does it.
  /// - Returns: the version that it had; 0 where it was empty.
  /// - Throws: `StoreRefusal` where another process has taken it beyond what this program knows.
  @discardableResult
  static func migrate(_ db: GRDB.Database, path: String) throws -> Int {
    var found = 0
    try db.inTransaction(.immediate) {
      found = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
      guard found <= version else { throw StoreRefusal.newerSchema(path: path, found: found, known: version) }
      for step in steps(after: found, .sqlite) { try db.execute(sql: step) }
      if found < version {
        try db.execute(sql: "PRAGMA application_id = \(application); PRAGMA user_version = \(version)")
      }
      return .commit
    }
    return found
  }
}
