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
    for limit in sorted {
      let effect = effect(on: limit)
      if effect == .judge { continue }
      if effect == .count { try CounterRow.countPending(reservation, of: limit, at: now, rows) }
      try rows.run(CounterRow.takePending, pendingParameters(of: limit))
    }
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

  /// The limits whose counters must be read before they are changed.
  var judged: [ResolvedLimit] { sorted.filter { effect(on: $0) == .judge } }

  /// The reads of a settlement: its attempt is removed from the pending ones of the judged counters, then the rest is
  /// read.
  var reads: [SQLRead] {
    let judged = judged
    return judged.map { SQLRead("\(CounterRow.takePending) RETURNING at", pendingParameters(of: $0)) }
      + Ledger.reads(judged, nil, at: now)
  }

  private func pendingParameters(of limit: ResolvedLimit) -> [SQLValue] {
    [.bytes(limit.counter), .bytes(reservation.bytes), SQLValue(now - CounterState.settlementTimeout)]
  }

  /// What happens to a counter.
  private enum Effect {
    /// The reservation is removed.
    case none
    /// The reservation is counted. Nothing follows from it, so nothing is read.
    case count
    /// The counter is read: it may begin a lock, or is reset.
    case judge
  }

  private func effect(on limit: ResolvedLimit) -> Effect {
    switch outcome {
    case .success:
      switch limit.counts {
      case .all: .count
      case .failures: .none
      case .consecutiveFailures: .judge
      }
    case .refundPerson: limit.key.isPersonal ? .none : .count
    case .failure: .judge
    case .refund: .none
    }
  }
}
