import MoongateCore
import MoongateSDK

/// A stored counter and its state at one moment. Only `CounterState` decides what the state means.
///
/// Counted attempts are rows of `tally`, and their number is also stored in `counter`, so that a limit of a hundred
/// thousand costs no more to judge than one of five. Attempts that are being judged are rows of `pending`; there are
/// never more of them than running requests.
struct CounterRow {
  private let limit: ResolvedLimit
  private let now: Timestamp
  private var key: SQLValue { .bytes(limit.counter) }
  /// The rows in `tally`, of which `expired` are outside the window.
  private var counted = 0
  private var expired = 0
  /// The first row in `tally` that is within the window.
  private var oldest: Timestamp?
  private var live = 0
  /// Unsettled for longer than `CounterState.settlementTimeout`: they count as failures.
  private var dead = 0
  private var oldestPending: Timestamp?
  private var lockedSince: Timestamp?
  private var lockedUntil: Timestamp?
  private var lockLevel = 0
  private var disabledSince: Timestamp?
  private var expiresAt = Timestamp(milliseconds: 0)

  /// The columns that are read of a counter.
  static let columns = "key, counted, oldest, locked_since, locked_until, lock_level, disabled_since, expires_at"
  private static let find = CountedStatement {
    "SELECT \(columns) FROM counter WHERE key IN (\(CountedStatement.list($0)))"
  }

  /// Reads the rows of counters, in any order, together with other reads in one round trip.
  static func rows<Transaction: SQLTransaction>(
    _ limits: [ResolvedLimit], _ reads: [SQLRead], _ rows: Transaction
  ) throws -> (counters: [Transaction.Row], found: ArraySlice<[Transaction.Row]>) {
    if limits.isEmpty { return ([], reads.isEmpty ? [] : try rows.rows(reads)[...]) }
    let found = try rows.rows([read(limits)] + reads)
    return (found[0], found.dropFirst())
  }

  /// The row of the limit's counter among rows that `read` has found.
  static func row<Row: SQLRow>(of limit: ResolvedLimit, in stored: [Row]) throws -> Row? {
    try stored.first { try $0.bytes(0) == limit.counter }
  }

  /// The read for the rows of counters.
  static func read(_ limits: [ResolvedLimit]) -> SQLRead {
    SQLRead(find[limits.count], limits.map { .bytes($0.counter) })
  }

  /// The read for attempts that are being judged.
  static func readPending(_ limit: ResolvedLimit, at now: Timestamp) -> SQLRead {
    SQLRead(
      "SELECT count(*), count(*) FILTER (WHERE at > ?1), min(at) FROM pending WHERE counter = ?2 AND at > ?3",
      [SQLValue(now - CounterState.settlementTimeout), .bytes(limit.counter), SQLValue(limit.cutoff(at: now))])
  }

  /// - Parameters:
  ///   - stored: the counter's row; nil if it has none.
  ///   - pending: the result of `readPending`.
  init<Row: SQLRow>(_ limit: ResolvedLimit, at now: Timestamp, stored: Row?, pending: Row?) throws {
    self.limit = limit
    self.now = now
    if let stored {
      counted = try stored.count(1)
      oldest = try stored.optionalMoment(2)
      lockedSince = try stored.optionalMoment(3)
      lockedUntil = try stored.optionalMoment(4)
      lockLevel = try stored.count(5)
      disabledSince = try stored.optionalMoment(6)
      expiresAt = try stored.moment(7)
    }
    if let pending {
      live = try pending.count(1)
      dead = try pending.count(0) - live
      oldestPending = try pending.optionalMoment(2)
    }
  }

  /// Whether events have left the window. `readTally` then finds the first one within it.
  var hasAged: Bool { oldest.map { $0 <= limit.cutoff(at: now) } ?? false }

  /// An event counts in [t, t + window): at the cutoff it no longer counts.
  var readTally: SQLRead {
    SQLRead(
      "SELECT count(*), (SELECT min(at) FROM tally WHERE counter = ?1 AND at > ?2) FROM tally WHERE counter = ?1 AND at <= ?2",
      [key, SQLValue(limit.cutoff(at: now))])
  }

