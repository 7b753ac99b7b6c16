import MoongateCore

/// Access tokens.
enum AccessTokenRows {
  private static let columns = """
    id, hash, master, name, account, epoch, member_of, networks, created_at, expires_at, is_superseded, last_used_at, last_used_from
    """
  private static let byHash = "SELECT \(columns) FROM access_token WHERE hash = ?1"
  private static let ownerByHash = AccountReads("(SELECT account FROM access_token WHERE hash = ?1)")
  private static let byID = "SELECT \(columns) FROM access_token WHERE id = ?1"
  private static let ownerByID = AccountReads("(SELECT account FROM access_token WHERE id = ?1)")

  /// How long a token is listed after its expiry.
  static let retention: Duration = .seconds(30 * 86_400)
  /// The maximum number of networks stored per token.
  private static let maxNetworks = 32

  static func find(hashed hashes: [[UInt8]], _ rows: some SQLTransaction) throws -> FoundAccessToken? {
    let found = try rows.rows(
      hashes.flatMap { [SQLRead(byHash, [.bytes($0)]), ownerByHash.read([.bytes($0)], rows.dialect)] })
    for index in stride(from: 0, to: found.count, by: 2) {
      if let row = found[index].first {
        return FoundAccessToken(token: try token(row), account: try AccountReads.account(found[index + 1]))
      }
    }
    return nil
  }

  static func find(_ id: String, _ rows: some SQLTransaction) throws -> FoundAccessToken? {
    let found = try rows.rows([SQLRead(byID, [.text(id)]), ownerByID.read([.text(id)], rows.dialect)])
    guard let row = found[0].first else { return nil }
    return FoundAccessToken(token: try token(row), account: try AccountReads.account(found[1]))
  }

  static func all(of account: String?, _ rows: some SQLTransaction) throws -> [AccessToken] {
    let whose = account == nil ? "account IS NULL" : "account = ?1"
    return try rows.rows(
      "SELECT \(columns) FROM access_token WHERE \(whose) ORDER BY name, is_superseded, created_at DESC, id",
      account.map { [.text($0)] } ?? []
    ).map { try token($0) }
  }

  static func countByKey(_ rows: some SQLTransaction) throws -> [String: Int] {
    let found = try rows.rows("SELECT master, count(*) FROM access_token GROUP BY master")
    return Dictionary(try found.map { (try $0.text(0), try $0.count(1)) }) { $0 + $1 }
  }

  /// Stores a new token.
  static func put(_ token: AccessToken, most: Int?, _ rows: some SQLTransaction) throws {
    if let owner = token.owner {
      try AccountRows.requireAvailable(owner.id, rows)
      if let most,
        try rows.row(
          "SELECT created_at FROM access_token WHERE account = ?1 LIMIT 1 OFFSET ?2",
          [.text(owner.id), SQLValue(max(0, most - 1))]) != nil
      {
        throw ChangeConflict(.tooManyTokens)
      }
    }
    try rows.demand(
      """
      INSERT INTO access_token (\(columns), is_end_noted, used_from)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 0, '[]') ON CONFLICT DO NOTHING
      """,
      [
        .text(token.id), .bytes(token.hash.bytes), .text(token.hash.key), SQLValue(token.name.storable),
        SQLValue(token.owner?.id),
        token.owner.map { SQLValue($0.epoch) } ?? .null, try .json(token.groups.map(\.rawValue)),
        try .json(token.networks.map(\.description)),
        SQLValue(token.createdAt), SQLValue(token.expiresAt), SQLValue(token.isSuperseded), SQLValue(token.lastUsedAt),
        SQLValue(token.lastUsedFrom),
      ], orElse: .tokenNameTaken)
  }

  static func supersede(
    _ id: String, until moment: Timestamp, _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  )
    throws
  {
    try rows.demand(
      """
      UPDATE access_token SET is_superseded = 1, expires_at = CASE WHEN expires_at < ?1 THEN expires_at ELSE ?1 END
      WHERE id = ?2 AND is_superseded = 0
      """, [SQLValue(moment), .text(id)], orElse: .tokenGone)
    announce(id, notifications)
  }

  static func end(_ id: String, _ notifications: ChangeNotifications, _ rows: some SQLTransaction) throws {
    try rows.demand("DELETE FROM access_token WHERE id = ?1", [.text(id)], orElse: .tokenGone)
    announce(id, notifications)
  }

  /// Keeps the tokens of an account whose epoch is raised next. Those that are invalid stay so.
  static func raiseEpoch(of account: String, _ rows: some SQLTransaction) throws {
    try rows.run(
      "UPDATE access_token SET epoch = epoch + 1 WHERE account = ?1 AND is_end_noted = 0", [.text(account)])
  }

