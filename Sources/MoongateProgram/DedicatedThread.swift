import Foundation
import MoongateCore
import MoongateExec

/// A task executor with one dedicated thread. It is for work that must not take time from request threads, like
/// checking a candidate, and for work that must not wait for them, like checking for ended sessions.
package final class DedicatedThread: TaskExecutor {
  private let jobs = BlockingQueue<UnownedJob>()

  private init() {}

  /// Runs the body and everything that it awaits on a new thread.
  /// - Parameter priority: the priority of the thread; nil for that of the event loops.
  package static func run<Value: Sendable>(at priority: ThreadPriority?, _ body: @Sendable () async -> Value) async
    -> Value
  {
    let executor = DedicatedThread()
    Thread.detachNewThread {
      priority?.take()
      while let jobs = executor.jobs.takeAll() {
        for job in jobs { job.runSynchronously(on: executor.asUnownedTaskExecutor()) }
      }
    }
    let value = await withTaskExecutorPreference(executor, operation: body)
    executor.jobs.end()
    return value
  }

  /// Blocks the calling thread, which must be a dedicated one. A timer would depend on a pool that may be busy.
  package static func block(for duration: Duration) { Thread.sleep(forTimeInterval: duration / .seconds(1)) }

  package func enqueue(_ job: consuming ExecutorJob) { jobs.add(UnownedJob(job)) }
}
