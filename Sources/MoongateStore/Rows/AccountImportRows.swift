import MoongateCore
import MoongateSDK

/// Accounts of an import that is not complete.
///
/// To the `is_locked` of such an account, `pending` is added. While there are such accounts, the row of imports in
/// `lease` has a holder: `underWay`, or `complete` followed by the providers whose secrets belong to an identifier,
/// once all of them are to be used. The row stays when an import ends, so that each import has another fence.
enum AccountImportRows {
  static let pending = 2
  private static let underWay = "import"
  private static let complete = "complete"
  /// The number of accounts, or of values to look up, that a statement processes.
  static let stretch = 200
  private static let list = CountedStatement.list(stretch)

  // MARK: Looking up

  static func existing(_ names: ImportedNames, _ rows: some SQLTransaction) throws -> ImportedNames {
    var found = ImportedNames()
    found.ids = try matches(of: names.ids, "SELECT id FROM account WHERE id IN (\(list))", rows)
    for (kind, identifiers) in Dictionary(grouping: names.verified, by: \.kind) {
      let values = try matches(
        of: identifiers.map(\.value),
        "SELECT value FROM identifier WHERE kind = '\(kind.rawValue)' AND verified_at IS NOT NULL AND value IN (\(list))",
        rows)
      found.verified.formUnion(identifiers.filter { values.contains($0.value) })
    }
    let skeletons = try matches(
      of: names.exclusive.compactMap(\.skeleton),
      "SELECT skeleton FROM identifier WHERE skeleton IS NOT NULL AND skeleton IN (\(list))", rows)
    for (kind, identifiers) in Dictionary(grouping: names.exclusive, by: \.kind) {
      let values = try matches(
        of: identifiers.map(\.value),
        "SELECT value FROM identifier WHERE kind = '\(kind.rawValue)' AND skeleton IS NOT NULL AND value IN (\(list))",
        rows)
      found.exclusive.formUnion(
        identifiers.filter { values.contains($0.value) || $0.skeleton.map(skeletons.contains) ?? false })
    }
    return found
  }

  /// The values that the statement finds.
  private static func matches(of values: some Collection<String>, _ sql: String, _ rows: some SQLTransaction) throws
    -> Set<String>
  {
    var found: Set<String> = []
    try eachRow(of: values, sql, rows) { found.insert(try $0.text(0)) }
    return found
  }

  /// Calls the body with each row that the statement finds for the values.
  private static func eachRow<Rows: SQLTransaction>(
    of values: some Collection<String>, _ sql: String, _ rows: Rows, _ body: (Rows.Row) throws -> Void
  ) throws {
    let values = Array(values)
    for start in stride(from: 0, to: values.count, by: stretch) {
      let part = values[start..<min(values.count, start + stretch)]
      for row in try rows.rows(sql, padded(part)) { try body(row) }
    }
  }

  /// The arguments of a list: the last value is repeated, so that one text serves for every number of values.
  private static func padded(_ values: some Collection<String>) -> [SQLValue] {
    let arguments = values.map(SQLValue.text)
    guard let last = arguments.last else { return [SQLValue](repeating: .null, count: stretch) }
    return arguments + [SQLValue](repeating: last, count: max(0, stretch - arguments.count))
  }

  // MARK: Importing

  /// - Returns: nil if an import is under way, or if one is not settled.
  static func begin(at now: Timestamp, _ rows: some SQLTransaction) throws -> Lease? {
    let until = now + AccountImport.length
    // Attack on ourselves: an import that paused goes on under the lease of the next one. Each has another fence.
    let begun = try rows.row(
      """
      INSERT INTO lease (name, holder, fence, held_until, due_at) VALUES (?1, ?2, 1, ?3, 0)
      ON CONFLICT (name) DO UPDATE SET
        holder = excluded.holder, fence = lease.fence + 1, held_until = excluded.held_until
      WHERE lease.holder = '' RETURNING fence
      """, [.text(AccountImport.lease), .text(underWay), SQLValue(until)])
    return try begun.map { Lease(name: AccountImport.lease, fence: try $0.integer(0), heldUntil: until) }
  }

  static func require(_ lease: Lease, at now: Timestamp, _ rows: some SQLTransaction) throws {
    guard try LeaseRows.isHeld(lease, at: now, rows) else { throw ChangeConflict(.leaseLost) }
  }

