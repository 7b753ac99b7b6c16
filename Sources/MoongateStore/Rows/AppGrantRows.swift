import MoongateCore

/// The grants of apps. A grant names its session by account and ID, because a session's row is replaced when the
/// session is renewed.
enum AppGrantRows {
  /// The maximum number of live grants of an account for an app. If there are more, the oldest end.
  static let mostPerAccount = 100
  /// The same for an app that acts for itself, by any number of its processes.
  static let mostOfApp = 1000

  private static let columns = """
    id, app, account, session, sid, epoch, is_offline, scopes, sign_in, created_at, used_at, refresh, previous, \
    refreshed_at, expires_at, ended_at
    """
  private static let byID = LiveGrantReads("?1", columns)
  private static let byRefresh = LiveGrantReads(
    "(SELECT id FROM app_grant WHERE refresh = ?1 UNION ALL SELECT id FROM app_grant WHERE previous = ?1)", columns)

  static func find(_ id: String, at now: Timestamp, _ rows: some SQLTransaction) throws -> LiveAppGrant? {
    try find(byID.reads(.text(id), at: now, rows.dialect), rows)
  }

  static func find(refresh hash: TokenHash, at now: Timestamp, _ rows: some SQLTransaction) throws -> LiveAppGrant? {
    try find(byRefresh.reads(.bytes(hash.bytes), at: now, rows.dialect), rows)
  }

  private static func find(_ reads: [SQLRead], _ rows: some SQLTransaction) throws -> LiveAppGrant? {
    let found = try rows.rows(reads)
    guard let row = found[0].first else { return nil }
    let grant = try grant(row)
    return LiveAppGrant(
      grant: grant, account: grant.account == nil ? nil : try AccountReads.account(found[1]),
      session: try found[2].first.map { try SessionRows.session($0) })
  }

  /// Stores a new grant. Other grants of the account for the app that have nothing to say any more are deleted.
  static func put(_ grant: AppGrant, at now: Timestamp, _ rows: some SQLTransaction) throws {
    try demand(grant, at: now, rows)
    // The account is the last argument.
    func whose(_ place: Int) -> String { "app = ?1 AND account \(grant.account == nil ? "IS NULL" : "= ?\(place)")" }
    let owner = grant.account.map { [SQLValue.text($0)] } ?? []
    // Attack: a user disconnects an app and signs in to it again, and a notice that is still due ends the new sign-in.
    try rows.run(
      "UPDATE app_grant SET notice_due = NULL WHERE account = ?1 AND app = ?2 AND sid = ?3 AND notice_due IS NOT NULL",
      [SQLValue(grant.account), .text(grant.app), SQLValue(grant.sid)])
    // If the end of the session is still to be announced to the app, the new grant takes care of that.
    try rows.run(
      """
      DELETE FROM app_grant WHERE \(whose(4)) AND (ended_at IS NOT NULL OR expires_at <= ?2)
        AND notice_due IS NULL AND (session IS NULL OR session = ?3)
      """, [.text(grant.app), SQLValue(now), SQLValue(grant.session)] + owner)
    try rows.run(
      """
      INSERT INTO app_grant (\(columns), session_due)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
        (SELECT \(SessionRows.deadline) FROM session WHERE account = ?3 AND id = ?4))
      """, try values(of: grant))
    // Attack: tokens without end, by somebody who authorizes an app again and again.
    try rows.run(
      """
      UPDATE app_grant SET \(AppGrantEnding.ended("?2")) WHERE id IN (
        SELECT id FROM app_grant WHERE \(whose(3)) AND ended_at IS NULL AND expires_at > ?2
        ORDER BY created_at DESC, id LIMIT 100 OFFSET \(grant.account == nil ? mostOfApp : mostPerAccount))
      """, [.text(grant.app), SQLValue(now)] + owner)
  }

  /// In the order of the columns.
  private static func values(of grant: AppGrant) throws -> [SQLValue] {
    [
      .text(grant.id), .text(grant.app), SQLValue(grant.account), SQLValue(grant.session), SQLValue(grant.sid),
      SQLValue(grant.epoch), SQLValue(grant.isOffline), try .json(grant.scopes), try .json(grant.signIn),
      SQLValue(grant.createdAt), SQLValue(grant.usedAt), SQLValue(grant.refresh?.bytes),
      SQLValue(grant.previous?.bytes), SQLValue(grant.refreshedAt), SQLValue(grant.expiresAt), SQLValue(grant.endedAt),
    ]
  }

