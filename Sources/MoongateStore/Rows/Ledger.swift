import MoongateCore
import Synchronization

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
    try self.init(limits, stored: stored, found: found, at: now)
    let aged = agedCounters
    if aged.isEmpty { return }
    let tallies = try rows.rows(aged.map { counters[$0].readTally })
    for (index, tally) in zip(aged, tallies) { if let row = tally.first { try counters[index].age(row) } }
  }

  /// The state before events that have left a window are subtracted.
  private init<Row: SQLRow>(
    _ limits: [ResolvedLimit], stored: [Row], found: ArraySlice<[Row]>, at now: Timestamp
  ) throws {
    var found = found
    counters = try limits.map { limit in
      try CounterRow(
        limit, at: now, stored: CounterRow.row(of: limit, in: stored), pending: found.removeFirst().first)
    }
    running = try found.first?.first.map { try TimerRow($0) }
  }

  private var agedCounters: [Int] { counters.indices.filter { counters[$0].hasAged } }

  /// - Parameter timer: the timer that was requested.
  func state(with timer: ResendTimer?, at now: Timestamp) -> LedgerState {
    let closed = timer.flatMap { timer in running.flatMap { $0.isClosed(to: timer, at: now) ? $0 : nil } }
    return LedgerState(counters: counters.map(\.state), resendAt: closed?.resendAt)
  }

  /// The state from reads at the end of a transaction; nil if it takes another read.
  fileprivate static func state<Row: SQLRow>(_ query: LedgerQuery, _ rows: [[Row]], at now: Timestamp)
    -> LedgerState?
  {
    var found = rows[...]
    let stored = query.limits.isEmpty ? [] : found.popLast() ?? []
    guard let ledger = try? Ledger(query.limits, stored: stored, found: found, at: now), ledger.agedCounters.isEmpty
    else { return nil }
    return ledger.state(with: query.timer, at: now)
  }
}

extension LedgerQuery {
  /// Reads the state at the end of the transaction.
  func read(into result: LedgerStateAtCommit, at now: Timestamp, _ rows: some SQLTransaction) throws {
    // In PostgreSQL, each statement sees the latest state. In this order, an attempt that is settled in between is
    // counted twice instead of never.
    let reads = Ledger.reads(limits, timer, at: now) + (limits.isEmpty ? [] : [CounterRow.read(limits)])
    guard !reads.isEmpty else { return result.value = LedgerState(counters: [], resendAt: nil) }
    try rows.rows(atEnd: reads) { found in result.value = Ledger.state(self, found, at: now) }
  }
}

/// A state that is known once a transaction is committed.
final class LedgerStateAtCommit: Sendable {
  private let state = Mutex<LedgerState?>(nil)

  var value: LedgerState? {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}
