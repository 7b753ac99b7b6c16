import MoongateCore
import MoongateDelivery
import ServiceLifecycle
import Synchronization

/// Delays both listeners of a replacement process until the previous process has stopped accepting connections.
final class TakeOver: Sendable {
  private static let look: Duration = .milliseconds(5)
  private static let longestLook: Duration = .seconds(5)

  private let predecessor: Predecessor
  private let watch: SessionWatch
  private let outbox: Outbox
  private let coming = Mutex<Task<Void, Never>?>(nil)

  init(_ predecessor: Predecessor, watch: SessionWatch, outbox: Outbox) {
    self.predecessor = predecessor
    self.watch = watch
    self.outbox = outbox
  }

  /// Reports that this process is ready and waits for its turn. Returns at once during a shutdown.
  func come() async {
    let task = coming.withLock { coming in
      let task = coming ?? Task { await take() }
      coming = task
      return task
    }
    await withGracefulShutdownHandler {
      await task.value
    } onGracefulShutdown: { [predecessor] in
      predecessor.abandon()
    }
  }

  private func take() async {
    // Wait for the first poll of session changes. Until then no session is trusted, and requests would be answered with
    // 503.
    let end = ContinuousClock.now + Self.longestLook
    while !watch.isFresh, ContinuousClock.now < end { try? await Task.sleep(for: Self.look) }
    predecessor.send(.prepared)
    let state = await DedicatedThread.run(at: nil) { [predecessor] in predecessor.awaitGo() }
    if let state { outbox.restore(state.messages) }
  }
}
