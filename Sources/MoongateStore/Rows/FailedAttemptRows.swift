import MoongateCore

/// Failed attempts, for the details of locks.
enum FailedAttemptRows {
  /// The number of counters that are processed per transaction.
  static let stretch = 200

  /// Stores a failed attempt, and deletes those that no longer count or exceed the maximum.
  /// - Parameter moment: earlier failures are deleted.
  static func put(
    _ attempt: FailedAttempt, of reservation: ReservationID, forgettingBefore moment: Timestamp,
    _ rows: some SQLTransaction
  ) throws {
    let counter = SQLValue.bytes(attempt.counter)
    try rows.run(
      """
      DELETE FROM failed_attempt WHERE counter = ?1 AND (at < ?2 OR at < (
        SELECT at FROM failed_attempt WHERE counter = ?1 ORDER BY at DESC LIMIT 1 OFFSET \(FailedAttempt.most - 2)))
      """, [counter, SQLValue(moment)])
    try rows.run(
      """
      INSERT INTO failed_attempt (counter, at, reservation, account, identifier, sealed) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING
      """,
      [
        counter, SQLValue(attempt.at), .bytes(reservation.bytes), SQLValue(attempt.account),
        SQLValue(attempt.identifier), .bytes(attempt.sealed),
      ])
  }

  /// The failed attempts of counters, newest first for each counter.
  static func all(at counters: [[UInt8]], _ rows: some SQLTransaction) throws -> [FailedAttempt] {
    let reads = counters.map { counter in
      SQLRead(
        "SELECT counter, at, account, identifier, sealed FROM failed_attempt WHERE counter = ?1 ORDER BY at DESC, reservation LIMIT ?2",
        [.bytes(counter), SQLValue(FailedAttempt.most)])
    }
    return try rows.rows(reads).joined().map { row in
      FailedAttempt(
        counter: try row.bytes(0), at: try row.moment(1), account: try row.optionalText(2),
        identifier: try row.optionalText(3),
        sealed: try row.bytes(4))
    }
  }

  /// Deletes the attempts of a counter that was cleared.
  static func forget(_ counter: [UInt8], _ rows: some SQLTransaction) throws {
    try rows.run("DELETE FROM failed_attempt WHERE counter = ?1", [.bytes(counter)])
  }

  /// Deletes the attempts of a deleted user.
  static func forget(about traces: [String], _ rows: some SQLTransaction) throws {
    for trace in traces {
      try rows.run("DELETE FROM failed_attempt WHERE account = ?1", [.text(trace)])
      try rows.run("DELETE FROM failed_attempt WHERE identifier = ?1", [.text(trace)])
    }
  }

  /// Deletes attempts that are too old and led to no active lock.
  /// - Returns: the number of deleted attempts, at most the limit.
  static func prune(at now: Timestamp, limit: Int, _ rows: some SQLTransaction) throws -> Int {
    try rows.changes(
      """
      DELETE FROM failed_attempt WHERE (counter, at, reservation) IN (
        SELECT counter, at, reservation FROM failed_attempt WHERE at <= ?1 AND NOT EXISTS (
          SELECT 1 FROM counter WHERE key = failed_attempt.counter AND (disabled_since IS NOT NULL OR locked_until > ?2))
        ORDER BY at LIMIT ?3)
      """, [SQLValue(now - FailedAttempt.retention), SQLValue(now), SQLValue(limit)])
  }
}
