import MoongateCore

/// Tokens that a session had before its current one. They authorise nothing. Signing out with one of them ends the
/// session.
///
/// Attack: a thief has the session's token replaced by a flow. The owner signs out with the token that the browser
/// still has, is told that it worked, and the thief's session lives on.
enum ReplacedTokenRows {
  /// How long a replaced token is remembered.
  static let lifetime: Duration = .seconds(7 * 86_400)
  /// The number of tokens that are remembered per session. A session that replaces its token more often within the
  /// lifetime must sign in again.
  private static let mostPerSession = 1000

  /// Remembers the token. Tokens that the session had before move with it to its account.
  ///
  /// Attack: a thief replaces the token again and again, until the owner's is no longer remembered. No token is
  /// forgotten within the lifetime.
  /// - Throws: the conflict `sessionEnded` if the session has replaced its token too often.
  /// - Parameters:
  ///   - session: the session with its new token.
  ///   - old: the account and the ID of the session before.
  static func put(
    _ token: TokenHash, of session: Session, before old: (account: String, id: String), at now: Timestamp,
    _ rows: some SQLTransaction
  ) throws {
    let place: [SQLValue] = [.text(session.account), .text(session.id)]
    if old.account != session.account || old.id != session.id {
      try rows.run(
        "UPDATE replaced_token SET account = ?1, session = ?2 WHERE account = ?3 AND session = ?4",
        place + [.text(old.account), .text(old.id)])
    }
    try rows.run(
      """
      INSERT INTO replaced_token (account, session, token, replaced_at) VALUES (?1, ?2, ?3, ?4)
      ON CONFLICT (token) DO NOTHING
      """, place + [.bytes(token.bytes), SQLValue(now)])
    try rows.run(
      "DELETE FROM replaced_token WHERE account = ?1 AND session = ?2 AND replaced_at <= ?3",
      place + [SQLValue(now - lifetime)])
    let beyond = try rows.rows(
      "SELECT 1 FROM replaced_token WHERE account = ?1 AND session = ?2 LIMIT 1 OFFSET \(mostPerSession)", place)
    if !beyond.isEmpty { throw ChangeConflict(.sessionEnded) }
  }

  /// Tokens whose session no longer exists, or that were replaced by `?3`, for pruning.
  static let dead = """
    (replaced_at <= ?3 OR NOT EXISTS (
      SELECT 1 FROM session WHERE session.account = replaced_token.account AND session.id = replaced_token.session))
    """
}
