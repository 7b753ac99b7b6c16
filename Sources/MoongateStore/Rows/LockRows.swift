import MoongateCore
import MoongateSDK

extension LockRecord {
  /// The active locks and disablings, oldest first.
  static func all(at now: Timestamp, _ rows: some SQLTransaction) throws -> [LockRecord] {
    try rows.rows(
      """
      SELECT key, provider, name, disabled_since, NULL FROM counter WHERE disabled_since IS NOT NULL
      UNION ALL
      SELECT key, provider, name, locked_since, locked_until FROM counter WHERE locked_until > ?1 AND disabled_since IS NULL
      ORDER BY 4, 1
      """, [SQLValue(now)]
    ).map { try LockRecord($0, at: now) }
  }

  /// The locks that failed attempts of a user led to, oldest first.
  static func about(_ traces: [String], at now: Timestamp, _ rows: some SQLTransaction) throws -> [LockRecord] {
    let found = try rows.rows(
      traces.map { trace in
        SQLRead(
          """
          SELECT key, provider, name, coalesce(disabled_since, locked_since), CASE WHEN disabled_since IS NULL THEN locked_until END FROM counter
          WHERE (disabled_since IS NOT NULL OR locked_until > ?1) AND key IN (
            SELECT counter FROM failed_attempt WHERE account = ?2 UNION SELECT counter FROM failed_attempt WHERE identifier = ?2)
          """, [SQLValue(now), .text(trace)])
      })
    let locks = try found.joined().map { try LockRecord($0, at: now) }
    // A lock with both the account and an identifier is found twice.
    let unique = Dictionary(locks.map { ($0.id, $0) }) { first, _ in first }
    return unique.values.sorted { ($0.since, $0.id) < ($1.since, $1.id) }
  }

  private init(_ row: some SQLRow, at now: Timestamp) throws {
    guard let provider = ProviderName(rawValue: try row.text(1)) else { throw damaged("counter") }
    self.init(
      id: Base64URL.encode(try row.bytes(0)), provider: provider, limit: try row.text(2),
      since: try row.optionalMoment(3) ?? now,
      until: try row.optionalMoment(4))
  }

  /// Ends the lock or the disabling with this ID.
  /// - Returns: false if none exists.
  static func lift(_ id: String, at now: Timestamp, _ rows: some SQLTransaction) throws -> Bool {
    guard let key = Base64URL.decode(id) else { return false }
    // Its events were removed when it began. A lock that is over keeps its end time, which escalation needs.
    let isLifted =
      try rows.changes(
        """
        UPDATE counter SET disabled_since = NULL, locked_until = CASE WHEN locked_until > ?1 THEN ?1 ELSE locked_until END
        WHERE key = ?2 AND (locked_until > ?1 OR disabled_since IS NOT NULL)
        """, [SQLValue(now), .bytes(Array(key))]) > 0
    if isLifted { try FailedAttemptRows.forget(Array(key), rows) }
    return isLifted
  }
}
