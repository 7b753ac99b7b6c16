import Foundation
import GRDB
import MoongateCore

/// The audit trail.
enum EventRows {
  /// How many are kept, and for how long (exact.md, "JSON").
  static let most: Int64 = 100_000
  static let memory: Duration = .seconds(24 * 3600)

  static func append(_ event: AuditEvent, encoded: Data, _ db: Database) throws {
    try db.run("INSERT INTO event (id, at, event) VALUES (?, ?, ?)", [event.id.text, event.at.milliseconds, encoded])
  }

  /// Newest first.
  static func latest(_ limit: Int, _ db: Database) throws -> [Data] {
    try db.rows("SELECT event FROM event ORDER BY number DESC LIMIT ?", [max(0, limit)]).map { $0[0] }
  }

  /// The last of the decision's events.
  static func find(_ id: DecisionID, _ db: Database) throws -> Data? {
    try db.row("SELECT event FROM event WHERE id = ? ORDER BY number DESC LIMIT 1", [id.text])?[0]
  }
}
