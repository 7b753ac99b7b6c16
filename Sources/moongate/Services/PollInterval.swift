import Dispatch
import Foundation
import MoongateProgram
import Synchronization

/// The pause between two polls for session changes. It ends early when there is a change.
final class PollInterval: Sendable {
  /// The minimum pause, so that frequent sign-ins do not increase the number of polls.
  private static let shortest: Duration = .milliseconds(40)

  private let signal = DispatchSemaphore(value: 0)
  private let isCalled = Atomic<Bool>(false)

  /// Ends the current pause, or the next one.
  func end() { if !isCalled.exchange(true, ordering: .acquiringAndReleasing) { signal.signal() } }

  /// Blocks the calling thread, which must be a dedicated one. A timer would depend on a pool that may be busy.
  func block(for duration: Duration) {
    DedicatedThread.block(for: min(duration, Self.shortest))
    if signal.wait(timeout: .now() + max(.zero, duration - Self.shortest) / .seconds(1)) == .success {
      isCalled.store(false, ordering: .releasing)
    }
  }
}
