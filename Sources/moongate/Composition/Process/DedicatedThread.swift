import Foundation
import MoongateCore
import Synchronization

/// A task executor with one dedicated thread. It is for work that must not take time from request threads, like
/// checking a candidate, and for work that must not wait for them, like checking for ended sessions.
final class DedicatedThread: TaskExecutor {
  private struct State {
    var jobs: [UnownedJob] = []
    var isOver = false
  }

  private let condition = NSCondition()
  private let state = Mutex(State())

  private init() {}

  /// Runs the body and everything that it awaits on a new thread.
  /// - Parameter priority: the priority of the thread; nil for that of the event loops.
  static func run<Value: Sendable>(at priority: ThreadPriority?, _ body: @Sendable () async -> Value) async -> Value {
    let executor = DedicatedThread()
    Thread.detachNewThread {
      priority?.take()
      executor.work()
    }
    let value = await withTaskExecutorPreference(executor, operation: body)
    executor.end()
    return value
  }

  /// Blocks the calling thread, which must be a dedicated one. A timer would depend on a pool that may be busy.
  static func block(for duration: Duration) { Thread.sleep(forTimeInterval: duration / .seconds(1)) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    state.withLock { $0.jobs.append(job) }
    wake()
  }

  private func end() {
    state.withLock { $0.isOver = true }
    wake()
  }

  private func wake() {
    condition.lock()
    condition.signal()
    condition.unlock()
  }

  private func work() {
    while true {
      condition.lock()
      while state.withLock({ $0.jobs.isEmpty && !$0.isOver }) { condition.wait() }
      condition.unlock()
      let jobs = state.withLock { state -> [UnownedJob] in
        defer { state.jobs = [] }
        return state.jobs
      }
      if jobs.isEmpty { return }
      for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
  }
}
