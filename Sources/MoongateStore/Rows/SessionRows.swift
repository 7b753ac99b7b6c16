import MoongateCore
import MoongateSDK

/// Sessions, and the numbered list of their changes, which every node polls.
enum SessionRows {
  static let columns =
    "token, id, account, created_at, expires_at, idle, last_seen_at, passed, user_agent, address, last_address, is_remembered"
  /// By a token of either kind. A token for another root domain is returned with the session's current token and the
  /// one under which it was issued.
  private static let byToken = """
    SELECT \(columns), NULL, NULL, NULL FROM session WHERE token = ?1
    UNION ALL
    SELECT held.token, session.id, session.account, created_at, expires_at, idle, last_seen_at, held.passed, user_agent,
      address, last_address, is_remembered, held.domain, session.token, held.issued_under
    FROM session_domain AS held JOIN session ON session.account = held.account AND session.id = held.session WHERE held.token = ?1
    """
  private static let accountByToken = AccountReads(
    "(SELECT account FROM session WHERE token = ?1 UNION ALL SELECT account FROM session_domain WHERE token = ?1)")
  private static let byAccount = "SELECT \(columns) FROM session WHERE account = ?1 ORDER BY created_at DESC, id"
  private static let replacing = """
    SELECT held.token, held.id, held.account, held.created_at, held.expires_at, held.idle, held.last_seen_at, held.passed, held.user_agent,
      held.address, held.last_address, held.is_remembered
    FROM replaced_token AS old JOIN session AS held ON held.account = old.account AND held.id = old.session
    WHERE old.token = ?1 AND old.replaced_at > ?2
    """
  private static let bySite = """
    SELECT \(columns) FROM session
    WHERE token IN (SELECT token FROM site_session WHERE hash = ?1 ORDER BY token LIMIT ?2)
    """
  private static let insert =
    "INSERT INTO session (\(columns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"

  /// `Session.deadline`. Written so that no sum can overflow.
  static let deadline = """
    CASE WHEN session.expires_at - session.last_seen_at < session.idle THEN session.expires_at
      ELSE session.last_seen_at + session.idle END
    """
  /// Whether the session has not reached its deadline.
  /// - Parameter now: the argument with the time.
  static func isLive(_ now: String) -> String {
    "session.expires_at > \(now) AND \(now) - session.last_seen_at < session.idle"
  }

  /// How long changes are kept. A node that has not polled for this long must not trust its cache.
  static let retention: Duration = .seconds(3600)
  /// The maximum number of changes returned by one poll. Beyond that, clearing the cache is cheaper.
  private static let most: Int64 = 10_000

  static func find(_ token: TokenHash, _ rows: some SQLTransaction) throws -> SessionSnapshot? {
    let arguments: [SQLValue] = [.bytes(token.bytes)]
    let found = try rows.rows([SQLRead(byToken, arguments), accountByToken.read(arguments, rows.dialect)])
    guard let row = found[0].first, let account = try AccountReads.account(found[1]) else { return nil }
    var session = try session(row)
    if let domain = try row.optionalText(12), let home = try row.optionalBytes(13) {
      session.domain = SessionDomain(
        name: domain, home: TokenHash(bytes: home), isSuperseded: try row.optionalBytes(14) != home)
    }
    return SessionSnapshot(session: session, account: account)
  }

  /// The account's sessions, newest first.
  static func all(of account: String, _ rows: some SQLTransaction) throws -> [Session] {
    try rows.rows(byAccount, [.text(account)]).map { try session($0) }
  }

  /// The sessions that a session at another site has opened.
  static func all(openedBy siteSession: String, limit: Int, _ rows: some SQLTransaction) throws -> [Session] {
    try rows.rows(bySite, [.text(siteSession), .integer(Int64(limit))]).map { try session($0) }
  }

  private static let same = "session WHERE account = ?1 AND (id = ?2 OR token = ?3)"

  private static func same(_ session: Session) -> [SQLValue] {
    [.text(session.account), .text(session.id), .bytes(session.token.bytes)]
  }

  /// The read for the tokens of the session that `replace` replaces, and for its domain tokens, which are superseded.
  static func replaced(by session: Session) -> SQLRead {
    SQLRead("SELECT token FROM \(same) UNION ALL \(DomainTokenRows.ofSession)", same(session))
  }

