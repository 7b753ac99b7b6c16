import Foundation
import MoongateCore
import Synchronization

/// One thread of low priority for work that nobody waits for: a candidate is read and tried out on it, so that a reload
/// takes no processor from those who serve.
final class QuietThread: TaskExecutor {
  private struct State {
    var jobs: [UnownedJob] = []
    var isOver = false
  }

  private let condition = NSCondition()
  private let state = Mutex(State())

  private init() {}

  /// Runs the body, and all that it awaits, on a thread of its own.
  static func run<Value: Sendable>(_ body: @Sendable () async -> Value) async -> Value {
    let executor = QuietThread()
    Thread.detachNewThread {
      ThreadPriority.quiet.take()
      executor.work()
    }
    let value = await withTaskExecutorPreference(executor, operation: body)
    executor.end()
    return value
  }

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
