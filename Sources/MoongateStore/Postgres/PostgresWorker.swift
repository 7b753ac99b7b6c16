import Dispatch
import Foundation
import MoongateCore
import Synchronization

/// A thread with a connection, which blocks for as long as the database takes.
final class PostgresWorker: Sendable {
  /// A connection at rest for so long is given up, but for the last one.
  private static let rest: Duration = .seconds(300)
  private static let firstPause: Duration = .milliseconds(50)
  /// Between two attempts to connect: what may go away by itself is noticed within about a second, a wrong password is
  /// not tried that often.
  private static let longestPause: Duration = .seconds(1)
  private static let longestPauseWhenRefused: Duration = .seconds(5)

  private let pool: PostgresPool
  private let signal = DispatchSemaphore(value: 0)
  private let handed = Mutex<(any PostgresWork)?>(nil)

  init(pool: PostgresPool) { self.pool = pool }

  func start() {
    Thread.detachNewThread {
      ThreadPriority.answering.take()
      while let (connection, era) = self.connect() {
        guard self.serve(connection, era: era) else { return }
      }
    }
  }

  /// Hands work to a worker that is at rest.
  func take(_ work: any PostgresWork) {
    handed.withLock { $0 = work }
    signal.signal()
  }

  func wake() { signal.signal() }

  /// - Returns: nil where the worker is not needed any more.
  private func connect() -> (PostgresConnection, era: Int)? {
    var pause = Self.firstPause
    var isFirst = true
    while true {
      do throws(PostgresError) {
        let connection = try PostgresConnection.open(pool.address, timing: pool.timing, numbers: pool.numbers)
        return (connection, pool.connected(self))
      } catch {
        // A server that hung up in the middle may well be there again: one that fails over, or a balancer that has
        // found that out just now.
        defer { isFirst = false }
        if isFirst, error == .notConnected(.hangsUp) { continue }
        guard pool.failed(self, error) else { return nil }
        var mayPass = true
        if case .notConnected(let obstacle) = error { mayPass = obstacle.mayPass }
        let jitter = 0.75 + pool.jitter() / 2
        _ = signal.wait(timeout: .now() + pause / .seconds(1) * jitter)
        pause = min(pause * 2, mayPass ? Self.longestPause : Self.longestPauseWhenRefused)
        // A pool that was closed says that nobody tries again.
        if !pool.isOpen, !pool.failed(self, error) { return nil }
      }
    }
  }

  /// - Returns: whether a new connection is to take this one's place.
  private func serve(_ connection: PostgresConnection, era: Int) -> Bool {
    // Whoever waits for work that is done is told when this worker is free for what he asks next: else that would go to
    // another connection.
    var tell: (() -> Void)?
    var ended: (any PostgresWork)?
    while true {
      let next = pool.next(for: self, era: era, after: ended)
      ended = nil
      tell?()
      tell = nil
      let work: any PostgresWork
      switch next {
      case .end: return false
      case .renew: return true
      case .work(let one): work = one
      case .rest:
        switch rest() {
        case .work(let one): work = one
        case .rest, .renew: continue
        case .end: return false
        }
      }
      guard connection.isAlive() else {
        let goesOn = pool.lost(self, era: era, silent: false, after: work)
        pool.giveBack(work)
        return goesOn
      }
      tell = work.run(on: connection, jitter: pool.jitter)
      guard connection.isBroken else {
        ended = work
        continue
      }
      let goesOn = pool.lost(self, era: era, silent: connection.wasSilent, after: work)
      if let tell { tell() } else { pool.giveBack(work) }
      return goesOn
    }
  }

  /// Waits for work. Those who hand it over, and those who close the pool, have taken the worker from among the resting
  /// ones.
  private func rest() -> PostgresPool.Next {
    while signal.wait(timeout: .now() + Self.rest / .seconds(1)) == .timedOut {
      if pool.mayLeave(self) { return .end }
    }
    let work = handed.withLock { work in
      defer { work = nil }
      return work
    }
    return work.map { .work($0) } ?? .rest
  }
}
