import MoongateCore

/// The position up to which the audit trail was sent to each sink.
///
/// SQLite numbers events in commit order. On PostgreSQL, the events of a transaction are sent once no older transaction
/// is running, in the order of the transactions.
enum AuditCursorRows {
  /// A condition on `event`: every sink that is in use has received it.
  /// - Parameter moment: the argument with the time since which a sink must have been used.
  static func isSent(_ dialect: SQLDialect, before moment: String) -> String {
    let isBehind = dialect.words(
      sqlite: "audit_cursor.number < event.number",
      postgres: "(audit_cursor.xact, audit_cursor.number) < (event.xact, event.number)")
    return "NOT EXISTS (SELECT 1 FROM audit_cursor WHERE audit_cursor.seen_at > \(moment) AND \(isBehind))"
  }

  static func begin(_ sink: String, at now: Timestamp, _ rows: some SQLTransaction) throws -> AuditPosition {
    if rows.dialect == .postgres { try resetCursorsIfRestored(rows) }
    let row = try rows.row(
      """
      INSERT INTO audit_cursor (sink, number, xact, seen_at) VALUES (?1, 0, 0, ?2)
      ON CONFLICT (sink) DO UPDATE SET seen_at = CASE WHEN audit_cursor.seen_at < ?2 THEN ?2 ELSE audit_cursor.seen_at END RETURNING number, xact
      """, [.text(sink), SQLValue(now)])
    guard let row else { throw damaged("audit cursor") }
    return AuditPosition(transaction: try row.integer(1), number: try row.integer(0))
  }

  /// The events after a position, in sending order.
  static func events(after position: AuditPosition, limit: Int, _ rows: some SQLTransaction) throws -> [PositionedEvent]
  {
    let found: [(AuditPosition, [UInt8])] = try rows.rows(
      "SELECT number, \(rows.dialect.words(sqlite: "0", postgres: "xact")), event FROM event WHERE \(unsent(rows.dialect)) LIMIT ?3",
      [.integer(position.number), .integer(position.transaction), SQLValue(limit)]
    ).map { (AuditPosition(transaction: try $0.integer(1), number: try $0.integer(0)), try $0.bytes(2)) }
    return try found.map { PositionedEvent(position: $0, event: try JSON.decode(AuditEvent.self, $1)) }
  }

  static func backlog(after position: AuditPosition, _ rows: some SQLTransaction) throws -> AuditBacklog {
    let row = try rows.row(
      "SELECT count(*), min(at) FROM (SELECT at FROM event WHERE \(unsent(rows.dialect)) LIMIT ?3) AS unsent",
      [.integer(position.number), .integer(position.transaction), SQLValue(AuditBacklog.most)])
    return AuditBacklog(count: try row?.count(0) ?? 0, oldest: try row?.optionalMoment(1))
  }

  /// - Returns: false if the lease is no longer held.
  static func move(
    _ sink: String, to position: AuditPosition, under lease: Lease, at now: Timestamp, _ rows: some SQLTransaction
  ) throws -> Bool {
    guard try LeaseRows.isHeld(lease, at: now, rows) else { return false }
    return try rows.changes(
      "UPDATE audit_cursor SET number = ?2, xact = ?3, seen_at = ?4 WHERE sink = ?1",
      [.text(sink), .integer(position.number), .integer(position.transaction), SQLValue(now)]) > 0
  }

  static func forget(unusedSince moment: Timestamp, except sinks: [String], _ rows: some SQLTransaction) throws {
    for row in try rows.rows("SELECT sink FROM audit_cursor WHERE seen_at <= ?1", [SQLValue(moment)]) {
      let sink = try row.text(0)
      if !sinks.contains(sink) {
        try rows.run("DELETE FROM audit_cursor WHERE sink = ?1 AND seen_at <= ?2", [.text(sink), SQLValue(moment)])
      }
    }
  }

  /// If a database was restored on another server, its events and cursors can have transaction numbers that the server
  /// has not reached yet, and nothing would be sent until then. In that case, all stored events are sent again.
  private static func resetCursorsIfRestored(_ rows: some SQLTransaction) throws {
    let next = "CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT)"
    try rows.run("UPDATE event SET xact = 0 WHERE xact >= \(next)")
    try rows.run("UPDATE audit_cursor SET xact = 0, number = 0 WHERE xact >= \(next)")
  }

  /// SQLite restarts numbering from 1 once the trail is empty.
  static func resetCursorsIfTrailIsEmpty(_ rows: some SQLTransaction) throws {
    guard rows.dialect == .sqlite else { return }
    try rows.run("UPDATE audit_cursor SET number = 0 WHERE NOT EXISTS (SELECT 1 FROM event)")
  }

  /// Uses the arguments number and transaction.
  private static func unsent(_ dialect: SQLDialect) -> String {
    dialect.words(
      sqlite: "number > ?1 AND ?2 = ?2 ORDER BY number",
      postgres: """
        (xact, number) > (?2, ?1) AND xact < CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) ORDER BY xact, number
        """)
  }
}
