import MoongateCore

/// The audit trail.
enum EventRows {
  /// How long events are kept. Their number is bounded by the quotas and the sinks' cursors.
  static let retention: Duration = .seconds(7 * 86_400)

  static func append(_ event: AuditEvent, encoded: [UInt8], _ rows: some SQLTransaction) throws {
    // A flood is stored when it begins, and again with its count. It then moves to the end of the trail, so that sinks
    // receive the count too.
    let last = rows.dialect.words(
      sqlite: "number = (SELECT max(number) FROM event) + 1",
      postgres:
        "number = nextval(pg_get_serial_sequence('event', 'number')), xact = CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)"
    )
    let update = "UPDATE event SET event = ?1, \(last) WHERE id = ?2"
    if event.count != nil, try rows.changes(update, [.bytes(encoded), .text(event.id.text)]) > 0 { return }
    try rows.run(
      "INSERT INTO event (id, at, event, quota) VALUES (?1, ?2, ?3, ?4)",
      [.text(event.id.text), SQLValue(event.at), .bytes(encoded), SQLValue(event.kind.quota.rawValue)])
  }

  /// The number of the newest event beyond the quota; nil if all of the quota's events are within it.
  static func surplus(_ quota: AuditQuota, _ rows: some SQLTransaction) throws -> Int64? {
    try rows.row(
      // Written as a range so that the index is used, even if only few events belong to the quota.
      "SELECT number FROM event WHERE quota >= ?1 AND quota <= ?1 ORDER BY quota DESC, number DESC LIMIT 1 OFFSET ?2",
      [SQLValue(quota.rawValue), SQLValue(quota.most)]
    )?.integer(0)
  }

  /// Deletes events of a quota up to a number, at most `limit`. Events that a sink has not received are kept until they
  /// are too old.
  /// - Returns: the number of deleted events.
  static func remove(
    _ quota: AuditQuota, through number: Int64, limit: Int, at now: Timestamp, _ rows: some SQLTransaction
  ) throws -> Int {
    try rows.changes(
      """
      DELETE FROM event WHERE number IN (
        SELECT number FROM event WHERE quota >= ?1 AND quota <= ?1 AND number <= ?2 AND \(AuditCursorRows.isSent(rows.dialect, before: "?4"))
        ORDER BY quota, number LIMIT ?3)
      """, [SQLValue(quota.rawValue), .integer(number), SQLValue(limit), SQLValue(now - retention)])
  }

  /// The latest events, newest first.
  static func latest(_ limit: Int, _ rows: some SQLTransaction) throws -> [[UInt8]] {
    try rows.rows("SELECT event FROM event ORDER BY number DESC LIMIT ?1", [SQLValue(max(0, limit))]).map {
      try $0.bytes(0)
    }
  }

  /// The events in a range that match a filter, newest first.
  /// - Returns: also whether the whole range, and thus everything before it, is older than the filter's start. Times
  ///   come from different gateways and are not exactly in the order of the numbers, so a margin is added.
  static func search(
    _ filter: AuditFilter, from first: Int64, to last: Int64, _ rows: some SQLTransaction
  ) throws -> (events: [AuditEvent], isTooOld: Bool) {
    let stretch: [SQLValue] = [
      .integer(first), .integer(last), SQLValue(filter.since ?? Timestamp(milliseconds: .min)),
    ]
    let range = "number >= ?1 AND number <= ?2 AND at >= ?3"
    let holds = rows.dialect.words(sqlite: "instr(event, ?4) > 0", postgres: "position(CAST(?4 AS BYTEA) IN event) > 0")
    let reads =
      if let needles = filter.needles {
        try needles.map {
          SQLRead(
            "SELECT number, event FROM event WHERE \(range) AND \(holds)", stretch + [.bytes(try JSON.encode($0))])
        }
      } else {
        [SQLRead("SELECT number, event FROM event WHERE \(range)", stretch)]
      }
    // An event with several of the texts is found several times.
    var found: [Int64: AuditEvent] = [:]
    for row in try rows.rows(reads).joined() {
      found[try row.integer(0)] = try JSON.decode(AuditEvent.self, try row.bytes(1))
    }
    let events = found.filter { filter.matches($0.value) }.sorted { $0.key > $1.key }.map(\.value)
    guard let since = filter.since else { return (events, false) }
    let newest = try rows.row(
      "SELECT max(at) FROM event WHERE number >= ?1 AND number <= ?2", Array(stretch.prefix(2)))?.optionalMoment(0)
    return (events, newest.map { $0 < since - margin } ?? false)
  }

  private static let margin: Duration = .seconds(3600)

  /// The last event with the decision's ID.
  static func find(_ id: DecisionID, _ rows: some SQLTransaction) throws -> [UInt8]? {
    try rows.row("SELECT event FROM event WHERE id = ?1 ORDER BY number DESC LIMIT 1", [.text(id.text)])?.bytes(0)
  }
}