  /// Inserts the account without reading anything. It takes no claims from other accounts yet.
  static func add(_ new: StoredImport, at now: Timestamp, _ rows: some SQLTransaction) throws {
    let account = new.account
    try rows.demand(
      """
      INSERT INTO account (id, first_name, last_name, created_at, last_seen_at, is_locked, is_unproved)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING
      """,
      [
        .text(account.id), SQLValue(account.firstName), SQLValue(account.lastName), SQLValue(account.createdAt),
        SQLValue(account.lastSeenAt), SQLValue(pending + (account.isLocked ? 1 : 0)),
        account.hasOwnIdentifier ? .null : .integer(1),
      ], orElse: .identifierTaken)
    for (position, held) in account.identifiers.enumerated() {
      try rows.demand(
        """
        INSERT INTO identifier
          (account, position, kind, value, display, attributes, member_of, verified_at, waits_until, skeleton)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING
        """,
        [.text(account.id), SQLValue(position)] + held.identifier.named + IdentifierRows.details(held.identifier)
          + [SQLValue(held.verifiedAt), SQLValue(held.waitsUntil), SQLValue(held.identifier.skeleton)],
        orElse: .identifierTaken)
    }
    for group in account.groups.sorted() {
      try rows.run(
        "INSERT INTO group_member (name, account, added_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        [.text(group.rawValue), .text(account.id), SQLValue(now)])
    }
    for record in new.records {
      try rows.run(
        """
        INSERT INTO provider_record (account, provider, sealed, created_at, changed_at, imported_hash, change_due)
        VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)
        """,
        [
          .text(account.id), .text(record.provider.rawValue), .bytes(record.sealed), SQLValue(now),
          SQLValue(record.importedHash?.description), SQLValue(record.dueChange?.rawValue),
        ])
    }
  }

  static func complete(_ lease: Lease, forgetting providers: Set<ProviderName>, _ rows: some SQLTransaction) throws {
    let holder = [complete] + providers.sorted().map(\.rawValue)
    try rows.demand(
      "UPDATE lease SET holder = ?1 WHERE name = ?2 AND fence = ?3",
      [.text(holder.joined(separator: " ")), .text(lease.name), .integer(lease.fence)], orElse: .leaseLost)
  }

  // MARK: Settling

  /// Whether `settle` may have something to do.
  static func isUnsettled(at now: Timestamp, _ rows: some SQLTransaction) throws -> Bool {
    try state(at: now, "", rows) != nil
  }

  private enum State {
    case complete(forgetting: Set<ProviderName>)
    case stopped
  }

  /// - Returns: nil if there is no import to settle, or one that is under way.
  private static func state(at now: Timestamp, _ locking: String, _ rows: some SQLTransaction) throws -> State? {
    guard
      let row = try rows.row(
        "SELECT holder, held_until FROM lease WHERE name = ?1\(locking)", [.text(AccountImport.lease)])
    else { return nil }
    let holder = try row.text(0).split(separator: " ").map(String.init)
    guard let first = holder.first else { return nil }
    if first == complete {
      return .complete(forgetting: Set(holder.dropFirst().compactMap { ProviderName(rawValue: $0) }))
    }
    return try row.moment(1) <= now ? .stopped : nil
  }

  /// - Returns: whether there is more to do.
  static func settle(at now: Timestamp, _ notifications: ChangeNotifications, _ rows: some SQLTransaction) throws
    -> Bool
  {
    // The importer cannot add accounts meanwhile: it reads the row with a lock too.
    let locking = rows.dialect.words(sqlite: "", postgres: " FOR UPDATE")
    guard let state = try state(at: now, locking, rows) else { return false }
    let accounts = try rows.rows("SELECT id FROM account WHERE is_locked >= \(pending) LIMIT \(stretch)").map {
      try $0.text(0)
    }
    guard !accounts.isEmpty else {
      // Attack on ourselves: the importer that held the lease goes on. Without `held_until`, it is lost.
      try rows.run(
        "UPDATE lease SET holder = '', held_until = 0, due_at = 0 WHERE name = ?1", [.text(AccountImport.lease)])
      return false
    }
    switch state {
    case .complete(let providers):
      try takeClaims(of: accounts, forgetting: providers, notifications, rows)
      try rows.run("UPDATE account SET is_locked = is_locked % \(pending) WHERE id IN (\(list))", padded(accounts))
    case .stopped: try rows.run("DELETE FROM account WHERE id IN (\(list))", padded(accounts))
    }
    return true
  }

  /// Removes the claims of others on what the accounts have verified.
  ///
  /// Attack: someone claims an address with a password of their own, before its owner is imported.
  private static func takeClaims(
    of accounts: [String], forgetting providers: Set<ProviderName>, _ notifications: ChangeNotifications,
    _ rows: some SQLTransaction
  ) throws {
    var owners: [Identifier: String] = [:]
    let held = "SELECT account, kind, value FROM identifier WHERE account IN (\(list)) AND verified_at IS NOT NULL"
    for row in try rows.rows(held, padded(accounts)) {
      guard let kind = IdentifierKind(rawValue: try row.text(1)) else { throw damaged("identifier") }
      owners[Identifier(kind: kind, value: try row.text(2), display: "")] = try row.text(0)
    }
    var claims: [(account: String, identifier: Identifier)] = []
    for (kind, identifiers) in Dictionary(grouping: owners.keys, by: \.kind) {
      let claimed =
        "SELECT account, value FROM identifier WHERE kind = '\(kind.rawValue)' AND verified_at IS NULL AND value IN (\(list))"
      try eachRow(of: identifiers.map(\.value), claimed, rows) { row in
        let (account, identifier) = (try row.text(0), Identifier(kind: kind, value: try row.text(1), display: ""))
        if owners[identifier] != account { claims.append((account, identifier)) }
      }
    }
    var rowLocks = RowLocks()
    for claim in claims { rowLocks.add(account: claim.account) }
    try rowLocks.take(rows)
    for claim in claims {
      try IdentifierRows.evict([claim.account], from: claim.identifier, forgetting: providers, notifications, rows)
    }
  }
}
