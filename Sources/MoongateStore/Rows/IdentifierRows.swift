import MoongateCore
import MoongateSDK

/// The identifiers of accounts and their changes.
enum IdentifierRows {
  static func create(
    _ account: Account, forgetting providers: Set<ProviderName>, _ notifications: ChangeNotifications,
    _ rows: some SQLTransaction
  ) throws {
    try rows.run(
      "INSERT INTO account (id, first_name, last_name, created_at, last_seen_at, is_locked, is_unproved) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
      [
        .text(account.id), SQLValue(account.firstName), SQLValue(account.lastName), SQLValue(account.createdAt),
        SQLValue(account.lastSeenAt),
        SQLValue(account.isLocked), account.hasOwnIdentifier ? .null : .integer(1),
      ])
    for (position, held) in account.identifiers.enumerated() {
      if held.verifiedAt != nil {
        let found = try rows.rows([
          holder(of: held.identifier), claimants(of: held.identifier, besides: account.id, rows.dialect),
        ])
        if !found[0].isEmpty { throw ChangeConflict(.identifierTaken) }
        try evict(
          try found[1].map { try $0.text(0) }, from: held.identifier, forgetting: providers, notifications, rows)
      }
      try insert(held, of: account.id, position: position, rows)
    }
  }

  /// Marks the identifier as verified by the account. One that it has verified already stays unchanged.
  static func verify(
    _ held: HeldIdentifier, of account: String, forgetting providers: Set<ProviderName>,
    _ notifications: ChangeNotifications,
    _ rows: some SQLTransaction
  ) throws {
    let identifier = held.identifier
    let found = try rows.rows([
      holder(of: identifier), claimants(of: identifier, besides: account, rows.dialect),
      AccountRows.readPresence(of: account), own(identifier, account),
    ])
    if let holder = try found[0].first?.text(0) {
      guard holder == account else { throw ChangeConflict(.identifierTaken) }
      return
    }
    if found[2].isEmpty { throw ChangeConflict(.accountUnavailable) }
    try evict(try found[1].map { try $0.text(0) }, from: identifier, forgetting: providers, notifications, rows)
    try AccountRows.proved(account, rows)
    if found[3].isEmpty {
      try insert(held, of: account, position: nil, rows)
    } else {
      try rows.run(
        """
        UPDATE identifier SET verified_at = ?1, display = ?5, attributes = ?6, member_of = ?7, waits_until = ?8
        WHERE account = ?2 AND kind = ?3 AND value = ?4
        """,
        [SQLValue(held.verifiedAt), .text(account)] + identifier.named + details(identifier)
          + [SQLValue(held.waitsUntil)])
    }
    notifications.add(account: account)
  }

  /// Replaces the details of an identifier that the account has verified.
  static func renew(
    _ identifier: Identifier, of account: String, _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  ) throws {
    try rows.run(
      """
      UPDATE identifier SET display = ?4, attributes = ?5, member_of = ?6
      WHERE account = ?1 AND kind = ?2 AND value = ?3 AND verified_at IS NOT NULL
      """, [.text(account)] + identifier.named + details(identifier))
    notifications.add(account: account)
  }

  /// What a site says about an identifier: its display, its attributes, and its groups.
  static func details(_ identifier: Identifier) throws -> [SQLValue] {
    [
      .text(identifier.display), try .json(identifier.attributes),
      identifier.groups.isEmpty ? .null : try .json(identifier.groups),
    ]
  }

  /// Adds the identifier to the account as unverified.
  static func claim(
    _ identifier: Identifier, of account: String, _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  ) throws {
    let found = try rows.rows([
      own(identifier, account), AccountRows.readPresence(of: account),
    ])
    if !found[0].isEmpty { return }
    if found[1].isEmpty { throw ChangeConflict(.accountUnavailable) }
    try insert(HeldIdentifier(identifier: identifier, verifiedAt: nil), of: account, position: nil, rows)
    notifications.add(account: account)
  }

