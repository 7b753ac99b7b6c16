import MoongateCore
import MoongateSDK

/// Accounts with their identifiers.
enum AccountRows {
  /// Selects the ID of the account that has verified an identifier. Its arguments are `Identifier.named`.
  static let holderID = "SELECT account FROM identifier WHERE kind = ?1 AND value = ?2 AND verified_at IS NOT NULL"

  private static let byID = AccountReads("?1")
  private static let byHolding = AccountReads("(\(holderID))")

  static func find(_ id: String, _ rows: some SQLTransaction) throws -> Account? { try byID.account([.text(id)], rows) }

  /// The read of one account, for `AccountReads.account`.
  static func read(_ id: String, _ dialect: SQLDialect) -> SQLRead { byID.read([.text(id)], dialect) }

  /// The existing accounts among these IDs, in the same order.
  static func find(_ ids: [String], _ rows: some SQLTransaction) throws -> [Account] {
    if ids.isEmpty { return [] }
    return try rows.rows(ids.map { read($0, rows.dialect) }).compactMap { try AccountReads.account($0) }
  }

  /// The account that has verified the identifier.
  ///
  /// Attack: the response time reveals who is known. The same statements are therefore executed if no account has it.
  static func holder(of identifier: Identifier, _ rows: some SQLTransaction) throws -> Account? {
    try byHolding.account(identifier.named, rows)
  }

  private static let withFlow = AccountReads("(\(holderID) AND EXISTS (SELECT 1 FROM flow WHERE hash = ?3))")

  /// The read of the account that has verified the identifier, for `AccountReads.account`.
  ///
  /// Attack: calls with flows that do not exist cost nothing and are counted nowhere, so their time tells in the end
  /// whether there is an account to decode. Without the flow, no account is found.
  static func readHolder(of identifier: Identifier, with flow: TokenHash, _ dialect: SQLDialect) -> SQLRead {
    withFlow.read(identifier.named + [.bytes(flow.bytes)], dialect)
  }

  /// The accounts that claim the identifier without having verified it, oldest first.
  /// - Parameter provider: only accounts with a record of this provider; nil: all.
  static func claimants(
    of identifier: Identifier, having provider: ProviderName?, limit: Int, _ rows: some SQLTransaction
  ) throws -> [String] {
    let having = provider.map { _ in
      " AND EXISTS (SELECT 1 FROM provider_record AS kept WHERE kept.account = claimant.id AND kept.provider = ?4)"
    }
    return try rows.rows(
      """
      SELECT claimant.id FROM identifier AS claim JOIN account AS claimant ON claimant.id = claim.account
      WHERE claim.kind = ?1 AND claim.value = ?2 AND claim.verified_at IS NULL\(having ?? "")
      ORDER BY claimant.created_at, claimant.id LIMIT ?3
      """, identifier.named + [SQLValue(max(0, limit))] + (provider.map { [.text($0.rawValue)] } ?? [])
    ).map { try $0.text(0) }
  }

  /// The IDs after `id`, in order.
  static func ids(after id: String?, limit: Int, _ rows: some SQLTransaction) throws -> [String] {
    try rows.rows(
      "SELECT id FROM account WHERE id > ?1 ORDER BY id LIMIT ?2", [.text(id ?? ""), SQLValue(max(0, limit))]
    ).map { try $0.text(0) }
  }

  /// All accounts that have the identifier: the one that has verified it first, then the newest.
  static func ids(naming identifier: Identifier, _ rows: some SQLTransaction) throws -> [String] {
    try rows.rows(
      """
      SELECT id FROM (
        SELECT account.id AS id, 0 AS claims, account.created_at AS created_at FROM identifier JOIN account ON account.id = identifier.account
        WHERE kind = ?1 AND value = ?2 AND verified_at IS NOT NULL
        UNION ALL
        SELECT account.id, 1, account.created_at FROM identifier JOIN account ON account.id = identifier.account
        WHERE kind = ?1 AND value = ?2 AND verified_at IS NULL
      ) AS named ORDER BY claims, created_at DESC, id
      """, identifier.named
    ).map { try $0.text(0) }
  }

