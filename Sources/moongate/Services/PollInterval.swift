import Dispatch
import Foundation
import Synchronization

/// The pause between two looks for session changes: over at once when there is something to see.
final class PollInterval: Sendable {
  /// Two looks are apart by this at least: where people sign in all the time, the looks do not grow with them.
  private static let shortest: Duration = .milliseconds(40)

  private let signal = DispatchSemaphore(value: 0)
  private let isCalled = Atomic<Bool>(false)

  /// Ends the pause, or the next one.
  func end() { if !isCalled.exchange(true, ordering: .acquiringAndReleasing) { signal.signal() } }

  /// Blocks the calling thread, which must be one's own: a timer would come by way of a pool that may be busy.
  func block(for duration: Duration) {
    DedicatedThread.block(for: min(duration, Self.shortest))
    if signal.wait(timeout: .now() + max(.zero, duration - Self.shortest) / .seconds(1)) == .success {
      isCalled.store(false, ordering: .releasing)
    }
  }
}
