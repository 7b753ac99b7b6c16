import MoongateCore

/// The counters of some limits, and a timer, as they stand: read together, in one round trip unless events have left a window.
struct Ledger {
  /// In the order of the limits.
  var counters: [CounterRow]
  /// nil where no timer was asked for, or none has run.
  let running: TimerRow?

  init(_ limits: [ResolvedLimit], _ timer: ResendTimer?, at now: Timestamp, _ holding: Holding, _ rows: some SQLTransaction) throws {
    try self.init(limits, found: try holding.rows(before: Self.reads(limits, timer, at: now), rows)[...], at: now, rows)
  }

  /// What reads them.
  static func reads(_ limits: [ResolvedLimit], _ timer: ResendTimer?, at now: Timestamp) -> [SQLRead] {
    var reads: [SQLRead] = []
    if !limits.isEmpty {
      reads.reserveCapacity(limits.count + 2)
      reads.append(CounterRow.read(limits))
      for limit in limits { reads.append(CounterRow.readPending(limit, at: now)) }
    }
    if let timer { reads.append(TimerRow.read(timer.key)) }
    return reads
  }

  /// - Parameter found: what `reads` have found.
  init<Transaction: SQLTransaction>(
    _ limits: [ResolvedLimit], found: ArraySlice<[Transaction.Row]>, at now: Timestamp, _ rows: Transaction
  ) throws {
    var found = found
    counters = []
    if !limits.isEmpty {
      let stored = found.removeFirst()
      counters.reserveCapacity(limits.count)
      for limit in limits {
        counters.append(
          try CounterRow(limit, at: now, stored: stored.first { try $0.bytes(0) == limit.counter }, pending: found.removeFirst().first))
      }
    }
    running = try found.first?.first.map { try TimerRow($0) }
    let aged = counters.indices.filter { counters[$0].hasAged }
    if aged.isEmpty { return }
    let tallies = try rows.rows(aged.map { counters[$0].readTally })
    for (index, tally) in zip(aged, tallies) { if let row = tally.first { try counters[index].age(row) } }
  }
}
