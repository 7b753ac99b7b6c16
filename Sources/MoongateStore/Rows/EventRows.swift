import MoongateCore

/// The audit trail.
enum EventRows {
  /// How many are kept, and for how long (exact.md, "JSON").
  static let most: Int64 = 100_000
  static let memory: Duration = .seconds(24 * 3600)

  static func append(_ event: AuditEvent, encoded: [UInt8], _ rows: some SQLTransaction) throws {
    try rows.run("INSERT INTO event (id, at, event) VALUES (?1, ?2, ?3)", [.text(event.id.text), SQLValue(event.at), .bytes(encoded)])
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
