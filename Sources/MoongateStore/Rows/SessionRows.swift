import MoongateCore
import MoongateSDK

/// Sessions, and the numbered list of what happened to them, by which every node learns of it.
enum SessionRows {
  private static let columns = "token, id, account, created_at, expires_at, idle, last_seen_at, passed, user_agent"
  /// By a token of either kind. That of a further root domain comes with the session's own token, and with that from
  /// when it was made.
  private static let byToken = """
    SELECT \(columns), NULL, NULL, NULL FROM session WHERE token = ?1
    UNION ALL
    SELECT held.token, session.id, session.account, created_at, expires_at, idle, last_seen_at, held.passed, user_agent,
      held.domain, session.token, held.issued_under
    FROM session_domain AS held JOIN session ON session.account = held.account AND session.id = held.session WHERE held.token = ?1
    """
  private static let accountByToken = AccountReads(
    "(SELECT account FROM session WHERE token = ?1 UNION ALL SELECT account FROM session_domain WHERE token = ?1)")
  private static let byAccount = "SELECT \(columns) FROM session WHERE account = ?1 ORDER BY created_at DESC, id"
  private static let insert = "INSERT INTO session (\(columns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"

  /// How long a change is kept: who has not looked for so long believes nothing that it remembers.
  static let memory: Duration = .seconds(3600)
  /// The most changes that one look is told of; beyond them it is cheaper to forget all.
  private static let most: Int64 = 10_000

  static func find(_ token: TokenHash, _ rows: some SQLTransaction) throws -> SessionSnapshot? {
    let arguments: [SQLValue] = [.bytes(token.bytes)]
    let found = try rows.rows([SQLRead(byToken, arguments), accountByToken.read(arguments, rows.dialect)])
    guard let row = found[0].first, let account = try AccountReads.account(found[1]) else { return nil }
    var session = try session(row)
    if let domain = try row.optionalText(9), let home = try row.optionalBytes(10) {
      session.domain = SessionDomain(
        name: domain, home: TokenHash(bytes: home), isSuperseded: try row.optionalBytes(11) != home)
    }
    return SessionSnapshot(session: session, account: account)
  }

  /// Newest first.
  static func all(of account: String, _ rows: some SQLTransaction) throws -> [Session] {
    try rows.rows(byAccount, [.text(account)]).map { try session($0) }
  }

  private static let same = "session WHERE account = ?1 AND (id = ?2 OR token = ?3)"

  private static func same(_ session: Session) -> [SQLValue] {
    [.text(session.account), .text(session.id), .bytes(session.token.bytes)]
  }

  /// What finds the tokens of the session that `put` replaces, and those of it for further root domains, which are
  /// superseded. A session that is new is in nobody's cache, so only one that replaces another is announced.
  static func replaced(by session: Session) -> SQLRead {
    SQLRead("SELECT token FROM \(same) UNION ALL \(DomainTokenRows.ofSession)", same(session))
  }

  /// Stores it; an older token of the same session is dead from then on.
  static func put(_ session: Session, passed: [UInt8], _ rows: some SQLTransaction) throws {
    try AccountRows.demandAvailable(session.account, rows)
    try rows.run("DELETE FROM \(same)", same(session))
    try rows.run(
      insert,
      [
        .bytes(session.token.bytes), .text(session.id), .text(session.account), SQLValue(session.createdAt),
        SQLValue(session.expiresAt),
        .integer(session.idle.wholeMilliseconds), SQLValue(session.lastSeenAt),
        .text(String(decoding: passed, as: UTF8.self)),
        SQLValue(session.userAgent),
      ])
  }

  /// Stores it in place of the one with the token. Conflicts where that one is over.
  static func replace(
    _ token: TokenHash, by session: Session, passed: [UInt8], _ news: ChangeNotifications, _ rows: some SQLTransaction
  ) throws {
    try rows.demand("DELETE FROM session WHERE token = ?1", [.bytes(token.bytes)], orElse: .sessionEnded)
    news.add(token: token.bytes)
    try put(session, passed: passed, rows)
  }

  static func end(of account: String, except: TokenHash?, _ news: ChangeNotifications, _ rows: some SQLTransaction)
    throws
  {
    try DomainTokenRows.end(of: account, rows)
    // No token is empty.
    try rows.run(
      "DELETE FROM session WHERE account = ?1 AND token <> ?2", [.text(account), .bytes(except?.bytes ?? [])])
    news.add(account: account)
  }

  /// Moves the last activity forward. A session that was dead by then stays dead.
  static func touch(_ token: TokenHash, at moment: Timestamp, _ rows: some SQLTransaction) throws {
    try rows.run(
      "UPDATE session SET last_seen_at = ?1 WHERE token = ?2 AND last_seen_at < ?1 AND ?1 < expires_at AND ?1 - last_seen_at < idle",
      [SQLValue(moment), .bytes(token.bytes)])
  }

  static func changes(after number: Int64, _ rows: some SQLTransaction) throws -> SessionChanges {
    let found = try rows.rows([
      SQLRead("SELECT (SELECT min(number) FROM session_change), (SELECT max(number) FROM session_change)"),
      SQLRead(
        "SELECT token, account FROM session_change WHERE number > ?1 ORDER BY number LIMIT ?2",
        [.integer(number), .integer(most)]),
    ])
    let oldest = try found[0].first?.optionalInteger(0) ?? 1
    let latest = try found[0].first?.optionalInteger(1) ?? 0
    if number == .max || number == latest {
      return SessionChanges(latest: latest, tokens: [], accounts: [], isIncomplete: false)
    }
    // Pruned away, or a number of another database (one that was restored from a backup, say).
    guard number >= oldest - 1, number < latest, latest - number <= most else {
      return SessionChanges(latest: latest, tokens: [], accounts: [], isIncomplete: true)
    }
    return SessionChanges(
      latest: latest, tokens: try found[1].compactMap { try $0.optionalBytes(0).map { TokenHash(bytes: $0) } },
      accounts: try found[1].compactMap { try $0.optionalText(1) }, isIncomplete: false)
  }

  private static func session(_ row: some SQLRow) throws -> Session {
    Session(
      id: try row.text(1), token: TokenHash(bytes: try row.bytes(0)), account: try row.text(2),
      createdAt: try row.moment(3),
      expiresAt: try row.moment(4), idle: .milliseconds(try row.integer(5)), lastSeenAt: try row.moment(6),
      passed: try JSON.decode([PassedStep].self, try row.text(7).utf8), userAgent: try row.optionalText(8))
  }
}
