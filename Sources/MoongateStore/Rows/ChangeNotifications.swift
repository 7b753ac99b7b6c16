import MoongateCore

/// What a transaction does to sessions and accounts, collected until its end: by it every node learns what to forget.
///
/// The changes get their numbers last of all, so that the row that PostgreSQL takes them from is locked for as short a
/// time as can be.
final class ChangeNotifications {
  private var tokens: [[UInt8]] = []
  private var accounts: [String] = []

  func add(token: [UInt8]) { if !tokens.contains(token) { tokens.append(token) } }

  func add(account: String) { if !accounts.contains(account) { accounts.append(account) } }

  /// The same for the process that makes the changes. It has no number: it is no place to ask from.
  var changes: SessionChanges {
    SessionChanges(latest: 0, tokens: tokens.map { TokenHash(bytes: $0) }, accounts: accounts, isIncomplete: false)
  }

  /// Writes them down. Nothing may follow in the transaction.
  func write(at now: Timestamp, _ rows: some SQLTransaction) throws {
    if tokens.isEmpty, accounts.isEmpty { return }
    let sql = rows.dialect == .sqlite ? Self.sqlite : Self.postgres
    for token in tokens { try rows.run(sql, [SQLValue(now), .bytes(token), .null]) }
    for account in accounts { try rows.run(sql, [SQLValue(now), .null, .text(account)]) }
    try rows.wake()
  }

  /// The number is the row's own: one more than the last one's.
  private static let sqlite = "INSERT INTO session_change (at, token, account) VALUES (?1, ?2, ?3)"
  /// Whoever takes a number waits until who took the one before it is committed, or gone.
  private static let postgres = """
    WITH taken AS (UPDATE session_number SET number = number + 1 WHERE id = 1 RETURNING number)
    INSERT INTO session_change (number, at, token, account)
    SELECT number, CAST(?1 AS BIGINT), CAST(?2 AS BYTEA), CAST(?3 AS TEXT) FROM taken
    """
}
