import MoongateCore

/// Removing a person. Every table that could tell of one is named here; counters and timers have keys that are keyed hashes, and say
/// nothing of whose they are.
enum Deleting {
  /// Removes all that is theirs, but for what the trail tells before `place`: that was blanked already.
  static func delete(
    _ account: String, traces: [String], trailFrom place: Int64, _ news: Announcements, _ rows: some SQLTransaction
  ) throws {
    let names = try rows.rows("SELECT value FROM identifier WHERE account = ?1", [.text(account)]).map { try $0.text(0) }
    // Identifiers, records and sessions go with it (ON DELETE CASCADE).
    try rows.demand("DELETE FROM account WHERE id = ?1", [.text(account)], orElse: .accountUnavailable)
    news.add(account: account)
    try deleteFlows(naming: [account] + names, rows)
    try Trail(account: account, traces: traces).blank(from: place, to: .max, rows)
  }

  /// A flow's record is JSON with the account and the identifiers in it. Each text is looked for as JSON spells it. Flows live for minutes, so
  /// there are never many of them.
  private static func deleteFlows(naming texts: [String], _ rows: some SQLTransaction) throws {
    for text in texts {
      try rows.run(
        rows.dialect.words(
          sqlite: "DELETE FROM flow WHERE instr(record, ?1) > 0", postgres: "DELETE FROM flow WHERE position(CAST(?1 AS BYTEA) IN record) > 0"),
        [.bytes(try JSON.encode(text))])
    }
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

  /// The numbers of events that name them, and what the events are without them.
  func blanks(from first: Int64, to last: Int64, _ rows: some SQLTransaction) throws -> [(number: Int64, json: [UInt8])] {
    let texts = try ([account] + traces).map { try JSON.encode($0) }
    let sql = rows.dialect.words(
      sqlite: "SELECT number, event FROM event WHERE number >= ?1 AND number <= ?2 AND instr(event, ?3) > 0",
      postgres: "SELECT number, event FROM event WHERE number >= ?1 AND number <= ?2 AND position(CAST(?3 AS BYTEA) IN event) > 0")
    let found = try rows.rows(texts.map { SQLRead(sql, [.integer(first), .integer(last), .bytes($0)]) })
    return try found.flatMap { try $0.map { (try $0.integer(0), try JSON.decode(AuditEvent.self, try $0.bytes(1)).anonymous.json) } }
  }

  /// Takes them out of the events.
  func blank(from first: Int64, to last: Int64, _ rows: some SQLTransaction) throws {
    for (number, json) in try blanks(from: first, to: last, rows) {
      try rows.run("UPDATE event SET event = ?1 WHERE number = ?2", [.bytes(json), .integer(number)])
    }
  }
}
