import MoongateCore

/// The audit trail.
enum EventRows {
  /// How long they are kept (exact.md, "JSON"); how many is the quotas' to say.
  static let memory: Duration = .seconds(24 * 3600)

  static func append(_ event: AuditEvent, encoded: [UInt8], _ rows: some SQLTransaction) throws {
    // A flood is stored when it begins, and again with its count.
    if event.count != nil, try rows.changes("UPDATE event SET event = ?1 WHERE id = ?2", [.bytes(encoded), .text(event.id.text)]) > 0 { return }
    try rows.run(
      "INSERT INTO event (id, at, event, quota) VALUES (?1, ?2, ?3, ?4)",
      [.text(event.id.text), SQLValue(event.at), .bytes(encoded), SQLValue(event.kind.quota.rawValue)])
  }

  /// The number of the newest event that is too many for the quota; nil where all of its events are within it.
  static func surplus(_ quota: AuditQuota, _ rows: some SQLTransaction) throws -> Int64? {
    try rows.row(
      // As a range, so that its index is what it is read by, however few of all events are of the quota.
      "SELECT number FROM event WHERE quota >= ?1 AND quota <= ?1 ORDER BY quota DESC, number DESC LIMIT 1 OFFSET ?2",
      [SQLValue(quota.rawValue), SQLValue(quota.most)]
    )?.integer(0)
  }

  /// Removes events of a quota up to a number, at most so many.
  /// - Returns: how many were removed.
  static func remove(_ quota: AuditQuota, through number: Int64, limit: Int, _ rows: some SQLTransaction) throws -> Int {
    try rows.changes(
      """
      DELETE FROM event WHERE number IN (
        SELECT number FROM event WHERE quota >= ?1 AND quota <= ?1 AND number <= ?2 ORDER BY quota, number LIMIT ?3)
      """, [SQLValue(quota.rawValue), .integer(number), SQLValue(limit)])
  }

  /// Newest first.
  static func latest(_ limit: Int, _ rows: some SQLTransaction) throws -> [[UInt8]] {
    try rows.rows("SELECT event FROM event ORDER BY number DESC LIMIT ?1", [SQLValue(max(0, limit))]).map { try $0.bytes(0) }
  }

  /// The last of the decision's events.
  static func find(_ id: DecisionID, _ rows: some SQLTransaction) throws -> [UInt8]? {
    try rows.row("SELECT event FROM event WHERE id = ?1 ORDER BY number DESC LIMIT 1", [.text(id.text)])?.bytes(0)
  }
}
