import MoongateCore
import MoongateDelivery
import MoongateProgram
import ServiceLifecycle
import Synchronization

/// Delays both listeners of a replacement process until the previous process has stopped accepting connections.
final class TakeOver: Sendable {
  private static let pollInterval: Duration = .milliseconds(5)
  private static let longestWait: Duration = .seconds(5)

  private let predecessor: Predecessor
  private let watch: SessionWatch
  private let outbox: Outbox
  private let waiting = Mutex<Task<Void, Never>?>(nil)

  init(_ predecessor: Predecessor, watch: SessionWatch, outbox: Outbox) {
    self.predecessor = predecessor
    self.watch = watch
    self.outbox = outbox
  }

  /// Reports that this process is ready and waits for its turn. Returns at once during a shutdown.
  func waitForTurn() async {
    let task = waiting.withLock { waiting in
      let task = waiting ?? Task { await takeOver() }
      waiting = task
      return task
    }
    await withGracefulShutdownHandler {
      await task.value
    } onGracefulShutdown: { [predecessor] in
      predecessor.abandon()
    }
  }

  private func takeOver() async {
    // Wait for the first poll of session changes. Until then no session is trusted, and requests would be answered with
    // 503.
    let end = ContinuousClock.now + Self.longestWait
    while !watch.isFresh, ContinuousClock.now < end { try? await Task.sleep(for: Self.pollInterval) }
    predecessor.send(.prepared)
    let state = await DedicatedThread.run(at: nil) { [predecessor] in predecessor.awaitGo() }
    if let state { outbox.restore(state.messages) }
  }
}
