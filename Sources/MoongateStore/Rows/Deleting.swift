import MoongateCore

/// Removing a person. Every table that could tell of one is named here; counters and timers have keys that are keyed hashes, and say
/// nothing of whose they are.
enum Deleting {
  static func delete(_ account: String, traces: [String], _ news: Announcements, _ rows: some SQLTransaction) throws {
    let names = try rows.rows("SELECT value FROM identifier WHERE account = ?1", [.text(account)]).map { try $0.text(0) }
    // Identifiers, records and sessions go with it (ON DELETE CASCADE).
    try rows.demand("DELETE FROM account WHERE id = ?1", [.text(account)], orElse: .accountUnavailable)
    news.add(account: account)
    try deleteFlows(naming: [account] + names, rows)
    try blankEvents(naming: [account] + traces, rows)
  }

  /// A flow's record is JSON with the account and the identifiers in it. Each text is looked for as JSON spells it.
  private static func deleteFlows(naming texts: [String], _ rows: some SQLTransaction) throws {
    for text in texts {
      try rows.run(
        rows.dialect.words(
          sqlite: "DELETE FROM flow WHERE instr(record, ?1) > 0", postgres: "DELETE FROM flow WHERE position(CAST(?1 AS BYTEA) IN record) > 0"),
        [.bytes(try JSON.encode(text))])
    }
  }

  private static func blankEvents(naming texts: [String], _ rows: some SQLTransaction) throws {
    for text in texts {
      let found = try rows.rows(
        rows.dialect.words(
          sqlite: "SELECT number, event FROM event WHERE instr(event, ?1) > 0",
          postgres: "SELECT number, event FROM event WHERE position(CAST(?1 AS BYTEA) IN event) > 0"),
        [.bytes(try JSON.encode(text))])
      for row in found {
        let event = try JSON.decode(AuditEvent.self, try row.bytes(1))
        try rows.run("UPDATE event SET event = ?1 WHERE number = ?2", [.bytes(event.anonymous.json), .integer(try row.integer(0))])
      }
    }
  }
}
