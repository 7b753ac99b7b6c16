import MoongateCore

/// Removing a person. Every table that could tell of one is named here; counters and timers have keys that are keyed
/// hashes, and say nothing of whose they are.
enum Deleting {
  /// Removes all that is theirs, but for flows, and for what the trail tells before `place`: that was blanked already.
  static func delete(
    _ account: String, traces: [String], trailFrom place: Int64, _ news: ChangeNotifications,
    _ rows: some SQLTransaction
  ) throws {
    // Identifiers, records and sessions go with it (ON DELETE CASCADE).
    try rows.demand("DELETE FROM account WHERE id = ?1", [.text(account)], orElse: .accountUnavailable)
    news.add(account: account)
    try FailedAttemptRows.forget(about: traces, rows)
    try Trail(account: account, traces: traces).blank(from: place, to: .max, rows)
  }

  /// The values of the identifiers that are an account's alone; nil where there is no such account.
  static func names(of account: String, _ rows: some SQLTransaction) throws -> [String]? {
    let found = try rows.rows([
      SQLRead("SELECT 1 FROM account WHERE id = ?1", [.text(account)]),
      // Not what others claim or hold as well: their flows go on. Asked in two parts, one for each index.
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

/// What flows tell of a person. A flow's record is JSON with the account and the identifiers in it, and has no index:
/// all flows are looked through, a stretch at a time, so that a million of them hold up nobody.
struct FlowTraces: Sendable {
  /// So many flows are looked through in one transaction.
  static let stretch = 1000

  /// As JSON spells them.
  private let texts: [[UInt8]]

  init(account: String, names: [String]) throws { texts = try ([account] + names).map { try JSON.encode($0) } }

  /// Looks through the next stretch.
  /// - Returns: where it ends, nil at the end of all; and whether any of it tells of them.
  func look(after last: Int64, _ rows: some SQLTransaction) throws -> (end: Int64?, isThere: Bool) {
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

  /// Deletes what tells of them in a stretch.
  func delete(after last: Int64, to end: Int64, _ rows: some SQLTransaction) throws {
    let sql = rows.dialect.words(
      sqlite: "DELETE FROM flow WHERE number > ?1 AND number <= ?2 AND instr(record, ?3) > 0",
      postgres: "DELETE FROM flow WHERE number > ?1 AND number <= ?2 AND position(CAST(?3 AS BYTEA) IN record) > 0")
    for text in texts { try rows.run(sql, [.integer(last), .integer(end), .bytes(text)]) }
  }
}

/// What the trail tells of a person. An event is JSON with the account and keyed hashes of identifiers in it.
struct Trail: Sendable {
  /// So many events are looked through in one transaction.
  static let stretch: Int64 = 5000
  /// A transaction that began before may still bring events with numbers as far below the last one as this.
  static let underWay: Int64 = 10_000

  let account: String
  let traces: [String]

  /// The first and the last number.
  static func bounds(_ rows: some SQLTransaction) throws -> ClosedRange<Int64>? {
    let found = try rows.row("SELECT (SELECT min(number) FROM event), (SELECT max(number) FROM event)")
    guard let first = try found?.optionalInteger(0), let last = try found?.optionalInteger(1) else { return nil }
    return first...last
  }

  /// The events that are theirs, newest first.
  func events(from first: Int64, to last: Int64, _ rows: some SQLTransaction) throws -> [AuditEvent] {
    let found = try naming(from: first, to: last, rows).map {
      (number: $0.number, event: try JSON.decode(AuditEvent.self, $0.json))
    }
    let own = found.filter { _, event in event.account == account || event.identifier.map(traces.contains) ?? false }
    // One that has both the account and an identifier is found twice.
    let unique = Dictionary(own.map { ($0.number, $0.event) }) { first, _ in first }
    return unique.sorted { $0.key > $1.key }.map(\.value)
  }

  /// The numbers of events that name them, and what the events are without them.
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

  /// Takes them out of the events.
  func blank(from first: Int64, to last: Int64, _ rows: some SQLTransaction) throws {
    for (number, json) in try blanks(from: first, to: last, rows) {
      try rows.run("UPDATE event SET event = ?1 WHERE number = ?2", [.bytes(json), .integer(number)])
    }
  }
}
