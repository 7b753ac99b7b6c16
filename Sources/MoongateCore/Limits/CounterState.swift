/// The state of one counter at one moment, and the rules by which limits judge it. All stores and the simulator use
/// these functions; a store only counts rows and applies the results.
///
/// The life of a counter:
/// ```
///            reserve                 settle(failure), full, lock = {…}
///   open ─────────────▶ open(+1) ─────────────────────────────────────▶ locked(level)
///    ▲                     │ settle(success): uncounted unless `all`      │ at `until`, or lifted
///    └─────────────────────┴──────────────────────────── from zero ◀─────┘
/// ```
package struct CounterState: Sendable, Equatable {
  /// Unsettled reservations in the window that are younger than `CounterState.settlementTimeout`.
  package var pending: Int
  /// Counted events in the window, including reservations whose process died, at the time of the reservation.
  package var settled: Int
  /// The time of the oldest event in the window, pending or settled.
  package var oldest: Timestamp?
  /// The start of the last lock, which may be over.
  package var lockedSince: Timestamp?
  package var lockedUntil: Timestamp?
  /// The number of consecutive locks, minus one.
  package var lockLevel: Int
  package var isDisabled: Bool

  /// A reservation that is unsettled for this long belongs to a process that died. It counts as a failure.
  package static let settlementTimeout: Duration = .seconds(10)

  /// More than five parameters: one for each field.
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

  /// Whether the counter is locked. A lock is over at `until`.
  package func isLocked(at now: Timestamp) -> Bool { lockedUntil.map { now < $0 } ?? false }

  /// The judgement of a new attempt.
  package func judge(_ limit: ResolvedLimit, at now: Timestamp) -> CounterJudgement {
    if isDisabled { return .refuse(.disabled) }
    if let lockedUntil, now < lockedUntil { return .refuse(.locked(until: lockedUntil)) }
    if used < limit.max { return .open(place: used + 1) }
    if settled < limit.max { return .wait }
    // Full but not locked: the numbers were changed, or the process that filled it died.
    if limit.disables { return .disable }
    if let next = nextLock(limit, at: now) { return .lock(next) }
    guard let end = opensAt(limit, at: now) else { return .refuse(.disabled) }
    return .refuse(.full(until: end))
  }

  /// When a full counter admits an attempt again: at the end of its lock, or when its oldest event leaves the window;
  /// nil if neither happens.
  package func opensAt(_ limit: ResolvedLimit, at now: Timestamp) -> Timestamp? {
    if isLocked(at: now) { return lockedUntil }
    guard let window = limit.window, let oldest else { return nil }
    return oldest + window
  }

  /// What follows from a failure that was just settled and is included in `self`.
  package func afterFailure(_ limit: ResolvedLimit, at now: Timestamp) -> CounterJudgement? {
    guard settled >= limit.max, !isLocked(at: now), !isDisabled else { return nil }
    if limit.disables { return .disable }
    return nextLock(limit, at: now).map(CounterJudgement.lock)
  }

  /// The lock that would begin now. Escalation restarts once `window` has passed since the last lock ended.
  package func nextLock(_ limit: ResolvedLimit, at now: Timestamp) -> Lock? {
    guard !limit.lock.isEmpty else { return nil }
    let startsAnew = lockedUntil.map { ended in limit.window.map { now >= ended + $0 } ?? false } ?? true
    let level = startsAnew ? 0 : min(lockLevel + 1, limit.lock.count - 1)
    return Lock(since: now, until: now + limit.lock[level], level: level)
  }
}

/// A new lock.
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

/// The result of judging a counter.
package enum CounterJudgement: Sendable, Equatable {
  case open(place: Int)
  /// Full, but only because of attempts that are still being judged.
  case wait
  case refuse(ReservationRefusal.Reason)
  /// Refuse, begin this lock, and remove the counter's events.
  case lock(Lock)
  /// Refuse, and disable the credential or identifier.
  case disable
}
