import Foundation
import GRDB
import MoongateCore

/// A resend timer as it is stored.
struct TimerRow {
  let resendAt: Timestamp
  private let sequence: Int
  private let sentAt: Timestamp

  /// - Returns: nil where no timer has run.
  init?(_ key: [UInt8], _ db: Database) throws {
    guard let row = try db.row("SELECT sequence, sent_at, resend_at FROM timer WHERE key = ?", [Data(key)]) else {
      return nil
    }
    sequence = row[0]
    sentAt = row.moment(1)
    resendAt = row.moment(2)
  }

  /// Whether a send must wait.
  ///
  /// Attack: twenty parallel resends of an expired code all come past the timer. The first of them is a send since that
  /// expiry, and closes it to the others.
  func isClosed(to timer: ResendTimer, at now: Timestamp) -> Bool {
    guard !timer.intervals.isEmpty, now < resendAt else { return false }
    return timer.expiredAt.map { sentAt >= $0 } ?? true
  }

  /// The number in its sequence of a send that follows this one.
  fileprivate func next(at now: Timestamp) -> Int { now < sentAt + ResendTimer.sequenceEnd ? sequence + 1 : 0 }
}

extension ResendTimer {
  /// Starts it for a send that is about to be made, and keeps what a refund restores.
  /// - Returns: when the next send is open; nil where no timer runs.
  func advance(from running: TimerRow?, by reservation: ReservationID, at now: Timestamp, _ db: Database) throws -> Timestamp? {
    let sequence = running?.next(at: now) ?? 0
    guard let interval = interval(after: sequence) else { return nil }
    let resendAt = now + interval
    try db.run(
      """
      INSERT INTO timer (key, sequence, sent_at, resend_at, reservation) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (key) DO UPDATE SET
        previous_sequence = sequence, previous_sent_at = sent_at, previous_resend_at = resend_at,
        sequence = excluded.sequence, sent_at = excluded.sent_at, resend_at = excluded.resend_at, reservation = excluded.reservation
      """, [Data(key), sequence, now.milliseconds, resendAt.milliseconds, Data(reservation.bytes)])
    return resendAt
  }

  /// The send went out: nothing is to be restored any more.
  func confirm(_ reservation: ReservationID, _ db: Database) throws {
    try db.run("UPDATE timer SET reservation = NULL WHERE key = ? AND reservation = ?", [Data(key), Data(reservation.bytes)])
  }

  /// The send did not go out: the timer stands as it stood before. Where another send came between, its own time holds.
  func restore(_ reservation: ReservationID, at now: Timestamp, _ db: Database) throws {
    let arguments: StatementArguments = [Data(key), Data(reservation.bytes), (now - CounterState.patience).milliseconds]
    try db.run("DELETE FROM timer WHERE key = ? AND reservation = ? AND sent_at > ? AND previous_sequence IS NULL", arguments)
    try db.run(
      """
      UPDATE timer SET
        sequence = previous_sequence, sent_at = previous_sent_at, resend_at = previous_resend_at,
        reservation = NULL, previous_sequence = NULL, previous_sent_at = NULL, previous_resend_at = NULL
      WHERE key = ? AND reservation = ? AND sent_at > ?
      """, arguments)
  }
}
