import Foundation
import GRDB
import MoongateCore

/// Flows, as JSON under the hash of their id.
enum FlowRows {
  static func find(_ id: TokenHash, _ db: Database) throws -> Data? { try db.row("SELECT record FROM flow WHERE hash = ?", [Data(id.bytes)])?[0] }

  /// Stores the record over the version that it was made from: of two changes at once one wins, so a code is spent once.
  /// - Parameter encoded: the record with its new version.
  static func put(_ record: FlowRecord, encoded: Data, _ db: Database) throws {
    let changed =
      if record.version == 0 {
        // It answers 410 until its lifetime has passed once more, then 404 (exact.md, "JSON").
        try db.run(
          "INSERT INTO flow (hash, version, forgotten_at, record) VALUES (?, 1, ?, ?) ON CONFLICT (hash) DO NOTHING",
          [Data(record.id.bytes), (record.expiresAt + (record.expiresAt - record.createdAt)).milliseconds, encoded])
      } else {
        try db.run(
          "UPDATE flow SET version = version + 1, record = ? WHERE hash = ? AND version = ?", [encoded, Data(record.id.bytes), record.version])
      }
    if changed == 0 { throw ChangeConflict(.flowChanged) }
  }

  static func delete(_ id: TokenHash, _ db: Database) throws { try db.run("DELETE FROM flow WHERE hash = ?", [Data(id.bytes)]) }
}
