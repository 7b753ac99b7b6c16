import Foundation
import GRDB
import MoongateCore
import MoongateSDK

/// Accounts with their identifiers.
enum AccountRows {
  static func find(_ id: String, _ db: Database) throws -> Account? {
    // Before it is known whether there is such an account: the same reads for whom there is none.
    let identifiers = try identifiers(of: id, db)
    guard
      let row = try db.row(
        """
        SELECT id, first_name, last_name, created_at, last_seen_at, is_locked,
          (SELECT group_concat(provider, ' ') FROM provider_record WHERE account = account.id)
        FROM account WHERE id = ?
        """, [id])
    else { return nil }
    return Account(
      id: row[0], firstName: row[1], lastName: row[2], createdAt: row.moment(3), lastSeenAt: row.moment(4), isLocked: row[5],
      identifiers: identifiers,
      credentials: Set((row[6] as String? ?? "").split(separator: " ").compactMap { ProviderName(rawValue: String($0)) }))
  }

  /// The account that holds the identifier verified.
  static func holder(of identifier: Identifier, _ db: Database) throws -> String? {
    try db.row(
      "SELECT account FROM identifier WHERE kind = ? AND value = ? AND verified_at IS NOT NULL", [identifier.kind.rawValue, identifier.value])?[0]
  }

  /// The newest account that claims the identifier unverified, among those for which the provider keeps something.
  static func claimant(of identifier: Identifier, having provider: ProviderName, _ db: Database) throws -> String? {
    try db.row(
      """
      SELECT account.id FROM identifier JOIN account ON account.id = identifier.account
      WHERE kind = ? AND value = ? AND verified_at IS NULL
        AND EXISTS (SELECT 1 FROM provider_record WHERE provider_record.account = account.id AND provider = ?)
      ORDER BY account.created_at DESC, account.id LIMIT 1
      """, [identifier.kind.rawValue, identifier.value, provider.rawValue])?[0]
  }

  static func create(_ account: Account, at now: Timestamp, _ db: Database) throws {
    try db.run(
      "INSERT INTO account (id, first_name, last_name, created_at, last_seen_at, is_locked) VALUES (?, ?, ?, ?, ?, ?)",
      [account.id, account.firstName, account.lastName, account.createdAt.milliseconds, account.lastSeenAt.milliseconds, account.isLocked])
    for (position, held) in account.identifiers.enumerated() {
      if held.verifiedAt != nil {
        if try holder(of: held.identifier, db) != nil { throw ChangeConflict(.identifierTaken) }
        try evictClaims(on: held.identifier, besides: account.id, at: now, db)
      }
      try insert(held, of: account.id, position: position, db)
    }
  }

  /// Marks the identifier as the account's own, proved now. One that it holds verified already stays as it is.
  static func verify(_ identifier: Identifier, of account: String, at now: Timestamp, _ db: Database) throws {
    if let holder = try holder(of: identifier, db) {
      guard holder == account else { throw ChangeConflict(.identifierTaken) }
      return
    }
    guard try db.row("SELECT 1 FROM account WHERE id = ?", [account]) != nil else { throw ChangeConflict(.accountUnavailable) }
    try evictClaims(on: identifier, besides: account, at: now, db)
    let marked = try db.run(
      "UPDATE identifier SET verified_at = ? WHERE account = ? AND kind = ? AND value = ?",
      [now.milliseconds, account, identifier.kind.rawValue, identifier.value])
    if marked == 0 {
      try insert(HeldIdentifier(identifier: identifier, verifiedAt: now), of: account, position: try nextPosition(in: account, db), db)
    }
    try SessionRows.announce(account: account, at: now, db)
  }

  /// Holds it as the account's own word.
  static func claim(_ identifier: Identifier, of account: String, at now: Timestamp, _ db: Database) throws {
    let value = [account, identifier.kind.rawValue, identifier.value]
    guard try db.row("SELECT 1 FROM identifier WHERE account = ? AND kind = ? AND value = ?", StatementArguments(value)) == nil else { return }
    guard try db.row("SELECT 1 FROM account WHERE id = ?", [account]) != nil else { throw ChangeConflict(.accountUnavailable) }
    try insert(HeldIdentifier(identifier: identifier, verifiedAt: nil), of: account, position: try nextPosition(in: account, db), db)
    try SessionRows.announce(account: account, at: now, db)
  }

  /// Takes identifiers of a kind away, but for one.
  static func drop(_ kind: IdentifierKind, of account: String, except kept: Identifier, at now: Timestamp, _ db: Database) throws {
    try db.run("DELETE FROM identifier WHERE account = ? AND kind = ? AND value <> ?", [account, kind.rawValue, kept.value])
    try SessionRows.announce(account: account, at: now, db)
  }

  /// Fills in the names that are missing.
  static func name(_ account: String, first: String?, last: String?, at now: Timestamp, _ db: Database) throws {
    try db.run(
      "UPDATE account SET first_name = coalesce(first_name, ?), last_name = coalesce(last_name, ?) WHERE id = ?", [first, last, account])
    try SessionRows.announce(account: account, at: now, db)
  }

  /// Moves what the account holds verified to its heir; the account is gone.
  static func absorb(_ account: String, into heir: String, at now: Timestamp, _ db: Database) throws {
    try demandAvailable(account, db)
    try demandAvailable(heir, db)
    let moved = try db.rows("SELECT position, kind, value FROM identifier WHERE account = ? AND verified_at IS NOT NULL ORDER BY position", [account])
    for row in moved {
      // The heir's own claim on it is proved by this.
      try db.run("DELETE FROM identifier WHERE account = ? AND kind = ? AND value = ?", [heir, row[1] as String, row[2] as String])
      try db.run(
        "UPDATE identifier SET account = ?, position = ? WHERE account = ? AND position = ?",
        [heir, try nextPosition(in: heir, db), account, row[0] as Int])
    }
    try SessionRows.end(of: account, except: nil, at: now, db)
    try db.run("DELETE FROM account WHERE id = ?", [account])
    try SessionRows.announce(account: heir, at: now, db)
  }

