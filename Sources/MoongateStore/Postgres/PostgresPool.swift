import Dispatch
import Foundation
import MoongateCore
import Synchronization

/// A bounded pool of connections, each with its own thread, and a bounded queue.
///
/// Work goes to the connection that was used last, so that the others can stay idle. During an outage, work is refused
/// at once, and one thread retries the connection at increasing intervals of at most a second.
///
/// Attack: an unlimited number of guesses at one number. Each waits for that number's counter and occupies a connection
/// meanwhile. If none were left, changes of sessions could not be polled, and no cache could be trusted. Reads
/// therefore go first, and one connection is never used for writes.
final class PostgresPool: Sendable {
  private struct State {
    /// Waiting work, in the order of arrival.
    var reads: [any PostgresWork] = []
    var writes: [any PostgresWork] = []
    /// The number of connections that are writing.
    var writing = 0
    let mostWriting: Int
    /// Workers with an idle connection; the last one was used last.
    var idle: [PostgresWorker] = []
    /// The number of threads, and of those with a connection.
    var workers = 0
    var connected = 0
    /// Why no work can be done while there is no connection.
    var outage: StoreFault?
    /// The worker that tries to connect during an outage.
    var reconnectingWorker: PostgresWorker?
    /// Increases with each outage. Connections of an earlier generation are not used any more.
    var connectionGeneration = 0
    /// No further connection is opened before this time, because the last attempt failed while others were connected.
    var mayGrowAt = ContinuousClock.now
    var isOpen = true
    var isSweeping = false

    init(pool: Int) { mostWriting = max(1, pool - 1) }

    var waiting: Int { reads.count + writes.count }

    private var mayWrite: Bool { writing < mostWriting }
    func mayBegin(_ work: any PostgresWork) -> Bool { !work.writes || mayWrite }

    mutating func begins(_ work: any PostgresWork) { if work.writes { writing += 1 } }
    mutating func ended(_ work: any PostgresWork) { if work.writes { writing -= 1 } }

    /// Removes and returns the next work that may begin.
    mutating func popFirst() -> (any PostgresWork)? {
      if !reads.isEmpty { return reads.removeFirst() }
      return writes.isEmpty || !mayWrite ? nil : writes.removeFirst()
    }

    mutating func append(_ work: any PostgresWork) {
      if work.writes { writes.append(work) } else { reads.append(work) }
    }

    /// Removes and returns all waiting work.
    mutating func popAll() -> [any PostgresWork] {
      defer { (reads, writes) = ([], []) }
      return reads + writes
    }

    /// Assigns waiting work to idle workers. Needed when a write has ended, because its own worker may take other work.
    mutating func matches() -> [(PostgresWorker, any PostgresWork)] {
      var matches: [(PostgresWorker, any PostgresWork)] = []
      while let worker = idle.last, let work = popFirst() {
        idle.removeLast()
        begins(work)
        matches.append((worker, work))
      }
      return matches
    }
  }

  /// What a worker does next.
  enum Next {
    case work(any PostgresWork)
    case wait
    /// Work is waiting, but the connection is from before an outage.
    case renew
    case end
  }

  /// The maximum number of waiting jobs.
  static let mostWaiting = 512
  static let closed = StoreFault("the store is closed")
  private static let late = StoreFault("busy: no connection to PostgreSQL was free in time")

  let address: PostgresAddress
  let timing: PostgresTiming
  let metrics: PostgresMetrics
  let jitter: @Sendable () -> Double
  private let state: Mutex<State>

  /// - Parameter jitter: random numbers between 0 and 1, for pauses.
  init(
    _ address: PostgresAddress, timing: PostgresTiming, metrics: PostgresMetrics,
    jitter: @escaping @Sendable () -> Double
  ) {
    self.address = address
    state = Mutex(State(pool: address.pool))
    self.timing = timing
    self.metrics = metrics
    self.jitter = jitter
  }