  /// Applies the result of `readTally`.
  mutating func age(_ row: some SQLRow) throws {
    expired = try row.count(0)
    oldest = try row.optionalMoment(1)
  }

  var state: CounterState {
    CounterState(
      pending: live, settled: counted - expired + dead, oldest: [oldest, oldestPending].compactMap { $0 }.min(),
      lockedSince: lockedSince,
      lockedUntil: lockedUntil, lockLevel: lockLevel, isDisabled: disabledSince != nil)
  }

  /// Failures before this time do not count for a lock that begins now.
  var countsFrom: Timestamp {
    let cutoff = limit.cutoff(at: now)
    guard let lockedUntil, lockedUntil <= now else { return cutoff }
    return max(cutoff, lockedUntil)
  }

  /// Removes events that have left the window, and converts attempts of dead processes to failures, so that this is
  /// done only once.
  mutating func tidy(_ rows: some SQLTransaction) throws {
    guard expired > 0 || dead > 0 else { return }
    if expired > 0, let window = limit.window {
      try rows.run("DELETE FROM tally WHERE counter = ?1 AND at <= ?2", [key, SQLValue(now - window)])
      counted -= expired
      expired = 0
    }
    if dead > 0 {
      let unsettledBefore = SQLValue(now - CounterState.settlementTimeout)
      try rows.run(
        "INSERT INTO tally (counter, at, reservation) SELECT counter, at, reservation FROM pending WHERE counter = ?1 AND at <= ?2 AND at > ?3",
        [key, unsettledBefore, SQLValue(limit.cutoff(at: now))])
      try rows.run("DELETE FROM pending WHERE counter = ?1 AND at <= ?2", [key, unsettledBefore])
      counted += dead
      dead = 0
      let first = try rows.row(
        "SELECT (SELECT min(at) FROM tally WHERE counter = ?1), (SELECT min(at) FROM pending WHERE counter = ?1)", [key]
      )
      oldest = try first?.optionalMoment(0)
      oldestPending = try first?.optionalMoment(1)
      remember(until: limit.window.map { now + $0 })
    }
    try save(rows)
  }

  /// Counts a settled attempt at its own time.
  mutating func count(_ reservation: ReservationID, at moment: Timestamp, _ rows: some SQLTransaction) throws {
    if let window = limit.window, moment + window <= now { return }
    try rows.run(
      "INSERT INTO tally (counter, at, reservation) VALUES (?1, ?2, ?3)",
      [key, SQLValue(moment), .bytes(reservation.bytes)])
    counted += 1
    oldest = min(oldest ?? moment, moment)
    remember(until: limit.window.map { moment + $0 })
    try save(rows)
  }

  /// Removes an attempt that is being judged, unless it was unsettled for too long.
  static let takePending = "DELETE \(pending)"

  private static let pending = "FROM pending WHERE counter = ?1 AND reservation = ?2 AND at > ?3"
  private static let copyPending =
    "INSERT INTO tally (counter, at, reservation) SELECT counter, at, reservation \(pending)"
  private static let addPending = """
    INSERT INTO counter (key, provider, name, counted, oldest, lock_level, expires_at)
    SELECT counter, CAST(?4 AS TEXT), CAST(?5 AS TEXT), 1, at, 0, coalesce(at + CAST(?6 AS BIGINT), ?7) \(pending)
    ON CONFLICT (key) DO UPDATE SET
      counted = counter.counted + 1,
      oldest = CASE WHEN counter.oldest < excluded.oldest THEN counter.oldest ELSE excluded.oldest END,
      expires_at = CASE WHEN counter.expires_at > excluded.expires_at THEN counter.expires_at ELSE excluded.expires_at END
    """

