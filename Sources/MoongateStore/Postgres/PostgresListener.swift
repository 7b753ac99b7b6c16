import Dispatch
import Foundation
import MoongateCore
import Synchronization

/// Listens for changes of sessions on a separate connection and thread, and synchronises the clock periodically.
///
/// A notification only wakes the waiting pollers, which then read the changes. Without a connection they are not woken,
/// and read when their polling interval ends.
final class PostgresListener: Sendable {
  /// How often the clock is synchronised and the connection is checked.
  private static let interval: Duration = .seconds(10)
  /// The timeout of one wait for notifications, after which it checks whether it should end.
  private static let timeLimit: Duration = .seconds(1)
  private static let longestPause: Duration = .seconds(2)

  private let address: PostgresAddress
  private let metrics: PostgresMetrics
  private let clock: ServerClock
  private let jitter: @Sendable () -> Double
  private let call: @Sendable () -> Void
  private let isOver = Atomic<Bool>(false)

  /// - Parameter call: wakes the pollers. Called on the listener's thread.
  init(
    _ address: PostgresAddress, metrics: PostgresMetrics, clock: ServerClock, jitter: @escaping @Sendable () -> Double,
    call: @escaping @Sendable () -> Void
  ) {
    self.address = address
    self.metrics = metrics
    self.clock = clock
    self.jitter = jitter
    self.call = call
  }

  func start() {
    Thread.detachNewThread {
      var pause: Duration = .milliseconds(100)
      while !self.isOver.load(ordering: .acquiring) {
        do throws(PostgresError) {
          let connection = try PostgresConnection.open(self.address, timing: .serving, metrics: self.metrics)
          self.clock.set(try connection.clockReadings())
          connection.queue("LISTEN \(PostgresTransaction.channel)", keeps: false)
          _ = try connection.exchange()
          pause = .milliseconds(100)
          // Notifications sent while it was not listening are found by polling.
          self.call()
          try self.listen(connection)
        } catch {
          Thread.sleep(forTimeInterval: pause / .seconds(1) * (0.75 + self.jitter() / 2))
          pause = min(pause * 2, Self.longestPause)
        }
      }
    }
  }

  /// Ends within a second or two.
  func end() { isOver.store(true, ordering: .releasing) }

  private func listen(_ connection: PostgresConnection) throws(PostgresError) {
    var next = ContinuousClock.now + Self.interval
    while !isOver.load(ordering: .acquiring) {
      let now = ContinuousClock.now
      if now >= next {
        clock.set(try connection.clockReadings())
        next = now + Self.interval
      }
      if try connection.notified(until: now + Self.timeLimit) {
        metrics.wasNotified()
        call()
      }
    }
  }
}

/// Ensures that a store has at most one listener.
final class PostgresListening: Sendable {
  private let address: PostgresAddress
  private let listener = Mutex<PostgresListener?>(nil)

  init(_ address: PostgresAddress) { self.address = address }

  func start(metrics: PostgresMetrics, clock: ServerClock, _ call: @escaping @Sendable () -> Void) {
    let made = PostgresListener(
      address, metrics: metrics, clock: clock, jitter: { Double.random(in: 0..<1) }, call: call)
    let before = listener.withLock { listener in
      defer { listener = made }
      return listener
    }
    before?.end()
    made.start()
  }

  func end() { listener.withLock { $0 }?.end() }
}