  /// Marks the tokens of an account that has changed: they are invalid, and an event must be recorded for each.
  static func outdate(of account: String, _ rows: some SQLTransaction) throws {
    try rows.run("UPDATE access_token SET is_end_noted = 2 WHERE account = ?1 AND is_end_noted = 0", [.text(account)])
  }

  static func markExpired(_ id: String, _ rows: some SQLTransaction) throws {
    try rows.demand(
      "UPDATE access_token SET is_end_noted = 1 WHERE id = ?1 AND is_end_noted <> 1", [.text(id)], orElse: .tokenGone)
  }

  static func rehash(_ id: String, from old: AccessTokenHash, to new: AccessTokenHash, _ rows: some SQLTransaction)
    throws
  {
    try rows.run(
      "UPDATE access_token SET hash = ?1, master = ?2 WHERE id = ?3 AND hash = ?4",
      [.bytes(new.bytes), .text(new.key), .text(id), .bytes(old.bytes)])
  }

  /// Records a use.
  /// - Returns: whether the token was not used from this network before. Always true for a token that was deleted
  ///   meanwhile.
  static func record(_ use: AccessTokenUse, _ rows: some SQLTransaction) throws -> Bool {
    let lock = rows.dialect.words(sqlite: "", postgres: " FOR UPDATE")
    guard let row = try rows.row("SELECT used_from FROM access_token WHERE id = ?1\(lock)", [.text(use.id)]) else {
      return true
    }
    let known = try JSON.decode([String].self, try row.text(0).utf8)
    let isNew = !known.contains(use.network)
    let networks = isNew ? Array((known + [use.network]).suffix(maxNetworks)) : known
    try rows.run(
      """
      UPDATE access_token SET last_used_at = ?1, last_used_from = ?2, used_from = ?3
      WHERE id = ?4 AND (last_used_at IS NULL OR last_used_at <= ?1)
      """, [SQLValue(use.at), .text(use.network), try .json(networks), .text(use.id)])
    return isNew
  }

  static func ended(at now: Timestamp, limit: Int, _ rows: some SQLTransaction) throws -> [AccessToken] {
    let found = try rows.rows([
      SQLRead(
        """
        SELECT \(columns) FROM access_token WHERE expires_at <= ?1 AND is_end_noted = 0 AND is_superseded = 0 ORDER BY expires_at, id LIMIT ?2
        """, [SQLValue(now), SQLValue(max(0, limit))]),
      SQLRead(
        """
        SELECT \(columns) FROM access_token WHERE is_end_noted = 2 ORDER BY id LIMIT ?1
        """, [SQLValue(max(0, limit))]),
    ])
    var seen: Set<String> = []
    return try Array(found.joined().map { try token($0) }.filter { seen.insert($0.id).inserted }.prefix(max(0, limit)))
  }

  /// Deletes tokens that ended long enough ago, at most `limit`.
  /// - Returns: the number of deleted tokens.
  static func prune(at now: Timestamp, limit: Int, _ rows: some SQLTransaction) throws -> Int {
    try rows.changes(
      """
      DELETE FROM access_token WHERE id IN (
        SELECT id FROM access_token WHERE expires_at <= ?1 AND (is_superseded = 1 OR expires_at <= ?2) ORDER BY expires_at LIMIT \(limit)
          \(rows.dialect.words(sqlite: "", postgres: "FOR UPDATE SKIP LOCKED")))
      """, [SQLValue(now), SQLValue(now - retention)])
  }

  private static func announce(_ id: String, _ notifications: ChangeNotifications) {
    notifications.add(token: AccessToken.announcement(of: id).bytes)
  }

  private static func token(_ row: some SQLRow) throws -> AccessToken {
    var owner: AccountVersion?
    if let account = try row.optionalText(4) {
      owner = AccountVersion(id: account, epoch: Int(try row.optionalInteger(5) ?? 0))
    }
    let networks = try JSON.decode([String].self, try row.text(7).utf8).map { text in
      // Attack: a network that cannot be parsed would leave the token unrestricted.
      guard let block = AddressBlock(text) else { throw damaged("access token") }
      return block
    }
    return AccessToken(
      id: try row.text(0), name: try row.text(3), owner: owner, groups: try row.groups(6), networks: networks,
      createdAt: try row.moment(8), expiresAt: try row.optionalMoment(9), isSuperseded: try row.isTrue(10),
      lastUsedAt: try row.optionalMoment(11), lastUsedFrom: try row.optionalText(12),
      hash: AccessTokenHash(key: try row.text(2), bytes: try row.bytes(1)))
  }
}
