import MoongateCore

extension ReservationRequest {
  /// Charges one attempt against all limits and the timer, or against none. The transaction has locked its counters.
  ///
  /// Attack: a thousand parallel guesses. Each sees the reservations before it, so exactly as many are accepted as the
  /// smallest limit allows.
  func reserve(_ rows: some SQLTransaction) throws -> ReservationResult {
    try RowLocks(limits, timer).take(rows)
    let more = [flow.map { FlowRows.readVersion($0.id) }, account.map { AccountRows.read($0, rows.dialect) }]
      .compactMap(\.self)
    let (stored, found) = try CounterRow.rows(limits + barring, Ledger.reads(limits, timer, at: now) + more, rows)
    var rest = found.suffix(more.count)
    if let flow, try rest.removeFirst().first?.count(0) != flow.number { return .flowChanged }
    var isDisabled = false
    for limit in barring {
      let state = try CounterRow(limit, at: now, stored: CounterRow.row(of: limit, in: stored), pending: nil).state
      if state.isLocked(at: now) || state.isDisabled && !(hidesDisabled && limit.disablesPerson) { return .barred }
      if state.isDisabled { isDisabled = true }
    }
    var ledger = try Ledger(limits, stored: stored, found: found.dropLast(more.count), at: now, rows)
    let account = try rest.first.flatMap { try AccountReads.account($0) }
    var places = [Int](repeating: 0, count: limits.count)
    var refusal: ReservationRefusal?
    var mustWait = false
    // In sorted order, so that all stores choose the same one of several equally severe refusals.
    for index in limits.indices.sorted(by: { limits[$0].counter.lexicographicallyPrecedes(limits[$1].counter) }) {
      let limit = limits[index]
      try ledger.counters[index].tidy(rows)
      switch ledger.counters[index].state.judge(limit, at: now) {
      case .open(let place): places[index] = place
      case .wait: mustWait = true
      case .refuse(let reason): refusal = .moreSevere(refusal, ReservationRefusal(reason: reason, limit: limit))
      case .lock(let lock):
        try ledger.counters[index].begin(lock, rows)
        refusal = .moreSevere(refusal, ReservationRefusal(reason: .locked(until: lock.until), limit: limit))
      case .disable:
        try ledger.counters[index].disable(rows)
        refusal = .moreSevere(refusal, ReservationRefusal(reason: .disabled, limit: limit))
      }
    }
    if let timer, let running = ledger.running, running.isClosed(to: timer, at: now) {
      refusal = .moreSevere(refusal, ReservationRefusal(reason: .timer(until: running.resendAt), limit: nil))
    }
    if let refusal { return .refused(refusal) }
    if mustWait { return .filledByPending }
    if countsAtOnce {
      for index in limits.indices { try ledger.counters[index].count(id, at: now, rows) }
    } else if !limits.isEmpty {
      try rows.run(
        Self.insert[limits.count],
        [.bytes(id.bytes), SQLValue(now)]
          + limits.flatMap { [.bytes($0.counter), SQLValue($0.window.map { now + $0 } ?? .never)] })
    }
    try timer?.advance(from: ledger.running, by: id, at: now, rows)
    return .reserved(places: places, account: account, isDisabled: isDisabled)
  }

  private static let insert = CountedStatement { count in
    let values = (0..<count).map { "(?\($0 * 2 + 3), ?1, ?2, ?\($0 * 2 + 4))" }.joined(separator: ", ")
    return "INSERT INTO pending (counter, reservation, at, expires_at) VALUES \(values)"
  }
}

extension Timestamp {
  /// Later than any other time.
  static let never = Timestamp(milliseconds: .max)
}

extension ReservationRefusal {
  /// The more severe refusal: disabled first, then the one that lasts longest; if equal, the first.
  static func moreSevere(_ first: Self?, _ second: Self) -> Self {
    guard let first else { return second }
    return first.reason.end ?? .never < second.reason.end ?? .never ? second : first
  }
}
