import MoongateCore

/// Collects a transaction's changes of sessions and accounts, from which every node learns which cache entries to drop.
///
/// The changes are numbered at the end of the transaction, so that the row with PostgreSQL's counter is locked as
/// briefly as possible.
final class ChangeNotifications {
  private var tokens: [[UInt8]] = []
  private var accounts: [String] = []
  private var owners: Set<String> = []

  func add(token: [UInt8]) { if !tokens.contains(token) { tokens.append(token) } }

  func add(account: String) { if !accounts.contains(account) { accounts.append(account) } }

  /// Says that one session of the account may have ended. Its token is announced separately.
  func add(sessionOf account: String) { owners.insert(account) }

  /// The changes for this process. They have no number, so they are not a position to continue from.
  var changes: SessionChanges {
    SessionChanges(latest: 0, tokens: tokens.map { TokenHash(bytes: $0) }, accounts: accounts, isIncomplete: false)
  }

  /// Ends the grants of apps whose sessions are gone, and writes the changes. Must be the last step of the transaction.
  func write(at now: Timestamp, _ rows: some SQLTransaction) throws {
    if tokens.isEmpty, accounts.isEmpty { return }
    // In the same order in all transactions, so that they do not deadlock.
    for account in owners.union(accounts).sorted() { try AppGrantEnding.settle(account, at: now, rows) }
    let sql = rows.dialect.words(sqlite: Self.sqlite, postgres: Self.postgres)
    for token in tokens { try rows.run(sql, [SQLValue(now), .bytes(token), .null]) }
    for account in accounts { try rows.run(sql, [SQLValue(now), .null, .text(account)]) }
    try rows.wake()
  }

  /// The number is the row ID: one more than the last.
  private static let sqlite = "INSERT INTO session_change (at, token, account) VALUES (?1, ?2, ?3)"
  /// A transaction that takes a number waits until the one with the previous number is committed or rolled back.
  private static let postgres = """
    WITH taken AS (UPDATE session_number SET number = number + 1 WHERE id = 1 RETURNING number)
    INSERT INTO session_change (number, at, token, account)
    SELECT number, CAST(?1 AS BIGINT), CAST(?2 AS BYTEA), CAST(?3 AS TEXT) FROM taken
    """
}
