import MoongateCore

/// Ends grants, and says which apps must be told that a session has ended (`Change.settleAppNotice`).
///
/// A grant has its session until that session ends, even if its tokens have ended before: the app may still have a
/// session of its own, which began with that one.
enum AppGrantEnding {
  /// Moves the end of the session that grants wait for, when a new sign-in that ends sooner continues it.
  static func continues(_ session: Session, _ rows: some SQLTransaction) throws {
    try rows.run(
      "UPDATE app_grant SET session_due = ?3 WHERE account = ?1 AND session = ?2 AND session_due > ?3",
      [.text(session.account), .text(session.id), SQLValue(session.deadline)])
  }

  /// The maximum number of grants of each kind that are changed in one step.
  private static let stretch = 100
  /// How long a notice waits for a gateway that sends notices.
  private static let patience: Duration = .seconds(86_400)

  /// The assignments that end a grant's tokens. It can be deleted as soon as nothing else is owed.
  /// - Parameter now: the argument with the time.
  static func ended(_ now: String) -> String {
    "ended_at = \(now), expires_at = CASE WHEN expires_at > \(now) THEN \(now) ELSE expires_at END"
  }

  /// The assignments for a grant whose session ends at `?1`. Of several grants of one app and session, the newest is
  /// the one by which the app is told.
  private static let sessionOver = """
    session = NULL, session_due = NULL, notice_since = ?1,
    notice_due = CASE WHEN NOT EXISTS (
      SELECT 1 FROM app_grant AS newer
      WHERE newer.account = app_grant.account AND newer.app = app_grant.app AND newer.sid = app_grant.sid
        AND (newer.created_at, newer.id) > (app_grant.created_at, app_grant.id)) THEN ?1 ELSE notice_due END,
    ended_at = CASE WHEN is_offline = 1 THEN ended_at ELSE coalesce(ended_at, ?1) END,
    expires_at = CASE WHEN is_offline = 0 AND expires_at > ?1 THEN ?1 ELSE expires_at END
    """
  /// Whether the account is as it was when the user agreed, and not locked.
  private static let accountHolds = """
    SELECT 1 FROM account WHERE account.id = app_grant.account AND account.epoch = app_grant.epoch
      AND account.is_locked = 0
    """

  /// Ends the grants of an account whose sessions no longer exist, and all of an account that was locked, deleted or
  /// raised to another epoch. Called at the end of each transaction that may have done so.
  ///
  /// Attack: an app keeps a user signed in after the session was ended, because one of the ways to end it has forgotten
  /// the apps. No way has to remember them: the sessions that are there decide.
  static func settle(_ account: String, at now: Timestamp, _ rows: some SQLTransaction) throws {
    let arguments = [SQLValue(now), .text(account)]
    try rows.run(
      """
      UPDATE app_grant SET \(sessionOver) WHERE account = ?2 AND session IS NOT NULL AND NOT EXISTS (
        \(accountHolds) AND EXISTS (
          SELECT 1 FROM session WHERE session.account = app_grant.account AND session.id = app_grant.session))
      """, arguments)
    try rows.run(
      """
      UPDATE app_grant SET \(ended("?1")) WHERE account = ?2 AND ended_at IS NULL AND NOT EXISTS (\(accountHolds))
      """, arguments)
  }

  /// Ends a grant. Its app learns later that the session has ended.
  static func end(_ id: String, at now: Timestamp, _ rows: some SQLTransaction) throws {
    try rows.run(
      "UPDATE app_grant SET \(ended("?1")) WHERE id = ?2 AND ended_at IS NULL", [SQLValue(now), .text(id)])
  }

  /// Ends all grants of an account for an app. The app is told now.
  static func end(of account: String, for app: String, at now: Timestamp, _ rows: some SQLTransaction) throws {
    let arguments = [SQLValue(now), .text(account), .text(app)]
    try rows.run(
      "UPDATE app_grant SET \(sessionOver) WHERE account = ?2 AND app = ?3 AND session IS NOT NULL", arguments)
    try rows.run(
      "UPDATE app_grant SET \(ended("?1")) WHERE account = ?2 AND app = ?3 AND ended_at IS NULL", arguments)
  }

