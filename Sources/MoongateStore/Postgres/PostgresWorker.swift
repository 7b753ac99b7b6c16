import Dispatch
import Foundation
import MoongateCore
import Synchronization

/// A thread with a connection. It blocks while the database works.
final class PostgresWorker: Sendable {
  /// How long a connection may be idle before it is closed, except for the last one.
  private static let idleTimeout: Duration = .seconds(300)
  private static let firstPause: Duration = .milliseconds(50)
  /// The maximum pause between two connection attempts. Temporary failures are retried about every second, and a wrong
  /// password less often.
  private static let longestPause: Duration = .seconds(1)
  private static let longestPauseWhenRefused: Duration = .seconds(5)

  private let pool: PostgresPool
  private let signal = DispatchSemaphore(value: 0)
  private let handed = Mutex<(any PostgresWork)?>(nil)

  init(pool: PostgresPool) { self.pool = pool }

  func start() {
    Thread.detachNewThread {
      ThreadPriority.answering.take()
      while let (connection, connectionGeneration) = self.connect() {
        guard self.serve(connection, connectionGeneration: connectionGeneration) else { return }
      }
    }
  }

  /// Hands work to an idle worker.
  func take(_ work: any PostgresWork) {
    handed.withLock { $0 = work }
    signal.signal()
  }

  func wake() { signal.signal() }

  /// - Returns: nil if the worker is no longer needed.
  private func connect() -> (PostgresConnection, connectionGeneration: Int)? {
    var pause = Self.firstPause
    var isFirst = true
    while true {
      do throws(PostgresError) {
        let connection = try PostgresConnection.open(pool.address, timing: pool.timing, metrics: pool.metrics)
        return (connection, pool.connected(self))
      } catch {
        // A server that closed the connection during the handshake may be back at once, such as during a failover or
        // behind a load balancer that has just noticed it.
        defer { isFirst = false }
        if isFirst, error == .notConnected(.hangsUp) { continue }
        guard pool.failed(self, error) else { return nil }
        var mayPass = true
        if case .notConnected(let obstacle) = error { mayPass = obstacle.mayPass }
        let jitter = 0.75 + pool.jitter() / 2
        _ = signal.wait(timeout: .now() + pause / .seconds(1) * jitter)
        pause = min(pause * 2, mayPass ? Self.longestPause : Self.longestPauseWhenRefused)
        // A closed pool tells the worker not to retry.
        if !pool.isOpen, !pool.failed(self, error) { return nil }
      }
    }
  }

  /// - Returns: whether to open a new connection in place of this one.
  private func serve(_ connection: PostgresConnection, connectionGeneration: Int) -> Bool {
    // The caller is resumed once this worker is free again. Otherwise the caller's next work would go to another
    // connection.
    var tell: (() -> Void)?
    var ended: (any PostgresWork)?
    while true {
      let next = pool.next(for: self, connectionGeneration: connectionGeneration, after: ended)
      ended = nil
      tell?()
      tell = nil
      let work: any PostgresWork
      switch next {
      case .end: return false
      case .renew: return true
      case .work(let one): work = one
      case .wait:
        switch awaitWork() {
        case .work(let one): work = one
        case .wait, .renew: continue
        case .end: return false
        }
      }
      guard connection.isAlive() else {
        let goesOn = pool.lost(self, connectionGeneration: connectionGeneration, silent: false, after: work)
        pool.giveBack(work)
        return goesOn
      }
      tell = work.run(on: connection, jitter: pool.jitter)
      guard connection.isBroken else {
        ended = work
        continue
      }
      let goesOn = pool.lost(
        self, connectionGeneration: connectionGeneration, silent: connection.wasSilent, after: work)
      if let tell { tell() } else { pool.giveBack(work) }
      return goesOn
    }
  }

  /// Waits for work. The pool removes the worker from the idle list before it hands over work or closes.
  private func awaitWork() -> PostgresPool.Next {
    while signal.wait(timeout: .now() + Self.idleTimeout / .seconds(1)) == .timedOut {
      if pool.mayLeave(self) { return .end }
    }
    let work = handed.withLock { work in
      defer { work = nil }
      return work
    }
    return work.map { .work($0) } ?? .wait
  }
}
