import Foundation
import Logging
import MoongateCore
import MoongateProgram
import MoongateStore
import Synchronization
import Testing

@testable import MoongateGateway

@Suite struct DedicatedThreadTests {
  /// All work runs on one thread, and other threads of the process continue.
  @Test func backgroundWorkRunsOnADedicatedThread() async {
    let names = await DedicatedThread.run(at: .lowPriority) { () async -> (UInt, UInt, Int32) in
      let before = UInt(pthread_self())
      await Task.yield()
      let nice = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
      return (before, UInt(pthread_self()), nice)
    }
    #expect(names.0 == names.1)
    #expect(names.2 >= 10)
  }

  /// Attack: so many sign-ins that the poll for ended sessions is delayed, and no session is trusted in the meantime.
  @Test func sessionPollRunsOnItsThread() async throws {
    let store = try SQLiteStore(path: ":memory:", keyFingerprint: [1])
    let watch = SessionWatch(store: store, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    let threads = Mutex<[UInt]>([])
    await DedicatedThread.run(at: nil) {
      threads.withLock { $0.append(UInt(pthread_self())) }
      await watch.run { _ in
        let looks = threads.withLock { threads in
          threads.append(UInt(pthread_self()))
          return threads.count - 1
        }
        if looks == 3 { withUnsafeCurrentTask { $0?.cancel() } }
      }
    }
    #expect(threads.withLock { Set($0).count } == 1)
    #expect(watch.isFresh)
  }
}
