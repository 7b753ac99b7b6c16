import MoongateCore

/// Flows, stored as JSON under the hash of their ID.
enum FlowRows {
  /// The read of one flow, for `record`.
  static func read(_ id: TokenHash) -> SQLRead {
    SQLRead("SELECT record FROM flow WHERE hash = ?1", [.bytes(id.bytes)])
  }

  /// The read of the version of one flow.
  static func readVersion(_ id: TokenHash) -> SQLRead {
    SQLRead("SELECT version FROM flow WHERE hash = ?1", [.bytes(id.bytes)])
  }

  /// The JSON of the flow that `read` has found.
  static func record(_ found: [some SQLRow]) throws -> [UInt8]? { try found.first?.bytes(0) }

  /// Stores the record over the version it is based on. Of two concurrent changes only one succeeds, so a code can be
  /// used only once.
  /// - Parameter encoded: the record with its new version.
  static func put(_ record: FlowRecord, encoded: [UInt8], _ rows: some SQLTransaction) throws {
    if record.version == 0 {
      // A flow answers 410 until its lifetime has passed once more, then 404.
      try rows.demand(
        "INSERT INTO flow (hash, version, forgotten_at, record, origin, size) VALUES (?1, 1, ?2, ?3, ?4, ?5) ON CONFLICT (hash) DO NOTHING",
        [
          .bytes(record.id.bytes), SQLValue(record.expiresAt + (record.expiresAt - record.createdAt)), .bytes(encoded),
          SQLValue(record.unverifiedOrigin), SQLValue(encoded.count),
        ], orElse: .flowChanged)
    } else {
      try rows.demand(
        "UPDATE flow SET version = version + 1, record = ?1, origin = ?4, size = ?5 WHERE hash = ?2 AND version = ?3",
        [
          .bytes(encoded), .bytes(record.id.bytes), SQLValue(record.version), SQLValue(record.unverifiedOrigin),
          SQLValue(encoded.count),
        ],
        orElse: .flowChanged)
    }
  }

  // MARK: Flows without any proof

  /// The number of flows that are deleted per transaction.
  static let stretch = 500
  /// Deletes the oldest flows of an address that has too many. Leaves a tenth less than the maximum, so that the next
  /// stored flow does not cause another deletion.
  /// - Returns: the number of flows that remain.
  static func bound(_ origin: String, _ rows: some SQLTransaction) throws -> Int {
    let count = try rows.row("SELECT count(*) FROM flow WHERE origin = ?1", [.text(origin)])?.count(0) ?? 0
    if count <= FlowBound.perAddress { return count }
    let surplus = count - FlowBound.perAddress + FlowBound.perAddress / 10
    // Two concurrent transactions that delete flows of one address do not wait for each other.
    let free = rows.dialect.words(sqlite: "", postgres: " FOR UPDATE SKIP LOCKED")
    return count
      - (try rows.changes(
        "DELETE FROM flow WHERE number IN (SELECT number FROM flow WHERE origin = ?1 ORDER BY number LIMIT ?2\(free))",
        [.text(origin), SQLValue(surplus)]))
  }

  /// The numbers of the surplus flows, oldest first.
  static func surplus(beyond bound: FlowBound, _ rows: some SQLTransaction) throws -> [Int64] {
    let sum = try rows.row("SELECT count(*), CAST(coalesce(sum(size), 0) AS BIGINT) FROM flow WHERE origin IS NOT NULL")
    guard let sum, try !bound.holds(count: sum.count(0), bytes: sum.count(1)) else { return [] }
    let all = try rows.rows("SELECT number, origin, size FROM flow WHERE origin IS NOT NULL").map { row in
      (number: try row.integer(0), origin: try row.text(1), bytes: try row.count(2))
    }.sorted { $0.number < $1.number }
    return bound.swept.surplus(of: all.map { FlowOrigin.member($0.origin, bytes: $0.bytes) }).map { all[$0].number }
  }

  /// Deletes those of the flows that are still without any proof.
  static func evict(_ numbers: [Int64], _ rows: some SQLTransaction) throws -> Int {
    try rows.changes(
      "DELETE FROM flow WHERE origin IS NOT NULL AND number IN (\(CountedStatement.list(numbers.count)))",
      numbers.map(SQLValue.integer))
  }

  /// - Parameter version: nil for any version.
  static func delete(_ id: TokenHash, version: Int?, _ rows: some SQLTransaction) throws {
    if let version {
      try rows.run("DELETE FROM flow WHERE hash = ?1 AND version = ?2", [.bytes(id.bytes), SQLValue(version)])
    } else {
      try rows.run("DELETE FROM flow WHERE hash = ?1", [.bytes(id.bytes)])
    }
  }
}