  static func record(of account: String, for provider: ProviderName, _ rows: some SQLTransaction) throws -> [UInt8]? {
    try rows.row(
      "SELECT sealed FROM provider_record WHERE account = ?1 AND provider = ?2",
      [.text(account), .text(provider.rawValue)])?.bytes(0)
  }

  /// Says which imported hash a record holds; nil: none.
  static func markImportedHash(
    _ work: HashWork?, of account: String, for provider: ProviderName, _ rows: some SQLTransaction
  ) throws {
    try rows.run(
      "UPDATE provider_record SET imported_hash = ?3 WHERE account = ?1 AND provider = ?2",
      [.text(account), .text(provider.rawValue), SQLValue(work?.description)])
  }

  /// Says why the account must replace what the provider's record holds; nil: it need not.
  static func setDueChange(
    _ due: DueChange?, of account: String, for provider: ProviderName, _ notifications: ChangeNotifications,
    _ rows: some SQLTransaction
  ) throws {
    try rows.run(
      "UPDATE provider_record SET change_due = ?3 WHERE account = ?1 AND provider = ?2",
      [.text(account), .text(provider.rawValue), SQLValue(due?.rawValue)])
    notifications.add(account: account)
  }

  /// The different imported hashes of a provider. Each is one step in the index, however many records have it.
  static func importedHashes(of provider: ProviderName, _ rows: some SQLTransaction) throws -> Set<HashWork> {
    Set(
      try rows.rows(
        """
        WITH RECURSIVE imported (hash) AS (
          SELECT min(imported_hash) FROM provider_record WHERE provider = ?1 AND imported_hash IS NOT NULL
          UNION ALL
          SELECT (SELECT min(imported_hash) FROM provider_record WHERE provider = ?1 AND imported_hash > imported.hash)
          FROM imported WHERE imported.hash IS NOT NULL
        )
        SELECT hash FROM imported WHERE hash IS NOT NULL
        """, [.text(provider.rawValue)]
      ).compactMap { HashWork(try $0.text(0)) })
  }

  static func factors(of account: String, _ rows: some SQLTransaction) throws -> [StoredFactor] {
    try rows.rows(
      "SELECT provider, created_at, changed_at FROM provider_record WHERE account = ?1 ORDER BY provider",
      [.text(account)]
    ).compactMap {
      guard let provider = ProviderName(rawValue: try $0.text(0)) else { return nil }
      return StoredFactor(provider: provider, addedAt: try $0.moment(1), changedAt: try $0.moment(2))
    }
  }

  /// More than five parameters: the columns of the row, and the transaction.
  /// Replaces the provider's record; nil removes it.
  static func put(
    _ sealed: [UInt8]?, of account: String, for provider: ProviderName, at now: Timestamp,
    _ notifications: ChangeNotifications,
    _ rows: some SQLTransaction
  ) throws {
    try demandPresent(account, rows)
    if let sealed {
      try rows.run(
        """
        INSERT INTO provider_record (account, provider, sealed, created_at, changed_at) VALUES (?1, ?2, ?3, ?4, ?4)
        ON CONFLICT (account, provider) DO UPDATE SET sealed = excluded.sealed, changed_at = excluded.changed_at
        """, [.text(account), .text(provider.rawValue), .bytes(sealed), SQLValue(now)])
    } else {
      try rows.run(
        "DELETE FROM provider_record WHERE account = ?1 AND provider = ?2", [.text(account), .text(provider.rawValue)])
    }
    notifications.add(account: account)
  }

  /// Records that a factor of the account was reset now.
  static func recordReset(
    of account: String, for provider: ProviderName, at now: Timestamp, _ notifications: ChangeNotifications,
    _ rows: some SQLTransaction
  ) throws {
    try demandPresent(account, rows)
    try rows.run(
      """
      INSERT INTO factor_reset (account, provider, reset_at) VALUES (?1, ?2, ?3)
      ON CONFLICT (account, provider) DO UPDATE SET reset_at = excluded.reset_at
      """, [.text(account), .text(provider.rawValue), SQLValue(now)])
    notifications.add(account: account)
  }

