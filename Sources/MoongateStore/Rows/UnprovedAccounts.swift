import MoongateCore

/// Accounts that never proved an identifier. They are kept for as long as somebody uses them.
enum UnprovedAccounts {
  /// So many are looked at in one transaction.
  static let stretch = 200

  /// Removes those that nobody has used since `moment`.
  /// - Returns: how many were removed, and whether there may be more.
  static func expire(
    unusedSince moment: Timestamp, _ news: ChangeNotifications, _ rows: some SQLTransaction
  ) throws -> (removed: Int, hasMore: Bool) {
    let found = try rows.rows(
      """
      SELECT id FROM account WHERE is_unproved = 1 AND created_at <= ?1 AND last_seen_at <= ?1 ORDER BY created_at LIMIT \(stretch)\
      \(rows.dialect.words(sqlite: "", postgres: " FOR UPDATE SKIP LOCKED"))
      """, [SQLValue(moment)]
    ).map { try $0.text(0) }
    var removed = 0
    for id in found {
      // Now that the row is held: what was proved or used until then is seen, and nothing comes between.
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
        // Who is signed in uses it without signing in.
        try AccountRows.seen(id, at: used, rows)
      } else {
        try rows.run("DELETE FROM account WHERE id = ?1", [.text(id)])
        news.add(account: id)
        removed += 1
      }
    }
    return (removed, found.count == stretch)
  }
}
