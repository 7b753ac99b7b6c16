import Foundation
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization

/// Tells the service manager that the gateway is alive (`WATCHDOG=1`), as long as every event loop does what it is
/// given.
///
/// A store that does not answer is no reason to be killed: the gateway answers 503 then, and recovers by itself.
struct Watchdog: Service {
  private let interval: Duration
  private let pulse: EventLoopPulse
  private let notifier: ServiceNotifier
  private let logger: Logger

  /// nil if the service manager does not watch this process.
  /// - Parameter environment: `WATCHDOG_USEC` is how often it wants to hear, and `WATCHDOG_PID` from whom.
  init?(
    environment: [String: String] = ProcessInfo.processInfo.environment, process: pid_t = getpid(),
    eventLoops: any EventLoopGroup,
    notifier: ServiceNotifier, logger: Logger
  ) {
    guard let microseconds = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), microseconds > 0 else { return nil }
    if let watched = environment["WATCHDOG_PID"], watched != "\(process)" { return nil }
    // Three times as often: one that comes late does no harm.
    interval = .microseconds(max(microseconds / 3, 1_000))
    pulse = EventLoopPulse(Array(eventLoops.makeIterator()))
    self.notifier = notifier
    self.logger = logger
  }

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        beat()
        do { try await Task.sleep(for: interval) } catch { return }
      }
    }
  }

  /// Tells that the gateway is alive if every event loop has answered since the last time, and asks them again.
  func beat() {
    if pulse.take() {
      notifier.alive()
    } else {
      logger.error("an event loop does not answer: the service manager is not told that the gateway is alive")
    }
  }
}

/// Whether event loops still do what they are given.
final class EventLoopPulse: Sendable {
  private let loops: [any EventLoop]
  /// Those that have not answered yet.
  private let waiting: Mutex<Set<Int>> = Mutex([])

  init(_ loops: [any EventLoop]) { self.loops = loops }

  /// Asks each event loop, and does not wait.
  /// - Returns: whether each has answered what it was asked the last time.
  func take() -> Bool {
    let silent = waiting.withLock { $0 }
    for (index, loop) in loops.enumerated() where !silent.contains(index) {
      waiting.withLock { _ = $0.insert(index) }
      loop.execute { self.waiting.withLock { _ = $0.remove(index) } }
    }
    return silent.isEmpty
  }
}