  /// Demands what the grant relies on. The account's row is locked (`PreparedChange`).
  ///
  /// Attack: the session ends at another gateway at this moment, and that gateway does not see the new grant, so that
  /// nobody tells the app. The session's row is locked here, so the other one waits and then sees it.
  ///
  /// Attack: an app keeps its code back until the user has disconnected it. The connection is gone then, or younger
  /// than the authorization if the user has connected the app again.
  private static func demand(_ grant: AppGrant, at now: Timestamp, _ rows: some SQLTransaction) throws {
    guard let account = grant.account else { return }
    try AccountRows.requireAvailable(account, rows)
    try AccountRows.requireEpoch(AccountVersion(id: account, epoch: grant.epoch), rows)
    try rows.demand(
      "SELECT 1 FROM app_connection WHERE account = ?1 AND app = ?2 AND created_at <= ?3",
      [.text(account), .text(grant.app), SQLValue(grant.createdAt)], orElse: .sessionEnded)
    guard let session = grant.session else { return }
    try rows.demand(
      """
      SELECT 1 FROM session WHERE account = ?1 AND id = ?2 AND \(SessionRows.isLive("?3"))\
      \(rows.dialect.words(sqlite: "", postgres: " FOR KEY SHARE"))
      """, [.text(account), .text(session), SQLValue(now)], orElse: .sessionEnded)
  }

  /// Replaces the refresh token, and updates the last use of the grant and its connection.
  ///
  /// Attack: one refresh token at two gateways at once. The second one waits for the row, and finds another token.
  static func rotate(_ id: String, _ rotation: AppGrantRotation, _ rows: some SQLTransaction) throws {
    try rows.demand(
      """
      UPDATE app_grant SET previous = refresh, refresh = ?1, refreshed_at = ?2, used_at = ?2, expires_at = ?3
      WHERE id = ?4 AND refresh = ?5 AND ended_at IS NULL
      """,
      [
        .bytes(rotation.new.bytes), SQLValue(rotation.at), SQLValue(rotation.expiresAt), .text(id),
        .bytes(rotation.old.bytes),
      ], orElse: .appGrantChanged)
    try AppConnectionRows.use(by: id, at: rotation.at, rows)
  }

  /// Deletes grants that have expired and of which nothing is owed, at most `limit`.
  /// - Returns: the number of deleted grants.
  static func prune(at now: Timestamp, limit: Int, _ rows: some SQLTransaction) throws -> Int {
    try rows.changes(
      """
      DELETE FROM app_grant WHERE id IN (
        SELECT id FROM app_grant WHERE session IS NULL AND notice_due IS NULL AND expires_at <= ?1
        ORDER BY expires_at LIMIT \(limit)\(rows.dialect.words(sqlite: "", postgres: " FOR UPDATE SKIP LOCKED")))
      """, [SQLValue(now)])
  }

  private static func grant(_ row: some SQLRow) throws -> AppGrant {
    AppGrant(
      id: try row.text(0), app: try row.text(1), account: try row.optionalText(2), session: try row.optionalText(3),
      sid: try row.optionalText(4), epoch: try row.count(5), isOffline: try row.isTrue(6),
      scopes: try JSON.decode([String].self, try row.text(7).utf8),
      signIn: try JSON.decode(AppSignIn.self, try row.text(8).utf8), createdAt: try row.moment(9),
      usedAt: try row.moment(10), refresh: try row.optionalBytes(11).map(TokenHash.init(bytes:)),
      previous: try row.optionalBytes(12).map(TokenHash.init(bytes:)), refreshedAt: try row.optionalMoment(13),
      expiresAt: try row.moment(14), endedAt: try row.optionalMoment(15))
  }
}

/// A new refresh token of a grant.
struct AppGrantRotation {
  let old: TokenHash
  let new: TokenHash
  let at: Timestamp
  let expiresAt: Timestamp
}

/// Reads a grant with its account and its live session, in one round trip.
private struct LiveGrantReads: Sendable {
  private let grant: String
  private let account: AccountReads
  private let session: String

  /// - Parameter id: an SQL expression for the grant's ID, with the argument `?1`.
  init(_ id: String, _ columns: String) {
    grant = "SELECT \(columns) FROM app_grant WHERE id = \(id)"
    account = AccountReads("(SELECT account FROM app_grant WHERE id = \(id))")
    session = """
      SELECT \(SessionRows.columns) FROM session WHERE account = (SELECT account FROM app_grant WHERE id = \(id))
        AND id = (SELECT session FROM app_grant WHERE id = \(id)) AND \(SessionRows.isLive("?2"))
      """
  }

  func reads(_ key: SQLValue, at now: Timestamp, _ dialect: SQLDialect) -> [SQLRead] {
    [SQLRead(grant, [key]), account.read([key], dialect), SQLRead(session, [key, SQLValue(now)])]
  }
}