  /// The numbers of busy and idle connections, and of waiting jobs.
  var use: (busy: Int, idle: Int, waiting: Int) {
    state.withLock { (max(0, $0.connected - $0.idle.count), $0.idle.count, $0.waiting) }
  }

  /// Whether the database is known to be unavailable.
  var isOut: Bool { state.withLock { $0.outage != nil } }

  func add(_ work: any PostgresWork) {
    enum Step {
      case refuse(StoreFault)
      case hand(PostgresWorker)
      case grow
      case wait
    }
    let step = state.withLock { state -> Step in
      guard state.isOpen else { return .refuse(Self.closed) }
      if let outage = state.outage { return .refuse(outage) }
      let mayBegin = state.mayBegin(work)
      if mayBegin, let worker = state.idle.popLast() {
        state.begins(work)
        return .hand(worker)
      }
      guard state.waiting < Self.mostWaiting else { return .refuse(Self.late) }
      state.append(work)
      guard mayBegin, state.workers < address.pool, state.workers == 0 || ContinuousClock.now >= state.mayGrowAt else {
        return .wait
      }
      state.workers += 1
      return .grow
    }
    switch step {
    case .refuse(let fault):
      if fault == Self.late { metrics.wasBusy() }
      work.fail(fault)
    case .hand(let worker): worker.take(work)
    case .grow:
      PostgresWorker(pool: self).start()
      sweepLater(work.deadline)
    case .wait: sweepLater(work.deadline)
    }
  }

  /// Refuses new work. Connections close once the waiting work is done.
  func close() {
    let (idle, reconnectingWorker) = state.withLock { state in
      state.isOpen = false
      defer { state.idle = [] }
      return (state.idle, state.reconnectingWorker)
    }
    for worker in idle { worker.wake() }
    reconnectingWorker?.wake()
  }

  // MARK: Called by workers

  var isOpen: Bool { state.withLock { $0.isOpen } }

  /// - Parameters:
  ///   - connectionGeneration: the result of `connected`.
  ///   - ended: the work that the worker has finished.
  func next(for worker: PostgresWorker, connectionGeneration: Int, after ended: (any PostgresWork)?) -> Next {
    let now = ContinuousClock.now
    var late: [any PostgresWork] = []
    defer { for work in late { reject(work) } }
    return state.withLock { state in
      if let ended { state.ended(ended) }
      guard connectionGeneration == state.connectionGeneration else {
        guard state.outage == nil, state.waiting > 0 else { return leave(&state) }
        state.connected -= 1
        return .renew
      }
      while let work = state.popFirst() {
        if now < work.deadline {
          state.begins(work)
          return .work(work)
        }
        late.append(work)
      }
      guard state.isOpen else { return leave(&state) }
      state.idle.append(worker)
      return .wait
    }
  }

  private func leave(_ state: inout State) -> Next {
    state.workers -= 1
    state.connected -= 1
    return .end
  }

  /// Called when a worker has been idle for long.
  /// - Returns: whether it may end.
  func mayLeave(_ worker: PostgresWorker) -> Bool {
    state.withLock { state in
      guard state.connected > 1, let index = state.idle.firstIndex(where: { $0 === worker }) else { return false }
      state.idle.remove(at: index)
      _ = leave(&state)
      return true
    }
  }

  /// Called when a worker has connected.
  /// - Returns: the generation of the connection.
  func connected(_ worker: PostgresWorker) -> Int {
    state.withLock { state in
      if state.reconnectingWorker === worker || state.outage != nil {
        state.outage = nil
        state.reconnectingWorker = nil
      }
      state.connected += 1
      return state.connectionGeneration
    }
  }

  /// Called when a worker could not connect.
  /// - Returns: whether it retries.
  func failed(_ worker: PostgresWorker, _ error: PostgresError) -> Bool {
    let (goesOn, unserved) = state.withLock { state -> (Bool, [any PostgresWork]) in
      if state.isOpen, state.outage == nil, state.connected > 0 || state.workers > 1 {
        // The others continue or may still succeed: perhaps the server has no more connections for us. If the last one
        // fails too, the server is unavailable.
        state.mayGrowAt = ContinuousClock.now + .seconds(1)
        state.workers -= 1
        return (false, [])
      }
      return begin(outage: error.fault, reconnectingWorker: worker, &state)
    }
    for work in unserved { work.fail(error.fault) }
    return goesOn
  }

