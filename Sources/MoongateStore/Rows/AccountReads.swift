import MoongateCore
import MoongateSDK

/// The statements that read one account with all that belongs to it, in one round trip: the same whether there is such an account or not.
struct AccountReads: Sendable {
  private let identifiers: String
  private let sqlite: String
  private let postgres: String

  /// - Parameter id: an expression that gives the account's id, or NULL.
  init(_ id: String) {
    identifiers = "SELECT kind, value, display, attributes, verified_at FROM identifier WHERE account = \(id) ORDER BY position"
    func account(_ providers: String) -> String {
      """
      SELECT id, first_name, last_name, created_at, last_seen_at, is_locked,
        (SELECT \(providers) FROM provider_record WHERE account = account.id)
      FROM account WHERE id = \(id)
      """
    }
    sqlite = account("group_concat(provider, ' ')")
    postgres = account("string_agg(provider, ' ')")
  }

  /// - Parameter arguments: of the expression.
  func reads(_ arguments: [SQLValue], _ dialect: SQLDialect) -> [SQLRead] {
    [SQLRead(identifiers, arguments), SQLRead(dialect == .sqlite ? sqlite : postgres, arguments)]
  }

  func account(_ arguments: [SQLValue], _ rows: some SQLTransaction) throws -> Account? {
    let found = try rows.rows(reads(arguments, rows.dialect))
    return try Self.account(identifiers: found[0], found[1])
  }

  /// What the two statements found.
  static func account<Row: SQLRow>(identifiers: [Row], _ rows: [Row]) throws -> Account? {
    guard let row = rows.first else { return nil }
    return Account(
      id: try row.text(0), firstName: try row.optionalText(1), lastName: try row.optionalText(2), createdAt: try row.moment(3),
      lastSeenAt: try row.moment(4), isLocked: try row.isTrue(5), identifiers: try identifiers.map { try identifier($0) },
      credentials: Set((try row.optionalText(6) ?? "").split(separator: " ").compactMap { ProviderName(rawValue: String($0)) }))
  }

  private static func identifier(_ row: some SQLRow) throws -> HeldIdentifier {
    guard let kind = IdentifierKind(rawValue: try row.text(0)) else { throw damaged("identifier") }
    let attributes = try JSON.decode([String: String].self, try row.text(3).utf8)
    return HeldIdentifier(
      identifier: Identifier(kind: kind, value: try row.text(1), display: try row.text(2), attributes: attributes),
      verifiedAt: try row.optionalMoment(4))
  }
}
