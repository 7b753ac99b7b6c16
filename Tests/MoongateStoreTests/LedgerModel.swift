import MoongateCore

/// The rules of limits in their simplest form: every attempt is kept in a list, which is searched each time. Shares no
/// code with the store or with `CounterState`.
struct LedgerModel {
  private struct Try {
    let id: ReservationID
    let at: Int64
    var isSettled = false

    func isPending(_ now: Int64) -> Bool { !isSettled && now < at + 10_000 }
  }

  private struct Counter {
    var tries: [Try] = []
    /// Start, end and level of each lock.
    var locks: [(since: Int64, until: Int64, level: Int)] = []
    var isDisabled = false
  }

  enum Answer: Equatable {
    case reserved([Int])
    case wait
    case disabled
    case until(Int64)
    /// No answer of the model: its requests name no barring limits and no flow.
    case barred
  }

  private var counters: [[UInt8]: Counter] = [:]

  private func inWindow(_ limit: ResolvedLimit, _ now: Int64) -> [Try] {
    counters[limit.counter, default: Counter()].tries.filter { one in
      limit.window.map { now < one.at + $0.wholeMilliseconds } ?? true
    }
  }

  private mutating func lock(_ limit: ResolvedLimit, _ now: Int64) -> Int64? {
    guard !limit.lock.isEmpty else { return nil }
    var level = 0
    if let last = counters[limit.counter]?.locks.last {
      let isOver = limit.window.map { now - last.until >= $0.wholeMilliseconds } ?? false
      level = isOver ? 0 : min(last.level + 1, limit.lock.count - 1)
    }
    let until = now + limit.lock[level].wholeMilliseconds
    counters[limit.counter, default: Counter()].locks.append((now, until, level))
    counters[limit.counter]?.tries = []
    return until
  }

  mutating func reserve(_ id: ReservationID, _ limits: [ResolvedLimit], at now: Int64) -> Answer {
    var places: [Int] = []
    var waits = false
    var isDisabled = false
    var until: [Int64] = []
    for limit in limits {
      let counter = counters[limit.counter, default: Counter()]
      let tries = inWindow(limit, now)
      if counter.isDisabled {
        isDisabled = true
      } else if let lock = counter.locks.last, now < lock.until {
        until.append(lock.until)
      } else if tries.count < limit.max {
        places.append(tries.count + 1)
      } else if tries.contains(where: { $0.isPending(now) }), tries.count(where: { !$0.isPending(now) }) < limit.max {
        waits = true
      } else if limit.disables {
        counters[limit.counter, default: Counter()].isDisabled = true
        counters[limit.counter]?.tries = []
        isDisabled = true
      } else if let end = lock(limit, now) {
        until.append(end)
      } else if let window = limit.window, let oldest = tries.map(\.at).min() {
        until.append(oldest + window.wholeMilliseconds)
      } else {
        isDisabled = true
      }
    }
    if isDisabled { return .disabled }
    if let last = until.max() { return .until(last) }
    if waits { return .wait }
    for limit in limits { counters[limit.counter, default: Counter()].tries.append(Try(id: id, at: now)) }
    return .reserved(places)
  }

  mutating func settle(_ id: ReservationID, _ outcome: Settlement.Outcome, _ limits: [ResolvedLimit], at now: Int64) {
    for limit in limits {
      guard let index = counters[limit.counter]?.tries.firstIndex(where: { $0.id == id && $0.isPending(now) }) else {
        continue
      }
      let stays =
        switch outcome {
        case .success: limit.counts == .all
        case .failure: true
        case .refund: false
        case .refundPerson: ![.phone, .email, .identifier, .account].contains(limit.key)
        }
      if stays {
        counters[limit.counter]?.tries[index].isSettled = true
      } else {
        counters[limit.counter]?.tries.remove(at: index)
      }
      if case .success = outcome, limit.counts == .consecutiveFailures {
        counters[limit.counter]?.tries.removeAll { !$0.isPending(now) }
        // A new streak starts here.
        if let last = counters[limit.counter]?.locks.last, last.until <= now { counters[limit.counter]?.locks = [] }
      }
      if case .failure = outcome, inWindow(limit, now).count(where: { !$0.isPending(now) }) >= limit.max {
        if limit.disables {
          counters[limit.counter]?.isDisabled = true
          counters[limit.counter]?.tries = []
        } else {
          _ = lock(limit, now)
        }
      }
    }
  }

  mutating func lift(_ limit: ResolvedLimit, at now: Int64) -> Bool {
    guard var counter = counters[limit.counter] else { return false }
    let stands = counter.locks.last.map { now < $0.until } ?? false
    guard stands || counter.isDisabled else { return false }
    if stands { counter.locks[counter.locks.count - 1].until = now }
    counter.isDisabled = false
    counter.tries = []
    counters[limit.counter] = counter
    return true
  }

  /// The counts of pending and settled attempts, the end of a current lock, and whether the counter is disabled.
  func look(_ limit: ResolvedLimit, at now: Int64) -> (pending: Int, settled: Int, until: Int64?, isDisabled: Bool) {
    let counter = counters[limit.counter, default: Counter()]
    let tries = inWindow(limit, now)
    let pending = tries.count { $0.isPending(now) }
    return (
      pending, tries.count - pending, counter.locks.last.flatMap { now < $0.until ? $0.until : nil }, counter.isDisabled
    )
  }
}
