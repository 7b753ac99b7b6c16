import Foundation
import Synchronization

/// Holds the permit of a job until it is done, even if the caller is gone.
private final class RetainedPermit: Sendable {
  private let permit: Mutex<HashingPermit?>

  init(_ permit: HashingPermit) { self.permit = Mutex(permit) }

  func release() { permit.withLock { $0 = nil } }
}

/// The queue for the hashing threads, and the threads. Client addresses take turns; jobs of one address are served in
/// order.
///
/// Attack: one address fills its share of the permits at every moment. If jobs were served in the order of arrival,
/// everyone else would wait for all of its jobs; with turns, they wait for one of them (start-time fair queueing:
/// Goyal, Vin and Cheng, 1996).
final class HashingQueue: Sendable {
  /// A waiting job.
  private struct Job: Sendable {
    let id: UInt64
    let since: ContinuousClock.Instant
    let address: [UInt8]
    /// The turn in which the job is served, lowest first.
    var turn: UInt64 = 0
    /// Runs on a hashing thread.
    let run: @Sendable () -> Void
    /// Called with an error if `run` is not called.
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
    /// The next turn of each address, if it is later than the current one.
    var next: [[UInt8]: UInt64] = [:]

    mutating func add(_ job: Job) {
      var job = job
      job.turn = max(turn, next[job.address] ?? 0)
      next[job.address] = job.turn + 1
      jobs.append(job)
    }

    mutating func dequeue() -> Job? {
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

  /// How many jobs wait for a thread.
  var waiting: Int { state.withLock { $0.jobs.count } }
  /// How many jobs were taken from the queue.
  var served: Int { state.withLock { $0.served } }

  /// Runs the body on a hashing thread.
  /// - Parameter permit: held while the body waits or runs, even if the caller is gone.
  /// - Throws: what the body throws; `HashingFault.busy` if it waited too long; `CancellationError` if the task was
  ///   cancelled while it waited. A body that has begun runs to its end and its result is used. A client therefore
  ///   cannot test a guess without being charged by closing the connection.
  func run<Value: Sendable>(_ permit: HashingPermit, _ body: @escaping @Sendable () throws(HashingFault) -> Value)
    async throws -> Value
  {
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    let held = RetainedPermit(permit)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
        join(
          Job(
            id: id, since: steady(), address: permit.address,
            run: {
              let result = Result { () throws(HashingFault) in try body() }
              // Release the permit before resuming: the caller may ask for another one at once.
              held.release()
              continuation.resume(with: result)
            },
            give: { error in
              held.release()
              continuation.resume(throwing: error)
            }))
        // The cancellation handler below finds no job if it ran before `join`.
        if Task.isCancelled { cancel(id) }
      }
    } onCancel: {
      cancel(id)
    }
  }

  /// Lets the threads end once the queue is empty.
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
      // An idle thread takes the job. Otherwise another thread is started, up to the maximum.
      guard state.jobs.count > state.idle, state.threads < mostThreads else { return false }
      state.threads += 1
      return true
    }
    if needsThread { Thread.detachNewThread { self.runJobs() } }
    work.signal()
  }

  private func cancel(_ id: UInt64) {
    let waiting = state.withLock { state in state.jobs.firstIndex { $0.id == id }.map { state.jobs.remove(at: $0) } }
    waiting?.give(CancellationError())
  }

  /// The main loop of a hashing thread.
  private func runJobs() {
    ThreadPriority.hashing.take()
    while true {
      state.withLock { $0.idle += 1 }
      work.wait()
      let (job, isOver) = state.withLock { state -> (Job?, Bool) in
        state.idle -= 1
        let job = state.dequeue()
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