  /// Called when a worker's connection broke.
  /// - Parameters:
  ///   - connectionGeneration: the result of `connected`. A timeout of an earlier generation is ignored: after a
  ///     failover, the old connections time out one by one while the new ones work.
  ///   - silent: whether the server did not reply. It will then not reply to the others either.
  ///   - ended: the work that the worker was doing, or was about to do.
  /// - Returns: whether it reconnects.
  func lost(_ worker: PostgresWorker, connectionGeneration: Int, silent: Bool, after ended: (any PostgresWork)?) -> Bool
  {
    let fault = PostgresError.silent.fault
    defer { assignWaitingWork() }
    let (goesOn, unserved, resting) = state.withLock { state -> (Bool, [any PostgresWork], [PostgresWorker]) in
      if let ended { state.ended(ended) }
      state.connected -= 1
      guard silent, connectionGeneration == state.connectionGeneration else {
        if state.reconnectingWorker == nil { return (true, [], []) }
        state.workers -= 1
        return (false, [], [])
      }
      state.connectionGeneration += 1
      defer { state.idle = [] }
      let (goesOn, unserved) = begin(outage: fault, reconnectingWorker: worker, &state)
      return (goesOn, unserved, state.idle)
    }
    for work in unserved { work.fail(fault) }
    for worker in resting { worker.wake() }
    return goesOn
  }

  private func begin(outage: StoreFault, reconnectingWorker worker: PostgresWorker, _ state: inout State) -> (
    Bool, [any PostgresWork]
  ) {
    state.outage = outage
    let unserved = state.popAll()
    guard state.isOpen, state.reconnectingWorker == nil || state.reconnectingWorker === worker else {
      state.workers -= 1
      return (false, unserved)
    }
    state.reconnectingWorker = worker
    return (true, unserved)
  }

  /// Returns work to the queue that was not begun because its connection broke.
  func giveBack(_ work: any PostgresWork) {
    let outage = state.withLock { state -> StoreFault? in
      if state.outage == nil {
        if work.writes { state.writes.insert(work, at: 0) } else { state.reads.insert(work, at: 0) }
      }
      return state.outage
    }
    if let outage { return work.fail(outage) }
    assignWaitingWork()
  }

  /// Hands waiting work to idle workers.
  private func assignWaitingWork() { for (worker, work) in state.withLock({ $0.matches() }) { worker.take(work) } }

  // MARK: Deadlines

  /// Refuses waiting work at its deadline, even if all workers are busy.
  private func sweepLater(_ deadline: ContinuousClock.Instant) {
    let isFirst = state.withLock { state in
      defer { state.isSweeping = true }
      return !state.isSweeping
    }
    guard isFirst else { return }
    sweep(at: deadline)
  }

  private func sweep(at deadline: ContinuousClock.Instant) {
    let left = max(.milliseconds(5), deadline - ContinuousClock.now)
    DispatchQueue.global().asyncAfter(deadline: .now() + left / .seconds(1)) { [weak self] in self?.sweep() }
  }

  private func sweep() {
    let now = ContinuousClock.now
    let (late, next) = state.withLock { state -> ([any PostgresWork], ContinuousClock.Instant?) in
      let late = (state.reads + state.writes).filter { $0.deadline <= now }
      if !late.isEmpty {
        state.reads.removeAll { $0.deadline <= now }
        state.writes.removeAll { $0.deadline <= now }
      }
      let next = (state.reads + state.writes).map(\.deadline).min()
      state.isSweeping = next != nil
      return (late, next)
    }
    for work in late { reject(work) }
    if let next { sweep(at: next) }
  }

  private func reject(_ work: any PostgresWork) {
    metrics.wasBusy()
    work.fail(Self.late)
  }
}
