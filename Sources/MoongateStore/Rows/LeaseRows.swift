import MoongateCore

/// Leases, which ensure that a task runs on only one gateway at a time.
enum LeaseRows {
  static func acquire(
    _ name: String, by holder: String, for length: Duration, at now: Timestamp, _ rows: some SQLTransaction
  ) throws -> LeaseAnswer {
    let until = now + length
    // Attack on ourselves: two gateways that ask at the same moment. The second one conflicts with the first one's row.
    let taken = try rows.row(
      """
      INSERT INTO lease (name, holder, fence, held_until, due_at) VALUES (?1, ?2, 1, ?3, ?4)
      ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, fence = lease.fence + 1, held_until = excluded.held_until
      WHERE lease.held_until <= ?4 AND lease.due_at <= ?4 RETURNING fence
      """, [.text(name), .text(holder), SQLValue(until), SQLValue(now)])
    if let taken { return .held(Lease(name: name, fence: try taken.integer(0), heldUntil: until)) }
    let other = try rows.row("SELECT held_until, due_at FROM lease WHERE name = ?1", [.text(name)])
    return .notBefore(try max(other?.moment(0) ?? now, other?.moment(1) ?? now))
  }

  static func renew(_ lease: Lease, for length: Duration, at now: Timestamp, _ rows: some SQLTransaction) throws
    -> Lease?
  {
    let until = now + length
    let held = try rows.changes(
      "UPDATE lease SET held_until = ?1 WHERE name = ?2 AND fence = ?3 AND held_until > ?4",
      [SQLValue(until), .text(lease.name), .integer(lease.fence), SQLValue(now)])
    return held > 0 ? Lease(name: lease.name, fence: lease.fence, heldUntil: until) : nil
  }

  static func release(_ lease: Lease, dueAt due: Timestamp, at now: Timestamp, _ rows: some SQLTransaction) throws {
    try rows.run(
      "UPDATE lease SET held_until = ?1, due_at = ?2 WHERE name = ?3 AND fence = ?4",
      [SQLValue(now), SQLValue(due), .text(lease.name), .integer(lease.fence)])
  }

  /// Whether the lease is still held. No other gateway can acquire it before the transaction ends.
  static func isHeld(_ lease: Lease, at now: Timestamp, _ rows: some SQLTransaction) throws -> Bool {
    try rows.row(
      "SELECT fence FROM lease WHERE name = ?1 AND fence = ?2 AND held_until > ?3\(rows.dialect.words(sqlite: "", postgres: " FOR SHARE"))",
      [.text(lease.name), .integer(lease.fence), SQLValue(now)]) != nil
  }
}
