import Foundation
import GRDB
import MoongateCore
import Synchronization

/// Removes what is dead, in small steps, so that nobody waits long for it. Tables without an index by age are walked in
/// the order of their keys, a stretch at a time; `Pruning` remembers where.
final class Pruning: Sendable {
  /// Rows looked at or removed in one step and table.
  private static let stretch = 500

  private struct Place {
    var counter = Data()
    var session = Data()
    var timer = Data()
  }

  private let place = Mutex(Place())

  /// - Returns: whether there is more to look at.
  func step(at now: Timestamp, _ db: Database) throws -> Bool {
    let moment = now.milliseconds
    let flows = try db.run(
      "DELETE FROM flow WHERE number IN (SELECT number FROM flow WHERE forgotten_at <= ? ORDER BY forgotten_at LIMIT \(Self.stretch))", [moment])
    let changes = try db.run(
      """
      DELETE FROM session_change WHERE number IN (SELECT number FROM session_change ORDER BY number LIMIT \(Self.stretch))
        AND at <= ? AND number < (SELECT max(number) FROM session_change)
      """, [(now - SessionRows.memory).milliseconds])
    let events = try db.run(
      """
      DELETE FROM event WHERE number IN (SELECT number FROM event ORDER BY number LIMIT \(Self.stretch))
        AND (at <= ? OR number <= (SELECT max(number) FROM event) - \(EventRows.most))
      """, [(now - EventRows.memory).milliseconds])
    let abandoned = try db.run("DELETE FROM pending WHERE expires_at <= ?", [moment])
    var place = place.withLock { $0 }
    // A counter that has neither events nor a lock to remember, or whose events and locks are all over.
    for key in try walk(
      "counter", "key", from: &place.counter,
      dead: "expires_at <= ? OR (counted = 0 AND locked_until IS NULL AND disabled_since IS NULL)", moment, db)
    {
      try db.run("DELETE FROM tally WHERE counter = ?", [key])
      try db.run("DELETE FROM counter WHERE key = ?", [key])
    }
    for token in try walk("session", "token", from: &place.session, dead: "min(expires_at, last_seen_at + idle) <= ?", moment, db) {
      try db.run("DELETE FROM session WHERE token = ?", [token])
    }
    let sequenceEnd = (now - ResendTimer.sequenceEnd).milliseconds
    for key in try walk("timer", "key", from: &place.timer, dead: "max(resend_at, sent_at + \(now.milliseconds - sequenceEnd)) <= ?", moment, db) {
      try db.run("DELETE FROM timer WHERE key = ?", [key])
    }
    self.place.withLock { [place] in $0 = place }
    let isWalking = !(place.counter.isEmpty && place.session.isEmpty && place.timer.isEmpty)
    return isWalking || [flows, changes, events].contains { $0 >= Self.stretch } || abandoned >= Self.stretch
  }

  /// The keys of dead rows in the next stretch of a table. `place` becomes the stretch's last key, empty at the table's end.
  private func walk(_ table: String, _ key: String, from place: inout Data, dead: String, _ now: Int64, _ db: Database) throws -> [Data] {
    let rows = try db.rows("SELECT \(key), \(dead) FROM \(table) WHERE \(key) > ? ORDER BY \(key) LIMIT \(Self.stretch)", [now, place])
    place = rows.count < Self.stretch ? Data() : rows.last?[0] ?? Data()
    return rows.filter { $0[1] }.map { $0[0] }
  }
}
