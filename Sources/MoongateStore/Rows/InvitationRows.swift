import MoongateCore
import MoongateSDK

/// Invitations.
enum InvitationRows {
  private static let columns = "id, hash, kind, value, display, attributes, member_of, created_at, expires_at, ended"

  static func find(_ code: TokenHash, _ rows: some SQLTransaction) throws -> Invitation? {
    try rows.row("SELECT \(columns) FROM invitation WHERE hash = ?1", [.bytes(code.bytes)]).map { try invitation($0) }
  }

  static func all(after id: String?, limit: Int, at now: Timestamp, _ rows: some SQLTransaction) throws
    -> [Invitation]
  {
    try rows.rows(
      "SELECT \(columns) FROM invitation WHERE id > ?1 AND expires_at > ?2 AND ended IS NULL ORDER BY id LIMIT ?3",
      [.text(id ?? ""), SQLValue(now), SQLValue(max(0, limit))]
    ).map { try invitation($0) }
  }

  static func put(_ invitation: Invitation, _ rows: some SQLTransaction) throws {
    let named = invitation.identifier
    try rows.run(
      "INSERT INTO invitation (\(columns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
      [
        .text(invitation.id), .bytes(invitation.code.bytes), SQLValue(named?.kind.rawValue), SQLValue(named?.value),
        SQLValue(named?.display), try named.map { try SQLValue.json($0.attributes) } ?? .null,
        try .json(invitation.groups.map(\.rawValue)),
        SQLValue(invitation.createdAt), SQLValue(invitation.expiresAt), SQLValue(invitation.ended?.rawValue),
      ])
  }

  /// The change of a row that ends an invitation. It keeps nothing about a user.
  private static let ending =
    "UPDATE invitation SET kind = NULL, value = NULL, display = NULL, attributes = NULL, member_of = '[]'"

  /// Attack: two flows complete with one invitation at the same moment. The row is changed in the transaction that
  /// creates the account, so one of them finds it used.
  static func use(_ code: TokenHash, at now: Timestamp, _ rows: some SQLTransaction) throws {
    try rows.demand(
      "\(ending), ended = 'used' WHERE hash = ?1 AND expires_at > ?2 AND ended IS NULL",
      [.bytes(code.bytes), SQLValue(now)], orElse: .invitationGone)
  }

  static func end(_ id: String, _ rows: some SQLTransaction) throws {
    try rows.demand(
      "\(ending), ended = 'revoked' WHERE id = ?1 AND ended IS NULL", [.text(id)], orElse: .invitationGone)
  }

  /// Deletes invitations that expired long ago, at most `limit`.
  /// - Returns: the number of deleted invitations.
  static func prune(at now: Timestamp, limit: Int, _ rows: some SQLTransaction) throws -> Int {
    try rows.changes(
      """
      DELETE FROM invitation WHERE id IN (
        SELECT id FROM invitation WHERE expires_at <= ?1 ORDER BY expires_at LIMIT \(limit)
          \(rows.dialect.words(sqlite: "", postgres: "FOR UPDATE SKIP LOCKED")))
      """, [SQLValue(now - InvitationLifetime.remembered)])
  }

  private static func invitation(_ row: some SQLRow) throws -> Invitation {
    var identifier: Identifier?
    if let text = try row.optionalText(2) {
      // Attack: an invitation for one address whose kind cannot be read would be good for any.
      guard let kind = IdentifierKind(rawValue: text), let value = try row.optionalText(3) else {
        throw damaged("invitation")
      }
      let attributes = try row.optionalText(5).map { try JSON.decode([String: String].self, $0.utf8) }
      identifier = Identifier(
        kind: kind, value: value, display: try row.optionalText(4) ?? value, attributes: attributes ?? [:])
    }
    var invitation = Invitation(
      id: try row.text(0), code: TokenHash(bytes: try row.bytes(1)), identifier: identifier,
      groups: try row.groups(6), createdAt: try row.moment(7), expiresAt: try row.moment(8))
    if let text = try row.optionalText(9) {
      // Attack: an invitation that has ended, in a way that cannot be read, would be good again.
      guard let ended = InvitationProblem(rawValue: text) else { throw damaged("invitation") }
      invitation.ended = ended
    }
    return invitation
  }
}
