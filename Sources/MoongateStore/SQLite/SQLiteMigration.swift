import GRDB

extension Schema {
  /// Migrates the database in one transaction. If two processes start at once, one of them migrates.
  /// - Returns: the previous schema version; 0 if the database was empty.
  /// - Throws: `StoreRefusal` if another process has migrated it beyond what this program knows.
  @discardableResult
  func migrate(_ db: GRDB.Database, path: String) throws -> Int {
    var found = 0
    try db.inTransaction(.immediate) {
      found = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
      guard found <= version else { throw StoreRefusal.newerSchema(path: path, found: found, known: version) }
      for step in steps(after: found, .sqlite) { try db.execute(sql: step) }
      if found < version {
        try db.execute(sql: "PRAGMA application_id = \(Self.application); PRAGMA user_version = \(version)")
      }
      return .commit
    }
    return found
  }
}
