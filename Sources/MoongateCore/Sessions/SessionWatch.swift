import Logging
import Synchronization

/// Polls the store every 250 ms for sessions that were changed by this or another process, and tells the caches.
///
/// A cache may trust its entries only while `isFresh`. A node that cannot poll the store stops trusting them.
package final class SessionWatch: Sendable {
  /// The maximum age of the last successful poll.
  package static let freshFor: Duration = .seconds(1)
  private static let interval: Duration = .milliseconds(250)

  private let store: any SessionStore
  private let logger: Logger
  private let subscribers = Mutex<[@Sendable (SessionChanges) -> Void]>([])
  /// Nanoseconds of the monotonic clock since `origin`; 0 before the first poll.
  private let lastLook = Atomic<Int64>(0)
  private let origin = ContinuousClock.now

  package init(store: any SessionStore, logger: Logger) {
    self.store = store
    self.logger = logger
  }

  /// Registers a callback. It is called on an unspecified thread and must return quickly.
  package func subscribe(_ callback: @escaping @Sendable (SessionChanges) -> Void) {
    subscribers.withLock { $0.append(callback) }
  }

  /// Whether the last successful poll is recent enough to trust a cache.
  package var isFresh: Bool {
    let last = lastLook.load(ordering: .acquiring)
    return last > 0 && sinceOrigin - last < Self.freshFor.wholeMilliseconds * 1_000_000
  }

  private var sinceOrigin: Int64 { (ContinuousClock.now - origin).wholeNanoseconds + 1 }

  /// Polls until the task is cancelled. The first poll only learns the current position; entries from before it are not
  /// trusted.
  /// - Parameter pause: waits between two polls. A caller with a dedicated thread blocks that thread, because a busy
  ///   thread pool must not delay polls: without them, every session lookup asks the store.
  package func run(pause: @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }) async {
    var sequence: Int64?
    var wasFailing = false
    while !Task.isCancelled {
      do {
        let started = sinceOrigin
        let found = try await store.sessionChanges(after: sequence ?? .max)
        // Entries cached before the first poll may have ended before it. After a failover, another server answers: it
        // may lack the last changes that we saw and have given their numbers to other changes.
        let believesNothing = sequence == nil || wasFailing
        let changes =
          believesNothing ? SessionChanges(latest: found.latest, tokens: [], accounts: [], isIncomplete: true) : found
        if !changes.tokens.isEmpty || !changes.accounts.isEmpty || changes.isIncomplete {
          for subscriber in subscribers.withLock({ $0 }) { subscriber(changes) }
        }
        sequence = changes.latest
        lastLook.store(started, ordering: .releasing)
        if wasFailing { logger.notice("the store answers again") }
        wasFailing = false
      } catch {
        if !wasFailing {
          logger.error("session changes cannot be read from the store", metadata: ["fault": "\(error)"])
        }
        wasFailing = true
      }
      await pause(Self.interval)
    }
  }
}
