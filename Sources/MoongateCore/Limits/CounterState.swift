/// What a store knows of one counter at one moment, and the rules of limits over it. All stores and the simulator judge
/// by these same few functions; a store only counts rows and keeps what they answer.
///
/// The life of a counter:
/// ```
///            reserve                 settle(failure), full, lock = {…}
///   open ─────────────▶ open(+1) ─────────────────────────────────────▶ locked(level)
///    ▲                     │ settle(success): off again unless `all`        │ at `until`, or lifted
///    └─────────────────────┴──────────────────────────── from zero ◀───────┘
/// ```
package struct CounterState: Sendable, Equatable {
  /// Reservations in the window that are not settled, younger than `CounterState.patience`.
  package var pending: Int
  /// Events in the window that stay counted; reservations whose process died count here, at their own time.
  package var settled: Int
  /// The oldest event in the window, pending or settled.
  package var oldest: Timestamp?
  /// The last lock, over or not.
  package var lockedSince: Timestamp?
  package var lockedUntil: Timestamp?
  /// How many locks, less one, there have been in a row.
  package var lockLevel: Int
  package var isDisabled: Bool

  /// A reservation that is unsettled for so long belongs to a process that died; it counts as a failure.
  package static let patience: Duration = .seconds(10)

  package init(
    pending: Int = 0, settled: Int = 0, oldest: Timestamp? = nil, lockedSince: Timestamp? = nil,
    lockedUntil: Timestamp? = nil, lockLevel: Int = 0,
    isDisabled: Bool = false
  ) {
    self.pending = pending
    self.settled = settled
    self.oldest = oldest
    self.lockedSince = lockedSince
    self.lockedUntil = lockedUntil
    self.lockLevel = lockLevel
    self.isDisabled = isDisabled
  }

  package var used: Int { pending + settled }

  /// Whether a lock stands. At `until` it is over.
  package func isLocked(at now: Timestamp) -> Bool { lockedUntil.map { now < $0 } ?? false }

  /// What a new try finds.
  package func judge(_ limit: ResolvedLimit, at now: Timestamp) -> CounterJudgement {
    if isDisabled { return .refuse(.disabled) }
    if let lockedUntil, now < lockedUntil { return .refuse(.locked(until: lockedUntil)) }
    if used < limit.max { return .open(place: used + 1) }
    if settled < limit.max { return .wait }
    // Full already, and without its lock: the numbers were changed, or the process that filled it died.
    if limit.disables { return .disable }
    if let next = nextLock(limit, at: now) { return .lock(next) }
    guard let window = limit.window, let oldest else { return .refuse(.disabled) }
    return .refuse(.full(until: oldest + window))
  }

  /// What follows from a failure that has just been settled. `self` has it counted.
  package func afterFailure(_ limit: ResolvedLimit, at now: Timestamp) -> CounterJudgement? {
    guard settled >= limit.max, !isLocked(at: now), !isDisabled else { return nil }
    if limit.disables { return .disable }
    return nextLock(limit, at: now).map(CounterJudgement.lock)
  }

  /// The lock that would begin now. Escalation starts anew when `window` has passed since the last lock ended.
  package func nextLock(_ limit: ResolvedLimit, at now: Timestamp) -> Lock? {
    guard !limit.lock.isEmpty else { return nil }
    let startsAnew = lockedUntil.map { ended in limit.window.map { now >= ended + $0 } ?? false } ?? true
    let level = startsAnew ? 0 : min(lockLevel + 1, limit.lock.count - 1)
    return Lock(since: now, until: now + limit.lock[level], level: level)
  }
}

/// A lock that begins.
package struct Lock: Sendable, Equatable {
  package let since: Timestamp
  package let until: Timestamp
  package let level: Int

  package init(since: Timestamp, until: Timestamp, level: Int) {
    self.since = since
    self.until = until
    self.level = level
  }
}

/// What the rules say of one counter.
package enum CounterJudgement: Sendable, Equatable {
  case open(place: Int)
  /// Filled only by tries that are being judged.
  case wait
  case refuse(ReservationRefusal.Reason)
  /// Refuse, and begin this lock; the counter's events go.
  case lock(Lock)
  /// Refuse, and turn the credential or identifier off.
  case disable
}