  /// Counts an attempt that is being judged at its own time, like `count`, without reading the counter. Its pending row
  /// is left to the caller.
  static func countPending(
    _ reservation: ReservationID, of limit: ResolvedLimit, at now: Timestamp, _ rows: some SQLTransaction
  ) throws {
    let counting: [SQLValue] = [
      .bytes(limit.counter), .bytes(reservation.bytes),
      SQLValue(max(now - CounterState.settlementTimeout, limit.cutoff(at: now))),
    ]
    try rows.run(copyPending, counting)
    try rows.run(
      addPending,
      counting + [
        .text(limit.provider.rawValue), .text(limit.name), limit.window.map { .integer($0.wholeMilliseconds) } ?? .null,
        SQLValue(Timestamp.never),
      ])
  }

  /// Begins a lock. The events are removed, so that counting restarts from zero after the lock.
  mutating func begin(_ lock: Lock, _ rows: some SQLTransaction) throws {
    try clear(rows)
    lockedSince = lock.since
    lockedUntil = lock.until
    lockLevel = lock.level
    // Escalation needs the lock for another window.
    remember(until: limit.window.map { lock.until + $0 })
    try save(rows)
  }

  /// Disables what the counter counts.
  mutating func disable(_ rows: some SQLTransaction) throws {
    try clear(rows)
    disabledSince = now
    remember(until: nil)
    try save(rows)
  }

  /// Ends the lock or the disabling and deletes the events, because what they count was replaced. The lock still counts
  /// for escalation.
  mutating func forget(at now: Timestamp, _ rows: some SQLTransaction) throws {
    guard counted > 0 || live + dead > 0 || disabledSince != nil || (lockedUntil.map { now < $0 } ?? false) else {
      return
    }
    try clear(rows)
    try FailedAttemptRows.forget(limit.counter, rows)
    disabledSince = nil
    if let until = lockedUntil, now < until { lockedUntil = now }
    try save(rows)
  }

  /// Deletes the failures after a success. Escalation restarts.
  mutating func reset(_ rows: some SQLTransaction) throws {
    let isOver = lockedUntil.map { $0 <= now } ?? false
    guard counted > 0 || dead > 0 || isOver else { return }
    try rows.run("DELETE FROM tally WHERE counter = ?1", [key])
    try rows.run(
      "DELETE FROM pending WHERE counter = ?1 AND at <= ?2", [key, SQLValue(now - CounterState.settlementTimeout)])
    try FailedAttemptRows.forget(limit.counter, rows)
    counted = 0
    expired = 0
    dead = 0
    oldest = nil
    if isOver { (lockedSince, lockedUntil, lockLevel, expiresAt) = (nil, nil, 0, now) }
    try save(rows)
  }

  private mutating func clear(_ rows: some SQLTransaction) throws {
    try rows.run("DELETE FROM tally WHERE counter = ?1", [key])
    try rows.run("DELETE FROM pending WHERE counter = ?1", [key])
    (counted, expired, live, dead) = (0, 0, 0, 0)
    oldest = nil
    oldestPending = nil
  }

  private mutating func remember(until end: Timestamp?) {
    expiresAt = max(expiresAt, end ?? Timestamp(milliseconds: .max))
  }

  private func save(_ rows: some SQLTransaction) throws {
    try rows.run(
      """
      INSERT INTO counter (key, provider, name, counted, oldest, locked_since, locked_until, lock_level, disabled_since, expires_at)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
      ON CONFLICT (key) DO UPDATE SET
        counted = excluded.counted, oldest = excluded.oldest, locked_since = excluded.locked_since, locked_until = excluded.locked_until,
        lock_level = excluded.lock_level, disabled_since = excluded.disabled_since, expires_at = excluded.expires_at
      """,
      [
        key, .text(limit.provider.rawValue), .text(limit.name), SQLValue(counted), SQLValue(oldest),
        SQLValue(lockedSince), SQLValue(lockedUntil),
        SQLValue(lockLevel), SQLValue(disabledSince), SQLValue(expiresAt),
      ])
  }
}

extension ResolvedLimit {
  /// Events at or before this time are outside the window.
  fileprivate func cutoff(at now: Timestamp) -> Timestamp { window.map { now - $0 } ?? Timestamp(milliseconds: .min) }
}
