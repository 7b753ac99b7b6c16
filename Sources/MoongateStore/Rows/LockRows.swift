import MoongateCore
import MoongateSDK

extension LockRecord {
  /// The locks that stand, and what is turned off, oldest first.
  static func all(at now: Timestamp, _ rows: some SQLTransaction) throws -> [LockRecord] {
    try rows.rows(
      """
      SELECT key, provider, name, disabled_since, NULL FROM counter WHERE disabled_since IS NOT NULL
      UNION ALL
      SELECT key, provider, name, locked_since, locked_until FROM counter WHERE locked_until > ?1 AND disabled_since IS NULL
      ORDER BY 4, 1
      """, [SQLValue(now)]
    ).map { row in
      guard let provider = ProviderName(rawValue: try row.text(1)) else { throw damaged("counter") }
      return LockRecord(
        id: Base64URL.encode(try row.bytes(0)), provider: provider, limit: try row.text(2), since: try row.optionalMoment(3) ?? now,
        until: try row.optionalMoment(4))
    }
  }

  /// Ends the lock or the disabling with the id.
  /// - Returns: false where none stands.
  static func lift(_ id: String, at now: Timestamp, _ rows: some SQLTransaction) throws -> Bool {
    guard let key = Base64URL.decode(id) else { return false }
    // Its events went when it began. A lock that is over keeps its end: escalation counts from there.
    return try rows.changes(
      """
      UPDATE counter SET disabled_since = NULL, locked_until = CASE WHEN locked_until > ?1 THEN ?1 ELSE locked_until END
      WHERE key = ?2 AND (locked_until > ?1 OR disabled_since IS NOT NULL)
      """, [SQLValue(now), .bytes(Array(key))]) > 0
  }
}
