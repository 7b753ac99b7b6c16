import Foundation
import GRDB
import MoongateCore

/// Sessions, and the numbered list of what happened to them, by which every node learns of it.
enum SessionRows {
  private static let columns = "token, id, account, created_at, expires_at, idle, last_seen_at, passed, user_agent"

  /// How long a change is kept: who has not looked for so long believes nothing that it remembers.
  static let memory: Duration = .seconds(3600)
  /// The most changes that one look is told of; beyond them it is cheaper to forget all.
  private static let most = 10_000

  static func find(_ token: TokenHash, _ db: Database) throws -> SessionSnapshot? {
    guard let row = try db.row("SELECT \(columns) FROM session WHERE token = ?", [Data(token.bytes)]) else { return nil }
    let session = try session(row)
    guard let account = try AccountRows.find(session.account, db) else { return nil }
    return SessionSnapshot(session: session, account: account)
  }

  /// Newest first.
  static func all(of account: String, _ db: Database) throws -> [Session] {
    try db.rows("SELECT \(columns) FROM session WHERE account = ? ORDER BY created_at DESC, id", [account]).map(session)
  }

  /// Stores it; an older token of the same session is dead from then on. A session that is new is in nobody's cache, so
  /// only one that replaces another is announced.
  static func put(_ session: Session, passed: Data, at now: Timestamp, _ db: Database) throws {
    try AccountRows.demandAvailable(session.account, db)
    let token = Data(session.token.bytes)
    for row in try db.rows("SELECT token FROM session WHERE account = ? AND (id = ? OR token = ?)", [session.account, session.id, token]) {
      let old: Data = row[0]
      try db.run("DELETE FROM session WHERE token = ?", [old])
      try announce(token: old, at: now, db)
    }
    try db.run(
      "INSERT INTO session (\(columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
      [
        token, session.id, session.account, session.createdAt.milliseconds, session.expiresAt.milliseconds, session.idle.wholeMilliseconds,
        session.lastSeenAt.milliseconds, String(decoding: passed, as: UTF8.self), session.userAgent,
      ])
  }

  /// Conflicts where the session is over.
  static func demand(_ token: TokenHash, _ db: Database) throws {
    if try db.row("SELECT 1 FROM session WHERE token = ?", [Data(token.bytes)]) == nil { throw ChangeConflict(.sessionEnded) }
  }

  static func end(_ token: TokenHash, at now: Timestamp, _ db: Database) throws {
    let token = Data(token.bytes)
    if try db.run("DELETE FROM session WHERE token = ?", [token]) > 0 { try announce(token: token, at: now, db) }
  }

  static func end(of account: String, except: TokenHash?, at now: Timestamp, _ db: Database) throws {
    try db.run("DELETE FROM session WHERE account = ? AND token IS NOT ?", [account, except.map { Data($0.bytes) }])
    try announce(account: account, at: now, db)
  }

  /// Moves the last activity forward. A session that was dead by then stays dead.
  static func touch(_ token: TokenHash, at moment: Timestamp, _ db: Database) throws {
    try db.run(
      """
      UPDATE session SET last_seen_at = :moment
      WHERE token = :token AND last_seen_at < :moment AND :moment < expires_at AND :moment - last_seen_at < idle
      """, ["moment": moment.milliseconds, "token": Data(token.bytes)])
  }

  static func announce(token: Data, at now: Timestamp, _ db: Database) throws {
    try db.run("INSERT INTO session_change (at, token) VALUES (?, ?)", [now.milliseconds, token])
  }

  static func announce(account: String, at now: Timestamp, _ db: Database) throws {
    try db.run("INSERT INTO session_change (at, account) VALUES (?, ?)", [now.milliseconds, account])
  }

  static func changes(after number: Int64, _ db: Database) throws -> SessionChanges {
    let bounds = try db.row("SELECT (SELECT min(number) FROM session_change), (SELECT max(number) FROM session_change)")
    let oldest: Int64 = bounds?[0] ?? 1
    let latest: Int64 = bounds?[1] ?? 0
    if number == .max || number == latest { return SessionChanges(latest: latest, tokens: [], accounts: [], isIncomplete: false) }
    // Pruned away, or a number of another database (one that was restored from a backup, say).
    guard number >= oldest - 1, number < latest, latest - number <= most else {
      return SessionChanges(latest: latest, tokens: [], accounts: [], isIncomplete: true)
    }
    var tokens: [TokenHash] = []
    var accounts: [String] = []
    for row in try db.rows("SELECT token, account FROM session_change WHERE number > ? AND number <= ?", [number, latest]) {
      if let token = row[0] as Data? { tokens.append(TokenHash(bytes: Array(token))) }
      if let account = row[1] as String? { accounts.append(account) }
    }
    return SessionChanges(latest: latest, tokens: tokens, accounts: accounts, isIncomplete: false)
  }

  private static func session(_ row: Row) throws -> Session {
    Session(
      id: row[1], token: TokenHash(bytes: row.bytes(0)), account: row[2], createdAt: row.moment(3), expiresAt: row.moment(4),
      idle: .milliseconds(row[5] as Int64), lastSeenAt: row.moment(6), passed: try JSON.decode([PassedStep].self, Data((row[7] as String).utf8)),
      userAgent: row[8])
  }
}