  /// Ends the grants of sessions that have expired. A session that was used meanwhile is looked at again at its new
  /// deadline, so this takes no longer for more sessions.
  /// - Returns: whether there may be more.
  @discardableResult
  static func sweep(at now: Timestamp, _ rows: some SQLTransaction) throws -> Bool {
    let due = try rows.rows(
      """
      SELECT held.id, \(SessionRows.deadline) FROM app_grant AS held
      LEFT JOIN session ON session.account = held.account AND session.id = held.session
        AND \(SessionRows.isLive("?1"))
      WHERE held.session_due <= ?1 ORDER BY held.session_due LIMIT \(stretch)\
      \(rows.dialect.words(sqlite: "", postgres: " FOR UPDATE OF held SKIP LOCKED"))
      """, [SQLValue(now)]
    ).map { (id: try $0.text(0), deadline: try $0.optionalMoment(1)) }
    for grant in due {
      if let deadline = grant.deadline {
        try rows.run(
          "UPDATE app_grant SET session_due = ?1 WHERE id = ?2", [SQLValue(deadline), .text(grant.id)])
      } else {
        try rows.run("UPDATE app_grant SET \(sessionOver) WHERE id = ?2", [SQLValue(now), .text(grant.id)])
      }
    }
    return due.count == stretch
  }

  /// Whether a notice or a session is due.
  static func isAnyDue(at now: Timestamp, _ rows: some SQLTransaction) throws -> Bool {
    try rows.rows(
      ["notice_due", "session_due"].map { due in
        SQLRead("SELECT 1 FROM app_grant WHERE \(due) <= ?1 ORDER BY \(due) LIMIT 1", [SQLValue(now)])
      }
    ).contains { !$0.isEmpty }
  }

  /// Claims due notices, at most `limit`, and at most a quarter of them for one app.
  ///
  /// Attack: an app whose address does not answer, with a thousand ended sessions, delays the notices of all other
  /// apps. Each app has its turn before another one has its second.
  ///
  /// The limit is a part of the text: PostgreSQL would take it for a tenth of the table and read all of it.
  static func claim(_ limit: Int, until end: Timestamp, at now: Timestamp, _ rows: some SQLTransaction) throws
    -> [AppNotice]
  {
    try sweep(at: now, rows)
    let most = min(max(1, limit), stretch)
    let notices = try rows.rows(
      """
      SELECT id, app, account, sid, notice_since, notice_tries FROM app_grant WHERE notice_due <= ?1 AND id IN (
        SELECT id FROM (
          SELECT id, notice_due, row_number() OVER (PARTITION BY app ORDER BY notice_due, id) AS turn FROM app_grant
          WHERE notice_due <= ?1) AS due
        WHERE turn <= \((most + 3) / 4) ORDER BY turn, notice_due LIMIT \(most))\
      \(rows.dialect.words(sqlite: "", postgres: " FOR UPDATE SKIP LOCKED"))
      """, [SQLValue(now)]
    ).map {
      AppNotice(
        grant: try $0.text(0), app: try $0.text(1), account: try $0.text(2), sid: try $0.optionalText(3),
        since: try $0.moment(4), tries: try $0.count(5))
    }
    for notice in notices {
      try rows.run("UPDATE app_grant SET notice_due = ?1 WHERE id = ?2", [SQLValue(end), .text(notice.grant)])
    }
    return notices
  }

  /// Says when the notice is due again; nil: never. A notice that another gateway has settled meanwhile stays so.
  static func settleNotice(_ id: String, due: Timestamp?, _ rows: some SQLTransaction) throws {
    try rows.run(
      """
      UPDATE app_grant SET notice_due = ?1, notice_tries = notice_tries + 1 WHERE id = ?2 AND notice_due IS NOT NULL
      """, [SQLValue(due), .text(id)])
  }

  /// Drops notices that no gateway has sent, such as those of apps that are no longer configured.
  /// - Returns: whether there may be more.
  static func dropNotices(at now: Timestamp, _ rows: some SQLTransaction) throws -> Bool {
    let dropped = try rows.changes(
      """
      UPDATE app_grant SET notice_due = NULL WHERE id IN (
        SELECT id FROM app_grant WHERE notice_due <= ?1 ORDER BY notice_due LIMIT \(stretch)\
      \(rows.dialect.words(sqlite: "", postgres: " FOR UPDATE SKIP LOCKED")))
      """, [SQLValue(now - patience)])
    return dropped == stretch
  }
}
