import MoongateCore

/// Flows, as JSON under the hash of their id.
enum FlowRows {
  static func find(_ id: TokenHash, _ rows: some SQLTransaction) throws -> [UInt8]? {
    try rows.row("SELECT record FROM flow WHERE hash = ?1", [.bytes(id.bytes)])?.bytes(0)
  }

  /// Stores the record over the version that it was made from: of two changes at once one wins, so a code is spent once.
  /// - Parameter encoded: the record with its new version.
  static func put(_ record: FlowRecord, encoded: [UInt8], _ rows: some SQLTransaction) throws {
    if record.version == 0 {
      // It answers 410 until its lifetime has passed once more, then 404 (exact.md, "JSON").
      try rows.demand(
        "INSERT INTO flow (hash, version, forgotten_at, record) VALUES (?1, 1, ?2, ?3) ON CONFLICT (hash) DO NOTHING",
        [.bytes(record.id.bytes), SQLValue(record.expiresAt + (record.expiresAt - record.createdAt)), .bytes(encoded)], orElse: .flowChanged)
    } else {
      try rows.demand(
        "UPDATE flow SET version = version + 1, record = ?1 WHERE hash = ?2 AND version = ?3",
        [.bytes(encoded), .bytes(record.id.bytes), SQLValue(record.version)], orElse: .flowChanged)
    }
  }

  /// - Parameter version: nil: whatever it is.
  static func delete(_ id: TokenHash, version: Int?, _ rows: some SQLTransaction) throws {
    if let version {
      try rows.run("DELETE FROM flow WHERE hash = ?1 AND version = ?2", [.bytes(id.bytes), SQLValue(version)])
    } else {
      try rows.run("DELETE FROM flow WHERE hash = ?1", [.bytes(id.bytes)])
    }
  }
}
