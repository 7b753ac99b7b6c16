import MoongateCore

/// The users' sessions at other sites by which sessions were opened, so that a site can end them without naming a user.
enum SiteSessionRows {
  /// How long it is remembered that a site has ended one: longer than a flow or the code of an app waits.
  private static let memory: Duration = .seconds(30 * 86_400)

  /// The row in `spent_code` of one that has ended, and on PostgreSQL the lock of both transactions.
  static func key(of hash: String) -> [UInt8] { TokenHash(of: "site session \(hash)".utf8).bytes }

  /// - Throws: the conflict `epochChanged` if the site has ended one since the user proved it.
  static func put(of session: Session, _ rows: some SQLTransaction) throws {
    for step in session.passed {
      guard let hash = step.siteSession else { continue }
      try rows.demand(
        """
        INSERT INTO site_session (hash, token)
        SELECT CAST(?1 AS TEXT), CAST(?2 AS \(rows.dialect.words(sqlite: "BLOB", postgres: "BYTEA")))
        WHERE NOT EXISTS (SELECT 1 FROM spent_code WHERE code = ?3 AND expires_at >= ?4)
        ON CONFLICT (hash, token) DO UPDATE SET token = excluded.token
        """,
        [.text(hash), .bytes(session.token.bytes), .bytes(key(of: hash)), SQLValue(step.at + memory)],
        orElse: .epochChanged)
    }
  }

  static func end(_ hash: String, at now: Timestamp, _ rows: some SQLTransaction) throws {
    try rows.run(
      """
      INSERT INTO spent_code (code, expires_at) VALUES (?1, ?2)
      ON CONFLICT (code) DO UPDATE SET expires_at = excluded.expires_at
      WHERE spent_code.expires_at < excluded.expires_at
      """, [.bytes(key(of: hash)), SQLValue(now + memory)])
  }
}
