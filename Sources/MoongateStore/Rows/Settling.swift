import MoongateCore

extension Settlement {
  /// Ends the reservation at each of its counters.
  ///
  /// A counter where it is gone (a lock began, an operator lifted one) or has been unsettled for so long that it counts
  /// as a failure already is left as it is: a settlement that comes late or twice changes nothing.
  /// - Parameter holding: what the transaction takes hold of on the way.
  /// - Returns: the locks that it began.
  func settle(_ holding: Holding, _ rows: some SQLTransaction) throws -> [LockBegun] {
    let sorted = limits.sorted { $0.counter.lexicographicallyPrecedes($1.counter) }
    let judged = sorted.filter(isKept)
    // Out of those that are being judged; then what is left is looked at.
    let takes = sorted.map { limit in
      SQLRead(
        "DELETE FROM pending WHERE counter = ?1 AND reservation = ?2 AND at > ?3 RETURNING at",
        [.bytes(limit.counter), .bytes(reservation.bytes), SQLValue(now - CounterState.patience)])
    }
    let found = try holding.rows(before: takes + Ledger.reads(judged, nil, at: now), rows)
    var counters = try Ledger(judged, found: found[takes.count...], at: now, rows).counters[...]
    var locks: [LockBegun] = []
    for (limit, taken) in zip(sorted, found) {
      guard isKept(limit), var counter = counters.popFirst(), let moment = try taken.first?.moment(0) else { continue }
      if case .success = outcome, limit.counts == .consecutiveFailures {
        try counter.reset(rows)
        continue
      }
      try counter.tidy(rows)
      try counter.keep(reservation, at: moment, rows)
      guard case .failure = outcome else { continue }
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

  /// Whether the outcome changes what the limit's counter keeps.
  private func isKept(_ limit: ResolvedLimit) -> Bool {
    switch outcome {
    case .success: limit.counts == .all || limit.counts == .consecutiveFailures
    case .refundPerson: !limit.key.isPersonal
    case .failure: true
    case .refund: false
    }
  }
}