  private static func nextPosition(in account: String, _ db: Database) throws -> Int {
    try db.row("SELECT coalesce(max(position), -1) + 1 FROM identifier WHERE account = ?", [account])?[0] ?? 0
  }

  static func record(of account: String, for provider: ProviderName, _ db: Database) throws -> Data? {
    try db.row("SELECT sealed FROM provider_record WHERE account = ? AND provider = ?", [account, provider.rawValue])?[0]
  }

  /// Replaces what the provider keeps; nil removes it.
  static func put(_ sealed: [UInt8]?, of account: String, for provider: ProviderName, at now: Timestamp, _ db: Database) throws {
    guard try db.row("SELECT 1 FROM account WHERE id = ?", [account]) != nil else { throw ChangeConflict(.accountUnavailable) }
    if let sealed {
      try db.run(
        "INSERT INTO provider_record (account, provider, sealed) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET sealed = excluded.sealed",
        [account, provider.rawValue, Data(sealed)])
    } else {
      try db.run("DELETE FROM provider_record WHERE account = ? AND provider = ?", [account, provider.rawValue])
    }
    try SessionRows.announce(account: account, at: now, db)
  }

  /// In their order, from the one after `id`.
  static func ids(after id: String?, limit: Int, _ db: Database) throws -> [String] {
    try db.rows("SELECT id FROM account WHERE id > ? ORDER BY id LIMIT ?", [id ?? "", max(0, limit)]).map { $0[0] }
  }

  /// All that have the identifier: who holds it verified first, then the newest.
  static func ids(naming identifier: Identifier, _ db: Database) throws -> [String] {
    try db.rows(
      """
      SELECT account.id FROM identifier JOIN account ON account.id = identifier.account
      WHERE kind = :kind AND value = :value AND verified_at IS NOT NULL
      UNION ALL
      SELECT * FROM (
        SELECT account.id FROM identifier JOIN account ON account.id = identifier.account
        WHERE kind = :kind AND value = :value AND verified_at IS NULL ORDER BY account.created_at DESC, account.id)
      """, ["kind": identifier.kind.rawValue, "value": identifier.value]
    ).map { $0[0] }
  }

  /// An operator's lock, which ends all sessions; or its end.
  static func setLocked(_ account: String, _ isLocked: Bool, at now: Timestamp, _ db: Database) throws {
    guard try db.run("UPDATE account SET is_locked = ? WHERE id = ?", [isLocked, account]) > 0 else { throw ChangeConflict(.accountUnavailable) }
    if isLocked { try db.run("DELETE FROM session WHERE account = ?", [account]) }
    try SessionRows.announce(account: account, at: now, db)
  }

  /// Conflicts where the account is gone or locked by an operator.
  static func demandAvailable(_ account: String, _ db: Database) throws {
    let isLocked: Bool? = try db.row("SELECT is_locked FROM account WHERE id = ?", [account])?[0]
    if isLocked ?? true { throw ChangeConflict(.accountUnavailable) }
  }

  static func seen(_ account: String, at now: Timestamp, _ db: Database) throws {
    try db.run("UPDATE account SET last_seen_at = max(last_seen_at, ?) WHERE id = ?", [now.milliseconds, account])
  }

  /// Attack: who registers a stranger's address first must not share the account of the stranger who later proves it.
  /// Whoever proves it owns it; other claimants lose address, password and sessions (exact.md, "Sending and codes").
  private static func evictClaims(on identifier: Identifier, besides owner: String, at now: Timestamp, _ db: Database) throws {
    let claims = try db.rows(
      "SELECT account, position FROM identifier WHERE kind = ? AND value = ? AND verified_at IS NULL AND account <> ?",
      [identifier.kind.rawValue, identifier.value, owner])
    for claim in claims {
      let account: String = claim[0]
      try db.run("DELETE FROM identifier WHERE account = ? AND position = ?", [account, claim[1] as Int])
      try db.run("DELETE FROM provider_record WHERE account = ? AND provider = 'password'", [account])
      try SessionRows.end(of: account, except: nil, at: now, db)
    }
  }

  private static func insert(_ held: HeldIdentifier, of account: String, position: Int, _ db: Database) throws {
    let identifier = held.identifier
    try db.run(
      "INSERT INTO identifier (account, position, kind, value, display, attributes, verified_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
      [
        account, position, identifier.kind.rawValue, identifier.value, identifier.display,
        String(decoding: try JSON.encode(identifier.attributes), as: UTF8.self), held.verifiedAt?.milliseconds,
      ])
  }

  private static func identifiers(of account: String, _ db: Database) throws -> [HeldIdentifier] {
    try db.rows("SELECT kind, value, display, attributes, verified_at FROM identifier WHERE account = ? ORDER BY position", [account]).map { row in
      guard let kind = IdentifierKind(rawValue: row[0]) else { throw damaged("identifier") }
      let attributes = try JSON.decode([String: String].self, Data((row[3] as String).utf8))
      return HeldIdentifier(
        identifier: Identifier(kind: kind, value: row[1], display: row[2], attributes: attributes), verifiedAt: row.optionalMoment(4))
    }
  }
}