  /// Removes the identifiers of a kind, except one.
  static func drop(
    _ kind: IdentifierKind, of account: String, except kept: Identifier, _ notifications: ChangeNotifications,
    _ rows: some SQLTransaction
  )
    throws
  {
    try rows.run(
      "DELETE FROM identifier WHERE account = ?1 AND kind = ?2 AND value <> ?3",
      [.text(account), .text(kind.rawValue), .text(kept.value)])
    notifications.add(account: account)
  }

  /// Removes one identifier.
  static func remove(
    _ identifier: Identifier, from account: String, _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  ) throws {
    try rows.demand(
      "DELETE FROM identifier WHERE account = ?1 AND kind = ?2 AND value = ?3", [.text(account)] + identifier.named,
      orElse: .recordChanged)
    notifications.add(account: account)
  }

  /// Removes everything from the account that someone may have added who claimed the identifier before its owner
  /// verified it.
  static func reclaim(
    _ account: String, by identifier: Identifier, keeping kept: Set<ProviderName>, _ notifications: ChangeNotifications,
    _ rows: some SQLTransaction
  ) throws {
    let verified = try rows.rows(
      "SELECT kind, value FROM identifier WHERE account = ?1 AND verified_at IS NOT NULL", [.text(account)])
    guard
      try verified.count == 1 && verified[0].text(0) == identifier.kind.rawValue
        && verified[0].text(1) == identifier.value
    else {
      throw ChangeConflict(.recordChanged)
    }
    try rows.run("DELETE FROM identifier WHERE account = ?1 AND verified_at IS NULL", [.text(account)])
    for row in try rows.rows("SELECT provider FROM provider_record WHERE account = ?1", [.text(account)]) {
      let provider = try row.text(0)
      if kept.contains(where: { $0.rawValue == provider }) { continue }
      try rows.run(
        "DELETE FROM provider_record WHERE account = ?1 AND provider = ?2", [.text(account), .text(provider)])
    }
    // Attack: someone claims an address first, and an operator adds the account to a group in the belief that it
    // belongs to the owner of the address.
    try GroupRows.clear(account, rows)
    try rows.run("DELETE FROM access_token WHERE account = ?1", [.text(account)])
    try DeviceRows.forgetAll(of: account, except: nil, notifications, rows)
    try SessionRows.end(of: account, except: nil, notifications, rows)
  }

  /// More than five parameters: the members of the change, and the transaction.
  /// Moves the account's verified identifiers to its heir, and deletes the account.
  ///
  /// Attack: someone who has taken over another user's number merges that account into their own, and would get
  /// its groups without its second factor. Groups are therefore not moved; an operator must add the heir.
  static func absorb(
    _ account: String, into heir: String, at now: Timestamp, waitingUntil wait: Timestamp?,
    _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  ) throws {
    try AccountRows.requireAvailable(account, rows)
    try AccountRows.requireAvailable(heir, rows)
    let moved = try rows.rows(
      """
      SELECT position, kind, value FROM identifier WHERE account = ?1 AND verified_at IS NOT NULL AND (kind = ?3 OR NOT EXISTS (
        SELECT 1 FROM identifier AS own WHERE own.account = ?2 AND own.kind = identifier.kind AND own.verified_at IS NOT NULL)) ORDER BY position
      """, [.text(account), .text(heir), .text(IdentifierKind.federated.rawValue)])
    for row in moved {
      // The heir's own claim on the identifier is thereby verified.
      try rows.run(
        "DELETE FROM identifier WHERE account = ?1 AND kind = ?2 AND value = ?3",
        [.text(heir), .text(try row.text(1)), .text(try row.text(2))])
      try rows.run(
        """
        UPDATE identifier SET account = ?1, verified_at = ?4, waits_until = ?5, position = (SELECT coalesce(max(position), -1) + 1 FROM identifier WHERE account = ?1)
        WHERE account = ?2 AND position = ?3
        """, [.text(heir), .text(account), .integer(try row.integer(0)), SQLValue(now), SQLValue(wait)])
    }
    if !moved.isEmpty { try AccountRows.proved(heir, rows) }
    try SessionRows.end(of: account, except: nil, notifications, rows)
    try rows.run("DELETE FROM account WHERE id = ?1", [.text(account)])
    notifications.add(account: heir)
  }