  /// Stores a new session. It is in no cache, so it is not announced.
  static func put(_ session: Session, passed: [UInt8], _ rows: some SQLTransaction) throws {
    try AccountRows.requireAvailable(session.account, rows)
    try rows.run(
      insert,
      [
        .bytes(session.token.bytes), .text(session.id), .text(session.account), SQLValue(session.createdAt),
        SQLValue(session.expiresAt),
        .integer(session.idle.wholeMilliseconds), SQLValue(session.lastSeenAt),
        .text(String(decoding: passed, as: UTF8.self)),
        SQLValue(session.userAgent), SQLValue(session.address), SQLValue(session.lastAddress),
        SQLValue(session.isRemembered),
      ])
    try SiteSessionRows.put(of: session, rows)
  }

  /// Replaces the session with this token. Conflicts if that session has ended.
  static func replace(
    _ token: TokenHash, by replacement: (session: Session, passed: [UInt8]), at now: Timestamp,
    _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  ) throws {
    let session = replacement.session
    guard
      let old = try rows.row(
        "DELETE FROM session WHERE token = ?1 RETURNING account, id, created_at", [.bytes(token.bytes)])
    else { throw ChangeConflict(.sessionEnded) }
    let before = (account: try old.text(0), id: try old.text(1))
    // What grows keeps its time. A new sign-in does not, also if it continues the session by its ID.
    let isSignIn = try old.moment(2) != session.createdAt
    notifications.add(token: token.bytes)
    if isSignIn { try forget(before, rows) }
    if before.account != session.account || before.id != session.id { notifications.add(sessionOf: before.account) }
    try rows.run("DELETE FROM \(same)", same(session))
    try put(session, passed: replacement.passed, rows)
    if token != session.token { try ReplacedTokenRows.put(token, of: session, before: before, at: now, rows) }
    if isSignIn { try AppGrantEnding.continues(session, rows) }
  }

  /// Ends what belongs to the sign-in before, when a new one continues the session.
  ///
  /// Attack: a copied token of another root domain lives on in the new sign-in, with its times and the steps that were
  /// passed before.
  private static func forget(_ before: (account: String, id: String), _ rows: some SQLTransaction) throws {
    let place: [SQLValue] = [.text(before.account), .text(before.id)]
    try rows.run("DELETE FROM session_domain WHERE account = ?1 AND session = ?2", place)
    try rows.run("DELETE FROM replaced_token WHERE account = ?1 AND session = ?2", place)
  }

  /// The session that had the token before its current one.
  static func find(replacing token: TokenHash, after moment: Timestamp, _ rows: some SQLTransaction) throws -> Session?
  {
    try rows.row(replacing, [.bytes(token.bytes), SQLValue(moment)]).map { try session($0) }
  }

  static func end(
    of account: String, except: TokenHash?, _ notifications: ChangeNotifications, _ rows: some SQLTransaction
  )
    throws
  {
    try DomainTokenRows.end(of: account, rows)
    // No token is empty.
    try rows.run(
      "DELETE FROM session WHERE account = ?1 AND token <> ?2", [.text(account), .bytes(except?.bytes ?? [])])
    notifications.add(account: account)
  }

  /// Updates the last activity. It only moves forward, and does not revive a session that had expired.
  static func touch(_ token: TokenHash, _ use: SessionUse, _ rows: some SQLTransaction) throws {
    try rows.run(
      """
      UPDATE session SET last_seen_at = ?1, last_address = ?3
        WHERE token = ?2 AND last_seen_at < ?1 AND ?1 < expires_at AND ?1 - last_seen_at < idle
      """, [SQLValue(use.at), .bytes(token.bytes), SQLValue(use.address)])
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
    // The changes were pruned, or the number is from another database (such as one restored from a backup).
    guard number >= oldest - 1, number < latest, latest - number <= most else {
      return SessionChanges(latest: latest, tokens: [], accounts: [], isIncomplete: true)
    }
    return SessionChanges(
      latest: latest, tokens: try found[1].compactMap { try $0.optionalBytes(0).map { TokenHash(bytes: $0) } },
      accounts: try found[1].compactMap { try $0.optionalText(1) }, isIncomplete: false)
  }

  static func session(_ row: some SQLRow) throws -> Session {
    var session = Session(
      id: try row.text(1), token: TokenHash(bytes: try row.bytes(0)), account: try row.text(2),
      createdAt: try row.moment(3),
      expiresAt: try row.moment(4), idle: .milliseconds(try row.integer(5)), lastSeenAt: try row.moment(6),
      passed: try JSON.decode([PassedStep].self, try row.text(7).utf8), userAgent: try row.optionalText(8))
    session.address = try row.optionalText(9)
    session.lastAddress = try row.optionalText(10)
    session.isRemembered = try row.integer(11) != 0
    return session
  }
}
