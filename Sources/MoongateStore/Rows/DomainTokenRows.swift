import MoongateCore

/// Tokens of sessions for other root domains (`domains` in gateway.lua). They exist as long as the session's row. The
/// session's own token can change meanwhile, so `session_domain.session` is the session's ID.
enum DomainTokenRows {
  /// The tokens of a session, by its account and ID.
  static let ofSession = "SELECT token FROM session_domain WHERE account = ?1 AND session = ?2"
  /// The account and the ID of the session that a token belongs to, or belonged to.
  private static let owner = """
    SELECT account, id FROM session WHERE token = ?1 UNION ALL SELECT account, session FROM session_domain WHERE token = ?1
    UNION ALL SELECT account, session FROM replaced_token WHERE token = ?1
    """

  /// Stores a token in place of the session's previous one for the domain.
  static func put(_ new: NewDomainToken, _ notifications: ChangeNotifications, _ rows: some SQLTransaction) throws {
    let session = new.session
    try AccountRows.requireAvailable(session.account, rows)
    let replaced = try rows.rows(
      "DELETE FROM session_domain WHERE account = ?1 AND session = ?2 AND domain = ?3 RETURNING token",
      [.text(session.account), .text(session.id), .text(new.domain)])
    for row in replaced { notifications.add(token: try row.bytes(0)) }
    try rows.demand(
      """
      INSERT INTO session_domain (token, account, session, domain, issued_under, passed)
      SELECT CAST(?1 AS \(rows.dialect.words(sqlite: "BLOB", postgres: "BYTEA"))), account, id, CAST(?2 AS TEXT), token, passed
      FROM session WHERE token = ?3 AND account = ?4 AND id = ?5
      """,
      [
        .bytes(new.token.bytes), .text(new.domain), .bytes(session.token.bytes), .text(session.account),
        .text(session.id),
      ],
      orElse: .sessionEnded)
  }

  /// Ends the session that a token of any kind belongs to.
  ///
  /// Attack: the session moves to another account at the same moment, for example because accounts are merged.
  /// Nothing is found under the account that was read first. `replaced_token` names the other one then.
  static func endSession(_ token: TokenHash, _ notifications: ChangeNotifications, _ rows: some SQLTransaction) throws {
    var last: [String] = []
    while let owner = try rows.row(owner, [.bytes(token.bytes)]) {
      let (account, id) = (try owner.text(0), try owner.text(1))
      if [account, id] == last { return }
      last = [account, id]
      if try end(id, of: account, notifications, rows) { return }
    }
  }

  /// Ends a session.
  /// - Returns: whether it existed.
  private static func end(
    _ id: String, of account: String, _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  ) throws -> Bool {
    let session: [SQLValue] = [.text(account), .text(id)]
    notifications.add(sessionOf: account)
    // Attack: a thief has the token replaced at the same moment. The row that is deleted there is not found here any
    // more, and the new one not yet. Whoever replaces a token holds this lock until both are done.
    var locks = RowLocks()
    locks.add(account: account)
    try locks.take(rows)
    let ended = try rows.rows([
      SQLRead("DELETE FROM session_domain WHERE account = ?1 AND session = ?2 RETURNING token", session),
      SQLRead("DELETE FROM session WHERE account = ?1 AND id = ?2 RETURNING token", session),
    ])
    try rows.run("DELETE FROM replaced_token WHERE account = ?1 AND session = ?2", session)
    for row in ended.joined() { notifications.add(token: try row.bytes(0)) }
    return !ended[1].isEmpty
  }

  /// Ends the domain tokens of all sessions of an account. The caller announces the account.
  static func end(of account: String, _ rows: some SQLTransaction) throws {
    try rows.run("DELETE FROM session_domain WHERE account = ?1", [.text(account)])
  }

  /// Tokens whose session no longer exists, for pruning.
  static let orphaned = """
    NOT EXISTS (SELECT 1 FROM session WHERE session.account = session_domain.account AND session.id = session_domain.session)
    """
}

/// One-time codes that were used.
enum SpentCodeRows {
  static func spend(_ code: TokenHash, until: Timestamp, _ rows: some SQLTransaction) throws {
    // Attack: one code at two gateways at once. The second waits for the first one's row, and finds it.
    try rows.demand(
      "INSERT INTO spent_code (code, expires_at) VALUES (?1, ?2) ON CONFLICT (code) DO NOTHING",
      [.bytes(code.bytes), SQLValue(until)],
      orElse: .codeSpent)
  }

  /// Deletes codes that have expired, at most `limit`.
  /// - Returns: the number of deleted codes.
  static func prune(at now: Timestamp, limit: Int, _ rows: some SQLTransaction) throws -> Int {
    try rows.changes(
      """
      DELETE FROM spent_code WHERE code IN (
        SELECT code FROM spent_code WHERE expires_at <= ?1 ORDER BY expires_at LIMIT \(limit)
          \(rows.dialect.words(sqlite: "", postgres: "FOR UPDATE SKIP LOCKED")))
      """, [SQLValue(now)])
  }
}