  /// Sets names that are missing.
  static func name(
    _ account: String, first: String?, last: String?, _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  ) throws {
    try rows.run(
      "UPDATE account SET first_name = coalesce(first_name, ?1), last_name = coalesce(last_name, ?2) WHERE id = ?3",
      [SQLValue(first), SQLValue(last), .text(account)])
    notifications.add(account: account)
  }

  /// Sets the language.
  static func setLanguage(
    _ account: String, _ language: String, _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  )
    throws
  {
    try rows.run("UPDATE account SET language = ?1 WHERE id = ?2", [.text(language), .text(account)])
    notifications.add(account: account)
  }

  /// Replaces the names.
  static func rename(
    _ account: String, first: String?, last: String?, _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  ) throws {
    try rows.demand(
      "UPDATE account SET first_name = ?1, last_name = ?2 WHERE id = ?3",
      [SQLValue(first), SQLValue(last), .text(account)],
      orElse: .accountUnavailable)
    notifications.add(account: account)
  }

  /// Locks the account for an operator and ends its sessions, or unlocks it. An account of an import that is not
  /// complete (`AccountImportRows`) stays so.
  static func setLocked(
    _ account: String, _ isLocked: Bool, _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  )
    throws
  {
    try rows.demand(
      "UPDATE account SET is_locked = is_locked / 2 * 2 + ?1 WHERE id = ?2", [SQLValue(isLocked), .text(account)],
      orElse: .accountUnavailable)
    if isLocked { return try SessionRows.end(of: account, except: nil, notifications, rows) }
    notifications.add(account: account)
  }

  /// A row if the account exists.
  static func readPresence(of account: String) -> SQLRead {
    SQLRead("SELECT 1 FROM account WHERE id = ?1", [.text(account)])
  }

  static func demandPresent(_ account: String, _ rows: some SQLTransaction) throws {
    let presence = readPresence(of: account)
    try rows.demand(presence.sql, presence.arguments, orElse: .accountUnavailable)
  }

  /// Conflicts if the account does not exist or an operator has locked it.
  static func requireAvailable(_ account: String, _ rows: some SQLTransaction) throws {
    try rows.demand(
      "SELECT 1 FROM account WHERE id = ?1 AND is_locked = 0", [.text(account)], orElse: .accountUnavailable)
  }

  /// Conflicts if the account has changed since, or does not exist.
  static func requireEpoch(_ version: AccountVersion, _ rows: some SQLTransaction) throws {
    try rows.demand(
      "SELECT 1 FROM account WHERE id = ?1 AND epoch = ?2", [.text(version.id), SQLValue(version.epoch)],
      orElse: .epochChanged)
  }

  static func raiseEpoch(
    of account: String, keepsTokens: Bool = false, _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  ) throws {
    if keepsTokens {
      try AccessTokenRows.raiseEpoch(of: account, rows)
    } else {
      try AccessTokenRows.outdate(of: account, rows)
    }
    try rows.run("UPDATE account SET epoch = epoch + 1 WHERE id = ?1", [.text(account)])
    notifications.add(account: account)
  }

  /// Records that the account has verified an identifier. It is then no longer removed as unverified.
  static func proved(_ account: String, _ rows: some SQLTransaction) throws {
    try rows.run("UPDATE account SET is_unproved = NULL WHERE id = ?1 AND is_unproved IS NOT NULL", [.text(account)])
  }

  static func recordUse(_ account: String, at now: Timestamp, _ rows: some SQLTransaction) throws {
    try rows.run(
      "UPDATE account SET last_seen_at = ?1 WHERE id = ?2 AND last_seen_at < ?1", [SQLValue(now), .text(account)])
  }
}

extension Identifier {
  /// The arguments for looking it up.
  var named: [SQLValue] { [.text(kind.rawValue), .text(value)] }
}
