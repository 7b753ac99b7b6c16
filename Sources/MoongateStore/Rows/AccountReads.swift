import MoongateCore
import MoongateSDK

/// Reads an account with everything that belongs to it, in the same statement whether the account exists or not.
struct AccountReads: Sendable {
  private let sqlite: String
  private let postgres: String

  /// - Parameter id: an SQL expression for the account's ID, or NULL.
  init(_ id: String) {
    // One row for each identifier, or a single row if none exists.
    func account(_ list: (String, String) -> String, _ newline: String) -> String {
      let groups = list("name", newline)
      let resets = list("provider || ' ' || reset_at", newline)
      let records = list("provider || coalesce(':' || change_due, '')", "' '")
      return """
        SELECT id, first_name, last_name, created_at, last_seen_at, is_locked,
          (SELECT \(records) FROM provider_record WHERE account = account.id),
          kind, value, display, attributes, verified_at, epoch, language,
          (SELECT \(groups) FROM group_member WHERE account = account.id), member_of,
          (SELECT \(list("trusted_device.id", "' '")) FROM trusted_device WHERE account = account.id), waits_until,
          (SELECT \(resets) FROM factor_reset WHERE account = account.id)
        FROM account LEFT JOIN identifier ON identifier.account = account.id WHERE id = \(id) ORDER BY position
        """
    }
    sqlite = account({ "group_concat(\($0), \($1))" }, "char(10)")
    postgres = account({ "string_agg(\($0), \($1))" }, "chr(10)")
  }

  /// - Parameter arguments: the arguments of the expression.
  func read(_ arguments: [SQLValue], _ dialect: SQLDialect) -> SQLRead {
    SQLRead(dialect.words(sqlite: sqlite, postgres: postgres), arguments)
  }

  func account(_ arguments: [SQLValue], _ rows: some SQLTransaction) throws -> Account? {
    try Self.account(rows.rows([read(arguments, rows.dialect)])[0])
  }

  /// Decodes the result of the statement.
  ///
  /// Attack: the response time tells who is known, because there is an account to decode. Without one, an account of
  /// nobody is decoded.
  static func account(_ rows: [some SQLRow]) throws -> Account? {
    guard let row = rows.first else {
      _ = try decode(RowOfNobody(), [RowOfNobody()])
      return nil
    }
    return try decode(row, rows)
  }

  private static func decode<Row: SQLRow>(_ row: Row, _ rows: [Row]) throws -> Account {
    // `PROVIDER` or `PROVIDER:DUE`.
    let records = (try row.optionalText(6) ?? "").split(separator: " ").map { $0.split(separator: ":", maxSplits: 1) }
    let locked = try row.count(5)
    var account = Account(
      id: try row.text(0), firstName: try row.optionalText(1), lastName: try row.optionalText(2),
      createdAt: try row.moment(3),
      lastSeenAt: try row.moment(4), isLocked: locked != 0,
      identifiers: try rows.compactMap { try identifier($0) },
      credentials: Set(records.compactMap { $0.first.flatMap { ProviderName(rawValue: String($0)) } }),
      epoch: try row.count(12), language: try row.optionalText(13),
      // No group name contains a line break.
      groups: Set(
        (try row.optionalText(14) ?? "").split(separator: "\n").compactMap { GroupName(rawValue: String($0)) }),
      devices: Set((try row.optionalText(16) ?? "").split(separator: " ").map(String.init)),
      resets: try resets(row.optionalText(18)))
    account.isPending = locked >= AccountImportRows.pending
    for record in records where record.count == 2 {
      guard let provider = ProviderName(rawValue: String(record[0])), let due = DueChange(rawValue: String(record[1]))
      else { throw damaged("provider_record") }
      account.dueChanges[provider] = due
    }
    return account
  }

  /// Decodes `PROVIDER TIME` lines.
  private static func resets(_ text: String?) throws -> [ProviderName: Timestamp] {
    guard let text else { return [:] }
    var found: [ProviderName: Timestamp] = [:]
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: " ")
      guard parts.count == 2, let provider = ProviderName(rawValue: String(parts[0])), let time = Int64(parts[1]) else {
        throw damaged("factor_reset")
      }
      found[provider] = Timestamp(milliseconds: time)
    }
    return found
  }

  private static func identifier(_ row: some SQLRow) throws -> HeldIdentifier? {
    guard let name = try row.optionalText(7) else { return nil }
    guard let kind = IdentifierKind(rawValue: name) else { throw damaged("identifier") }
    return HeldIdentifier(
      identifier: try row.identifier(kind, at: 8, groups: 15), verifiedAt: try row.optionalMoment(11),
      waitsUntil: try row.optionalMoment(17))
  }
}

/// A row of an account with one identifier, as most accounts are.
private struct RowOfNobody: SQLRow {
  func optionalInteger(_ column: Int) throws -> Int64? { 0 }

  func optionalText(_ column: Int) throws -> String? {
    switch column {
    case 6: "password"
    case 7: IdentifierKind.email.rawValue
    case 10: "{\"domain\":\"example.com\"}"
    case 13, 14, 15, 18: nil
    default: "nobody@example.com"
    }
  }

  func optionalBytes(_ column: Int) throws -> [UInt8]? { nil }
}
