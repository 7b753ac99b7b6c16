import MoongateCore

extension Settlement {
  /// Ends the reservation at each of its counters.
  ///
  /// Counters are left unchanged if the reservation is gone (because a lock began or an operator lifted one), or if it
  /// was unsettled for so long that it already counts as a failure. A late or repeated settlement therefore has no
  /// effect.
  /// - Parameters:
  ///   - stored: the rows of the `judged` counters, possibly including others.
  ///   - found: the results of `reads`.
  /// - Returns: the locks that it began.
  func settle<Transaction: SQLTransaction>(
    _ stored: [Transaction.Row], _ found: ArraySlice<[Transaction.Row]>, _ rows: Transaction
  ) throws -> [LockBegun] {
    for limit in sorted where !isKept(limit) { try rows.run(Self.take, taking(limit)) }
    let judged = judged
    let counters = try Ledger(judged, stored: stored, found: found.dropFirst(judged.count), at: now, rows).counters
    var locks: [LockBegun] = []
    for ((limit, var counter), taken) in zip(zip(judged, counters), found) {
      guard let moment = try taken.first?.moment(0) else { continue }
      if case .success = outcome, limit.counts == .consecutiveFailures {
        try counter.reset(rows)
        continue
      }
      try counter.tidy(rows)
      try counter.count(reservation, at: moment, rows)
      guard case .failure = outcome else { continue }
      if let attempt = attempts.first(where: { $0.counter == limit.counter }) {
        try FailedAttemptRows.put(attempt, of: reservation, forgettingBefore: counter.countsFrom, rows)
      }
      switch counter.state.afterFailure(limit, at: now) {
      case .lock(let lock):
        try counter.begin(lock, rows)
        locks.append(LockBegun(limit: limit, until: lock.until))
      case .disable:
        try counter.disable(rows)
        locks.append(LockBegun(limit: limit, until: nil))
      default: break
      }
    }
    if let timer {
      switch outcome {
      case .success, .failure: try timer.confirm(reservation, rows)
      case .refund, .refundPerson: try timer.restore(reservation, at: now, rows)
      }
    }
    return locks
  }

  private var sorted: [ResolvedLimit] { limits.sorted { $0.counter.lexicographicallyPrecedes($1.counter) } }

  /// The limits whose counters the outcome changes.
  var judged: [ResolvedLimit] { sorted.filter(isKept) }

  /// The reads of a settlement: its attempt is removed from the pending ones of the judged counters, then the rest is
  /// read.
  var reads: [SQLRead] {
    let judged = judged
    return judged.map { SQLRead("\(Self.take) RETURNING at", taking($0)) } + Ledger.reads(judged, nil, at: now)
  }

  private static let take = "DELETE FROM pending WHERE counter = ?1 AND reservation = ?2 AND at > ?3"

  private func taking(_ limit: ResolvedLimit) -> [SQLValue] {
    [.bytes(limit.counter), .bytes(reservation.bytes), SQLValue(now - CounterState.settlementTimeout)]
  }

  /// Whether the outcome changes the limit's counter.
  private func isKept(_ limit: ResolvedLimit) -> Bool {
    switch outcome {
    case .success: limit.counts == .all || limit.counts == .consecutiveFailures
    case .refundPerson: !limit.key.isPersonal
    case .failure: true
    case .refund: false
    }
  }
}
