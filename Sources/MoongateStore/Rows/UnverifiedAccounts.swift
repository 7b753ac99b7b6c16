import MoongateCore

/// Accounts without any verified identifier. They are kept as long as they are used.
enum UnverifiedAccounts {
  /// The number of accounts that are processed per transaction.
  static let stretch = 200

  /// Deletes the accounts that were not used since `moment`.
  /// - Returns: the number of deleted accounts, and whether there may be more.
  static func expire(
    unusedSince moment: Timestamp, _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  ) throws -> (removed: Int, hasMore: Bool) {
    let found = try rows.rows(
      """
      SELECT id FROM account WHERE is_unproved = 1 AND created_at <= ?1 AND last_seen_at <= ?1 ORDER BY created_at LIMIT \(stretch)\
      \(rows.dialect.words(sqlite: "", postgres: " FOR UPDATE SKIP LOCKED"))
      """, [SQLValue(moment)]
    ).map { try $0.text(0) }
    var removed = 0
    for id in found {
      // The row is locked now, so this sees everything that was verified or used before.
      let state = try rows.rows([
        SQLRead("SELECT 1 FROM identifier WHERE account = ?1 AND verified_at IS NOT NULL", [.text(id)]),
        SQLRead("SELECT max(last_seen_at) FROM session WHERE account = ?1", [.text(id)]),
        SQLRead(
          "SELECT 1 FROM account WHERE id = ?1 AND is_unproved IS NOT NULL AND last_seen_at <= ?2",
          [.text(id), SQLValue(moment)]),
      ])
      guard !state[2].isEmpty else { continue }
      if !state[0].isEmpty {
        try rows.run("UPDATE account SET is_unproved = NULL WHERE id = ?1", [.text(id)])
      } else if let used = try state[1].first?.optionalMoment(0), used > moment {
        // A signed-in user uses the account without signing in again.
        try AccountRows.recordUse(id, at: used, rows)
      } else {
        try rows.run("DELETE FROM account WHERE id = ?1", [.text(id)])
        notifications.add(account: id)
        removed += 1
      }
    }
    return (removed, found.count == stretch)
  }
}
