import MoongateCore

/// A stored resend timer.
struct TimerRow {
  let resendAt: Timestamp
  private let sequence: Int
  private let sentAt: Timestamp

  /// The read for the timer.
  static func read(_ key: [UInt8]) -> SQLRead {
    SQLRead("SELECT sequence, sent_at, resend_at FROM timer WHERE key = ?1", [.bytes(key)])
  }

  init(_ row: some SQLRow) throws {
    sequence = try row.count(0)
    sentAt = try row.moment(1)
    resendAt = try row.moment(2)
  }

  /// Whether a send must wait.
  ///
  /// Attack: twenty parallel resends of an expired code all bypass the timer. The first one counts as a send since the
  /// expiry, and closes the timer for the others.
  func isClosed(to timer: ResendTimer, at now: Timestamp) -> Bool {
    guard !timer.intervals.isEmpty, now < resendAt else { return false }
    return timer.expiredAt.map { sentAt >= $0 } ?? true
  }

  /// The index in its sequence of a send that follows this one.
  fileprivate func next(at now: Timestamp) -> Int { now < sentAt + ResendTimer.sequenceEnd ? sequence + 1 : 0 }
}

extension ResendTimer {
  /// Starts the timer for a send, and stores what a refund restores.
  func advance(from running: TimerRow?, by reservation: ReservationID, at now: Timestamp, _ rows: some SQLTransaction)
    throws
  {
    let sequence = running?.next(at: now) ?? 0
    guard let interval = interval(after: sequence) else { return }
    try rows.run(
      """
      INSERT INTO timer (key, sequence, sent_at, resend_at, reservation) VALUES (?1, ?2, ?3, ?4, ?5)
      ON CONFLICT (key) DO UPDATE SET
        previous_sequence = timer.sequence, previous_sent_at = timer.sent_at, previous_resend_at = timer.resend_at,
        sequence = excluded.sequence, sent_at = excluded.sent_at, resend_at = excluded.resend_at, reservation = excluded.reservation
      """, [.bytes(key), SQLValue(sequence), SQLValue(now), SQLValue(now + interval), .bytes(reservation.bytes)])
  }

  /// Confirms that the message was sent. There is nothing to restore any more.
  func confirm(_ reservation: ReservationID, _ rows: some SQLTransaction) throws {
    try rows.run(
      "UPDATE timer SET reservation = NULL WHERE key = ?1 AND reservation = ?2",
      [.bytes(key), .bytes(reservation.bytes)])
  }

  /// Restores the previous state of the timer, because the message was not sent. If there was another send in between,
  /// its time is kept.
  func restore(_ reservation: ReservationID, at now: Timestamp, _ rows: some SQLTransaction) throws {
    let arguments: [SQLValue] = [
      .bytes(key), .bytes(reservation.bytes), SQLValue(now - CounterState.settlementTimeout),
    ]
    try rows.run(
      "DELETE FROM timer WHERE key = ?1 AND reservation = ?2 AND sent_at > ?3 AND previous_sequence IS NULL", arguments)
    try rows.run(
      """
      UPDATE timer SET
        sequence = previous_sequence, sent_at = previous_sent_at, resend_at = previous_resend_at,
        reservation = NULL, previous_sequence = NULL, previous_sent_at = NULL, previous_resend_at = NULL
      WHERE key = ?1 AND reservation = ?2 AND sent_at > ?3
      """, arguments)
  }
}
