import MoongateCore

/// Deletes a user's data. Lists every table that can contain them. The keys of counters and timers are keyed hashes
/// that cannot be linked to a person.
enum AccountDeletionRows {
  /// Deletes everything that belongs to the user, except for flows and for events before `place`, which were processed
  /// already.
  static func delete(
    _ account: String, traces: [String], trailFrom place: Int64, _ notifications: ChangeNotifications,
    _ rows: some SQLTransaction
  ) throws {
    // Identifiers, records, sessions and connected apps are deleted with the account (ON DELETE CASCADE).
    try rows.demand("DELETE FROM account WHERE id = ?1", [.text(account)], orElse: .accountUnavailable)
    notifications.add(account: account)
    // The others follow once their apps were told that the sessions have ended.
    try rows.run(
      "DELETE FROM app_grant WHERE account = ?1 AND session IS NULL AND notice_due IS NULL", [.text(account)])
    try FailedAttemptRows.forget(about: traces, rows)
    try Trail(account: account, traces: traces).blank(from: place, to: .max, rows)
  }

  /// The values of the identifiers that only this account has; nil if the account does not exist.
  static func names(of account: String, _ rows: some SQLTransaction) throws -> [String]? {
    let found = try rows.rows([
      AccountRows.readPresence(of: account),
      // Identifiers that others also claim or hold are excluded, so that their flows continue. Two subqueries, so that
      // each uses an index.
      SQLRead(
        """
        SELECT value FROM identifier WHERE account = ?1 AND (verified_at IS NOT NULL
          OR (NOT EXISTS (SELECT 1 FROM identifier AS other
              WHERE other.kind = identifier.kind AND other.value = identifier.value AND other.verified_at IS NULL AND other.account <> ?1)
            AND NOT EXISTS (SELECT 1 FROM identifier AS other
              WHERE other.kind = identifier.kind AND other.value = identifier.value AND other.verified_at IS NOT NULL AND other.account <> ?1)))
        """, [.text(account)]),
    ])
    return found[0].isEmpty ? nil : try found[1].map { try $0.text(0) }
  }
}

/// Finds the flows of a user. A flow's record is JSON that contains the account and the identifiers and has no index.
/// All flows are searched in batches, so that even a million of them do not block others.
struct FlowTraces: Sendable {
  /// The number of flows that are searched per transaction.
  static let stretch = 1000

  /// The search terms, encoded as JSON.
  private let texts: [[UInt8]]

  init(account: String, names: [String]) throws { texts = try ([account] + names).map { try JSON.encode($0) } }

  /// Searches the next batch.
  /// - Returns: the end of the batch, nil at the end of the table; and whether it contains flows of the user.
  func search(after last: Int64, _ rows: some SQLTransaction) throws -> (end: Int64?, isThere: Bool) {
    let end = try rows.row(
      "SELECT number FROM flow WHERE number > ?1 ORDER BY number LIMIT 1 OFFSET \(Self.stretch - 1)", [.integer(last)])?
      .integer(
        0)
    let sql = rows.dialect.words(
      sqlite: "SELECT 1 FROM flow WHERE number > ?1 AND number <= ?2 AND instr(record, ?3) > 0 LIMIT 1",
      postgres:
        "SELECT 1::bigint FROM flow WHERE number > ?1 AND number <= ?2 AND position(CAST(?3 AS BYTEA) IN record) > 0 LIMIT 1"
    )
    let found = try rows.rows(texts.map { SQLRead(sql, [.integer(last), .integer(end ?? .max), .bytes($0)]) })
    return (end, found.contains { !$0.isEmpty })
  }

  /// Deletes the user's flows in a batch.
  func delete(after last: Int64, to end: Int64, _ rows: some SQLTransaction) throws {
    let sql = rows.dialect.words(
      sqlite: "DELETE FROM flow WHERE number > ?1 AND number <= ?2 AND instr(record, ?3) > 0",
      postgres: "DELETE FROM flow WHERE number > ?1 AND number <= ?2 AND position(CAST(?3 AS BYTEA) IN record) > 0")
    for text in texts { try rows.run(sql, [.integer(last), .integer(end), .bytes(text)]) }
  }
}

/// Finds the audit events of a user. An event is JSON that contains the account and keyed hashes of identifiers.
struct Trail: Sendable {
  /// The number of events that are searched per transaction.
  static let stretch: Int64 = 5000
  /// Transactions that began earlier may still add events whose numbers are lower by up to this much.
  static let underWay: Int64 = 10_000

  let account: String
  let traces: [String]

  /// The first and the last number.
  static func bounds(_ rows: some SQLTransaction) throws -> ClosedRange<Int64>? {
    let found = try rows.row("SELECT (SELECT min(number) FROM event), (SELECT max(number) FROM event)")
    guard let first = try found?.optionalInteger(0), let last = try found?.optionalInteger(1) else { return nil }
    return first...last
  }

  /// The user's events, newest first.
  func events(from first: Int64, to last: Int64, _ rows: some SQLTransaction) throws -> [AuditEvent] {
    let found = try naming(from: first, to: last, rows).map {
      (number: $0.number, event: try JSON.decode(AuditEvent.self, $0.json))
    }
    let own = found.filter { _, event in event.account == account || event.identifier.map(traces.contains) ?? false }
    // An event with both the account and an identifier is found twice.
    let unique = Dictionary(own.map { ($0.number, $0.event) }) { first, _ in first }
    return unique.sorted { $0.key > $1.key }.map(\.value)
  }

  /// The numbers of the user's events, with the events without the user.
  func blanks(from first: Int64, to last: Int64, _ rows: some SQLTransaction) throws -> [(number: Int64, json: [UInt8])]
  {
    try naming(from: first, to: last, rows).map {
      ($0.number, try JSON.decode(AuditEvent.self, $0.json).anonymous.json)
    }
  }

  private func naming(from first: Int64, to last: Int64, _ rows: some SQLTransaction) throws -> [(
    number: Int64, json: [UInt8]
  )] {
    let texts = try ([account] + traces).map { try JSON.encode($0) }
    let sql = rows.dialect.words(
      sqlite: "SELECT number, event FROM event WHERE number >= ?1 AND number <= ?2 AND instr(event, ?3) > 0",
      postgres:
        "SELECT number, event FROM event WHERE number >= ?1 AND number <= ?2 AND position(CAST(?3 AS BYTEA) IN event) > 0"
    )
    let found = try rows.rows(texts.map { SQLRead(sql, [.integer(first), .integer(last), .bytes($0)]) })
    return try found.flatMap { try $0.map { (try $0.integer(0), try $0.bytes(1)) } }
  }

  /// Removes the user from the events.
  func blank(from first: Int64, to last: Int64, _ rows: some SQLTransaction) throws {
    for (number, json) in try blanks(from: first, to: last, rows) {
      try rows.run("UPDATE event SET event = ?1 WHERE number = ?2", [.bytes(json), .integer(number)])
    }
  }
}