  /// The account that has verified the identifier.
  private static func holder(of identifier: Identifier) -> SQLRead {
    SQLRead(AccountRows.holderID, identifier.named)
  }

  /// Whether the account has the identifier, verified or not.
  private static func own(_ identifier: Identifier, _ account: String) -> SQLRead {
    SQLRead(
      "SELECT 1 FROM identifier WHERE account = ?1 AND kind = ?2 AND value = ?3", [.text(account)] + identifier.named)
  }

  /// The other accounts that claim the identifier. They are locked, because they will lose sessions and records, and no
  /// one may sign in to them meanwhile.
  private static func claimants(of identifier: Identifier, besides owner: String, _ dialect: SQLDialect) -> SQLRead {
    SQLRead(
      dialect.words(
        sqlite:
          "SELECT account FROM identifier WHERE kind = ?1 AND value = ?2 AND verified_at IS NULL AND account <> ?3",
        postgres: """
          SELECT account.id FROM identifier JOIN account ON account.id = identifier.account
          WHERE kind = ?1 AND value = ?2 AND verified_at IS NULL AND account <> ?3 ORDER BY account.id FOR UPDATE OF account
          """), identifier.named + [.text(owner)])
  }

  /// Removes the claims of other accounts.
  ///
  /// Attack: someone registers another user's address first and shares the account of the user who later verifies it.
  /// The address belongs to the account that verifies it; other claimants lose the address, the secrets that belong to
  /// it (such as a password), and their sessions. The secrets of an account that has a name belong to the name.
  /// - Parameter providers: the providers whose secrets belong to an identifier.
  static func evict(
    _ claimants: [String], from identifier: Identifier, forgetting providers: Set<ProviderName>,
    _ notifications: ChangeNotifications,
    _ rows: some SQLTransaction
  ) throws {
    for account in claimants {
      try rows.run(
        "DELETE FROM identifier WHERE account = ?1 AND kind = ?2 AND value = ?3 AND verified_at IS NULL",
        [.text(account)] + identifier.named)
      for provider in providers.sorted() {
        try rows.run(
          """
          DELETE FROM provider_record WHERE account = ?1 AND provider = ?2
            AND NOT EXISTS (SELECT 1 FROM identifier WHERE account = ?1 AND skeleton IS NOT NULL)
          """,
          [.text(account), .text(provider.rawValue)])
      }
      try AccountRows.raiseEpoch(of: account, notifications, rows)
      try SessionRows.end(of: account, except: nil, notifications, rows)
    }
  }

  /// Whether an account has the name, or one that looks like it.
  static func isTaken(_ identifier: Identifier, _ rows: some SQLTransaction) throws -> Bool {
    guard let skeleton = identifier.skeleton else { return false }
    return try rows.rows([
      SQLRead("SELECT 1 FROM identifier WHERE skeleton = ?1", [.text(skeleton)]),
      SQLRead("SELECT 1 FROM identifier WHERE kind = ?1 AND value = ?2 AND skeleton IS NOT NULL", identifier.named),
    ]).contains { !$0.isEmpty }
  }

  /// - Parameter position: nil to insert after all other identifiers of the account.
  private static func insert(_ held: HeldIdentifier, of account: String, position: Int?, _ rows: some SQLTransaction)
    throws
  {
    let identifier = held.identifier
    // Attack: two people register names that look alike at the same moment. The indexes let only one of them in.
    if try isTaken(identifier, rows) { throw ChangeConflict(.identifierTaken) }
    try rows.run(
      """
      INSERT INTO identifier
        (account, position, kind, value, display, attributes, member_of, verified_at, waits_until, skeleton)
      VALUES (?1, coalesce(?2, (SELECT max(position) + 1 FROM identifier WHERE account = ?1), 0), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
      """,
      [.text(account), position.map { SQLValue($0) } ?? .null] + identifier.named + details(identifier)
        + [SQLValue(held.verifiedAt), SQLValue(held.waitsUntil), SQLValue(identifier.skeleton)])
  }
}
