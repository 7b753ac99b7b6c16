import MoongateCore

/// The apps that accounts have connected.
enum AppConnectionRows {
  /// An account's connections, the one that was used last first.
  static func all(of account: String, _ rows: some SQLTransaction) throws -> [AppConnection] {
    try rows.rows(
      """
      SELECT app, scopes, created_at, used_at, is_agreed FROM app_connection WHERE account = ?1
      ORDER BY used_at DESC, app
      """, [.text(account)]
    ).map { row in
      AppConnection(
        account: account, app: try row.text(0), scopes: try JSON.decode([String].self, try row.text(1).utf8),
        createdAt: try row.moment(2), usedAt: try row.moment(3), agreed: try row.isTrue(4))
    }
  }

  /// Stores a connection, or replaces everything but the beginning of the stored one.
  static func put(_ connection: AppConnection, _ rows: some SQLTransaction) throws {
    try AccountRows.demandPresent(connection.account, rows)
    try rows.run(
      """
      INSERT INTO app_connection (account, app, scopes, created_at, used_at, is_agreed) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
      ON CONFLICT (account, app) DO UPDATE
      SET scopes = excluded.scopes, used_at = excluded.used_at, is_agreed = excluded.is_agreed
      """,
      [
        .text(connection.account), .text(connection.app), try .json(connection.scopes),
        SQLValue(connection.createdAt), SQLValue(connection.usedAt), SQLValue(connection.agreed),
      ])
  }

  /// Updates the last use of the connection that a grant belongs to. It only moves forward.
  static func use(by grant: String, at moment: Timestamp, _ rows: some SQLTransaction) throws {
    try rows.run(
      """
      UPDATE app_connection SET used_at = ?1 WHERE account = (SELECT account FROM app_grant WHERE id = ?2)
        AND app = (SELECT app FROM app_grant WHERE id = ?2) AND used_at < ?1
      """, [SQLValue(moment), .text(grant)])
  }

  /// Deletes the connection and ends its grants.
  static func end(_ app: String, of account: String, at now: Timestamp, _ rows: some SQLTransaction) throws {
    // The account is locked (`PreparedChange`), so no other transaction ends or adds grants of the pair meanwhile.
    try AppGrantEnding.end(of: account, for: app, at: now, rows)
    try rows.run("DELETE FROM app_connection WHERE account = ?1 AND app = ?2", [.text(account), .text(app)])
  }
}
