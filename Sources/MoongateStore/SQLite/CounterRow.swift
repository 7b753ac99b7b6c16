import Foundation
import GRDB
import MoongateCore
import MoongateSDK

/// One counter as it is stored, and its state at one moment. What the state means is judged by `CounterState` alone.
///
/// Tries that stay counted are rows of `tally`, and their number stands beside in `counter`, so that judging a limit of a
/// hundred thousand costs no more than judging one of five. Tries that are being judged are rows of `pending`; there are
/// never more of them than there are requests at work.
struct CounterRow {
  private let limit: ResolvedLimit
  private let now: Timestamp
  private let key: Data
  /// Stored in `tally`, of which `expired` are out of the window.
  private var counted = 0
  private var expired = 0
  /// The first in `tally` that is in the window.
  private var oldest: Timestamp?
  private var live = 0
  /// Unsettled beyond patience: they count as failures (exact.md, "Tries, limits, locks").
  private var dead = 0
  private var oldestPending: Timestamp?
  private var lockedSince: Timestamp?
  private var lockedUntil: Timestamp?
  private var lockLevel = 0
  private var disabledSince: Timestamp?
  private var expiresAt = Timestamp(milliseconds: 0)

  /// Reads it; writes nothing.
  init(_ limit: ResolvedLimit, at now: Timestamp, _ db: Database) throws {
    self.limit = limit
    self.now = now
    key = Data(limit.counter)
    let cutoff = limit.window.map { now - $0 } ?? Timestamp(milliseconds: .min)
    let patience = now - CounterState.patience
    if let row = try db.row(
      "SELECT counted, oldest, locked_since, locked_until, lock_level, disabled_since, expires_at FROM counter WHERE key = ?", [key])
    {
      counted = row[0]
      oldest = row.optionalMoment(1)
      lockedSince = row.optionalMoment(2)
      lockedUntil = row.optionalMoment(3)
      lockLevel = row[4]
      disabledSince = row.optionalMoment(5)
      expiresAt = row.moment(6)
    }
    // An event counts in [t, t + window): at the cutoff it no longer does.
    if let first = oldest, first <= cutoff {
      expired =
        try Int.fetchOne(
          try db.cachedStatement(sql: "SELECT count(*) FROM tally WHERE counter = ? AND at <= ?"), arguments: [key, cutoff.milliseconds]) ?? 0
      oldest = try db.row("SELECT min(at) FROM tally WHERE counter = ? AND at > ?", [key, cutoff.milliseconds])?.optionalMoment(0)
    }
    if let row = try db.row(
      "SELECT count(*), count(*) FILTER (WHERE at > ?), min(at) FROM pending WHERE counter = ? AND at > ?",
      [patience.milliseconds, key, cutoff.milliseconds])
    {
      live = row[1]
      dead = (row[0] as Int) - live
      oldestPending = row.optionalMoment(2)
    }
  }

  var state: CounterState {
    CounterState(
      pending: live, settled: counted - expired + dead, oldest: [oldest, oldestPending].compactMap { $0 }.min(), lockedSince: lockedSince,
      lockedUntil: lockedUntil, lockLevel: lockLevel, isDisabled: disabledSince != nil)
  }

  /// Removes what has left the window and turns tries of dead processes into failures, so that they are met once.
  mutating func tidy(_ db: Database) throws {
    guard expired > 0 || dead > 0 else { return }
    if expired > 0, let window = limit.window {
      try db.run("DELETE FROM tally WHERE counter = ? AND at <= ?", [key, (now - window).milliseconds])
      counted -= expired
      expired = 0
    }
    if dead > 0 {
      let patience = (now - CounterState.patience).milliseconds
      let cutoff = (limit.window.map { now - $0 } ?? Timestamp(milliseconds: .min)).milliseconds
      try db.run(
        "INSERT INTO tally (counter, at, reservation) SELECT counter, at, reservation FROM pending WHERE counter = ? AND at <= ? AND at > ?",
        [key, patience, cutoff])
      try db.run("DELETE FROM pending WHERE counter = ? AND at <= ?", [key, patience])
      counted += dead
      dead = 0
      oldest = try db.row("SELECT min(at) FROM tally WHERE counter = ?", [key])?.optionalMoment(0)
      oldestPending = try db.row("SELECT min(at) FROM pending WHERE counter = ?", [key])?.optionalMoment(0)
      remember(until: limit.window.map { now + $0 })
    }
    try save(db)
  }

  /// Counts a try that is settled, from its own time on.
  mutating func keep(_ reservation: ReservationID, at moment: Timestamp, _ db: Database) throws {
    if let window = limit.window, moment + window <= now { return }
    try db.run("INSERT INTO tally (counter, at, reservation) VALUES (?, ?, ?)", [key, moment.milliseconds, Data(reservation.bytes)])
    counted += 1
    oldest = min(oldest ?? moment, moment)
    remember(until: limit.window.map { moment + $0 })
    try save(db)
  }

  /// Begins a lock. The events go: what follows the lock starts from zero.
  mutating func begin(_ lock: Lock, _ db: Database) throws {
    try clear(db)
    lockedSince = lock.since
    lockedUntil = lock.until
    lockLevel = lock.level
    // Escalation remembers it for another window.
    remember(until: limit.window.map { lock.until + $0 })
    try save(db)
  }

  /// Turns off what it counts.
  mutating func disable(_ db: Database) throws {
    try clear(db)
    disabledSince = now
    remember(until: nil)
    try save(db)
  }

  /// Ends its lock or its being off, and forgets its events: what it counts has been replaced. Escalation remembers the lock.
  mutating func forget(at now: Timestamp, _ db: Database) throws {
    guard counted > 0 || live + dead > 0 || disabledSince != nil || (lockedUntil.map { now < $0 } ?? false) else { return }
    try clear(db)
    disabledSince = nil
    if let until = lockedUntil, now < until { lockedUntil = now }
    try save(db)
  }

  /// Forgets the failures: there was a success.
  mutating func reset(_ db: Database) throws {
    guard counted > 0 || dead > 0 else { return }
    try db.run("DELETE FROM tally WHERE counter = ?", [key])
    try db.run("DELETE FROM pending WHERE counter = ? AND at <= ?", [key, (now - CounterState.patience).milliseconds])
    counted = 0
    expired = 0
    dead = 0
    oldest = nil
    try save(db)
  }

  private mutating func clear(_ db: Database) throws {
    try db.run("DELETE FROM tally WHERE counter = ?", [key])
    try db.run("DELETE FROM pending WHERE counter = ?", [key])
    (counted, expired, live, dead) = (0, 0, 0, 0)
    oldest = nil
    oldestPending = nil
  }

  private mutating func remember(until end: Timestamp?) { expiresAt = max(expiresAt, end ?? Timestamp(milliseconds: .max)) }

  private func save(_ db: Database) throws {
    try db.run(
      """
      INSERT INTO counter (key, provider, name, counted, oldest, locked_since, locked_until, lock_level, disabled_since, expires_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (key) DO UPDATE SET
        counted = excluded.counted, oldest = excluded.oldest, locked_since = excluded.locked_since, locked_until = excluded.locked_until,
        lock_level = excluded.lock_level, disabled_since = excluded.disabled_since, expires_at = excluded.expires_at
      """,
      [
        key, limit.provider.rawValue, limit.name, counted, oldest?.milliseconds, lockedSince?.milliseconds, lockedUntil?.milliseconds, lockLevel,
        disabledSince?.milliseconds, expiresAt.milliseconds,
      ])
  }
}
