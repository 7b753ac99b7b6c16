import MoongateCore

/// The current state of limits' counters and of a timer. Read in one round trip, unless events have left a window.
struct Ledger {
  /// In the order of the limits.
  var counters: [CounterRow]
  /// nil if no timer was requested or it has never run.
  let running: TimerRow?

  init(_ limits: [ResolvedLimit], _ timer: ResendTimer?, at now: Timestamp, _ rows: some SQLTransaction) throws {
    let (stored, found) = try CounterRow.rows(limits, Self.reads(limits, timer, at: now), rows)
    try self.init(limits, stored: stored, found: found, at: now, rows)
  }

  /// The reads for everything except the counters' rows.
  static func reads(_ limits: [ResolvedLimit], _ timer: ResendTimer?, at now: Timestamp) -> [SQLRead] {
    limits.map { CounterRow.readPending($0, at: now) } + (timer.map { [TimerRow.read($0.key)] } ?? [])
  }

  /// - Parameters:
  ///   - stored: rows of counters, possibly including others.
  ///   - found: the results of `reads`.
  init<Transaction: SQLTransaction>(
    _ limits: [ResolvedLimit], stored: [Transaction.Row], found: ArraySlice<[Transaction.Row]>, at now: Timestamp,
    _ rows: Transaction
  ) throws {
    var found = found
    counters = try limits.map { limit in
      try CounterRow(
        limit, at: now, stored: stored.first { try $0.bytes(0) == limit.counter }, pending: found.removeFirst().first)
    }
    running = try found.first?.first.map { try TimerRow($0) }
    let aged = counters.indices.filter { counters[$0].hasAged }
    if aged.isEmpty { return }
    let tallies = try rows.rows(aged.map { counters[$0].readTally })
    for (index, tally) in zip(aged, tallies) { if let row = tally.first { try counters[index].age(row) } }
  }
}
