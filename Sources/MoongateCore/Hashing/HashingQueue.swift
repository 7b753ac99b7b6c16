import Foundation
import Synchronization

/// What is given to a thread holds its place, even if whoever asked is gone, until it is done.
private final class RetainedPermit: Sendable {
  private let place: Mutex<HashingPermit?>

  init(_ place: HashingPermit) { self.place = Mutex(place) }

  func letGo() { place.withLock { $0 = nil } }
}

/// Those who wait for a hashing thread, and the threads that serve them: client addresses take turns, and of one
/// address first come is first served.
///
/// Attack: an address that fills its share of the places at every moment. Were the line served in the order of arrival,
/// everybody else would wait for all of its secrets; so they wait for one of them (start-time fair queueing: Goyal, Vin
/// and Cheng, 1996).
final class HashingQueue: Sendable {
  /// One who waits.
  private struct Job: Sendable {
    let id: UInt64
    let since: ContinuousClock.Instant
    let address: [UInt8]
    /// The turn in which it is served: the lowest comes first.
    var turn: UInt64 = 0
    /// Runs on a hashing thread.
    let run: @Sendable () -> Void
    /// Instead of `run`.
    let give: @Sendable (any Error) -> Void
  }

  private struct State {
    var jobs: [Job] = []
    var lastID: UInt64 = 0
    var threads = 0
    var idle = 0
    var isClosed = false
    var served = 0
    /// The turn that is being served.
    var turn: UInt64 = 0
    /// Each address's next turn, where that is later.
    var next: [[UInt8]: UInt64] = [:]

    mutating func add(_ job: Job) {
      var job = job
      job.turn = max(turn, next[job.address] ?? 0)
      next[job.address] = job.turn + 1
      jobs.append(job)
    }

    mutating func takeFirst() -> Job? {
      guard let first = jobs.indices.min(by: { jobs[$0].turn < jobs[$1].turn }) else { return nil }
      let job = jobs.remove(at: first)
      served += 1
      turn = job.turn
      next = next.filter { $0.value > turn }
      return job
    }
  }

  private let mostThreads: Int
  private let steady: @Sendable () -> ContinuousClock.Instant
  private let state = Mutex(State())
  private let work = DispatchSemaphore(value: 0)

  init(threads: Int, steady: @escaping @Sendable () -> ContinuousClock.Instant) {
    mostThreads = threads
    self.steady = steady
  }

  /// How many wait for a thread.
  var waiting: Int { state.withLock { $0.jobs.count } }
  /// How many have been taken off the line.
  var served: Int { state.withLock { $0.served } }

  /// Runs the body on a hashing thread.
  /// - Parameter place: held while the body waits or runs, even if whoever asked is gone.
  /// - Throws: what the body throws; `HashingFault.busy` where it waited too long; `CancellationError` where the task
  ///   was cancelled while it waited. What has begun is ended and told: nobody learns by hanging up, and without being
  ///   charged, whether a guess was right.
  func run<Value: Sendable>(_ place: HashingPermit, _ body: @escaping @Sendable () throws(HashingFault) -> Value)
    async throws -> Value
  {
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    let held = RetainedPermit(place)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
        join(
          Job(
            id: id, since: steady(), address: place.address,
            run: {
              let result = Result { () throws(HashingFault) in try body() }
              // Before the answer: whoever has it may ask for a place again.
              held.letGo()
              continuation.resume(with: result)
            },
            give: { error in
              held.letGo()
              continuation.resume(throwing: error)
            }))
        // The handler below found nothing if it ran before.
        if Task.isCancelled { cancel(id) }
      }
    } onCancel: {
      cancel(id)
    }
  }

  /// No thread outlives what is in line now.
  func close() {
    let threads = state.withLock { state in
      state.isClosed = true
      return state.threads
    }
    for _ in 0..<threads { work.signal() }
  }

  private func join(_ job: Job) {
    let needsThread = state.withLock { state in
      state.add(job)
      // A thread that is free takes it; else one more, while there may be one more.
      guard state.jobs.count > state.idle, state.threads < mostThreads else { return false }
      state.threads += 1
      return true
    }
    if needsThread { Thread.detachNewThread { self.serve() } }
    work.signal()
  }

  private func cancel(_ id: UInt64) {
    let waiting = state.withLock { state in state.jobs.firstIndex { $0.id == id }.map { state.jobs.remove(at: $0) } }
    waiting?.give(CancellationError())
  }

  /// The life of a thread.
  private func serve() {
    ThreadPriority.hashing.take()
    while true {
      state.withLock { $0.idle += 1 }
      work.wait()
      let (job, isOver) = state.withLock { state -> (Job?, Bool) in
        state.idle -= 1
        let job = state.takeFirst()
        return (job, job == nil && state.isClosed)
      }
      if let job {
        if steady() - job.since > HashingPool.longestWait { job.give(HashingFault.busy) } else { job.run() }
      } else if isOver {
        return
      }
    }
  }
}
