import Foundation
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization

/// Sends watchdog messages (`WATCHDOG=1`) to the service manager while every event loop responds.
///
/// If the store does not answer, the messages continue: the gateway then answers 503 and recovers by itself.
struct Watchdog: Service {
  private let interval: Duration
  private let pulse: EventLoopPulse
  private let notifier: ServiceNotifier
  private let logger: Logger

  /// nil if the service manager does not watch this process.
  /// - Parameter environment: `WATCHDOG_USEC` is the watchdog interval, and `WATCHDOG_PID` the watched process.
  init?(
    environment: [String: String] = ProcessInfo.processInfo.environment, process: pid_t = getpid(),
    eventLoops: any EventLoopGroup,
    notifier: ServiceNotifier, logger: Logger
  ) {
    guard let microseconds = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), microseconds > 0 else { return nil }
    if let watched = environment["WATCHDOG_PID"], watched != "\(process)" { return nil }
    // Send three messages per interval, so that one late message does no harm.
    interval = .microseconds(max(microseconds / 3, 1_000))
    pulse = EventLoopPulse(Array(eventLoops.makeIterator()))
    self.notifier = notifier
    self.logger = logger
  }

  func run() async throws {
    await cancelWhenGracefulShutdown {
      // The first message waits for an interval. During an upgrade, the service manager refuses messages of this
      // process until the previous process has named it.
      while !Task.isCancelled {
        do { try await Task.sleep(for: interval) } catch { return }
        checkAndNotify()
      }
    }
  }

  /// Sends a message if every event loop has responded since the last check, then checks the loops again.
  func checkAndNotify() {
    if pulse.take() {
      notifier.alive()
    } else {
      logger.error("an event loop does not respond; the watchdog message is withheld")
    }
  }
}

/// Checks that event loops respond.
final class EventLoopPulse: Sendable {
  private let loops: [any EventLoop]
  /// The indexes of loops that have not responded yet.
  private let waiting: Mutex<Set<Int>> = Mutex([])

  init(_ loops: [any EventLoop]) { self.loops = loops }

  /// Sends a task to each event loop without waiting.
  /// - Returns: whether all loops have run the task of the previous call.
  func take() -> Bool {
    let silent = waiting.withLock { $0 }
    for (index, loop) in loops.enumerated() where !silent.contains(index) {
      waiting.withLock { _ = $0.insert(index) }
      loop.execute { self.waiting.withLock { _ = $0.remove(index) } }
    }
    return silent.isEmpty
  }
}
