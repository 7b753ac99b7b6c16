import MoongateCore
import Synchronization

/// The clock of the store's server as seen by a node: a monotonic clock, synchronised with the server. Nodes agree even
/// if their own clocks differ by a minute.
package final class ServerClock: Sendable {
  private struct State {
    var moment: Timestamp
    var at: ContinuousClock.Instant
  }

  /// A reading of the server's clock.
  struct Reading: Sendable {
    /// The server read its clock between these two times.
    let asked: ContinuousClock.Instant
    let answered: ContinuousClock.Instant
    let moment: Timestamp

    fileprivate var uncertainty: Duration { answered - asked }
  }

  /// Rounded, not truncated, to milliseconds: half a millisecond matters when nodes are compared.
  static let question = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"

  private let state: Mutex<State>
  private let steady: @Sendable () -> ContinuousClock.Instant

  /// - Parameter readings: at least one. The one with the shortest round trip is used.
  init?(_ readings: [Reading], steady: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) {
    guard let best = Self.best(readings) else { return nil }
    state = Mutex(best)
    self.steady = steady
  }

  /// The server's current time, for `SystemClock(floor:wall:)`. May step back when the clock is synchronised.
  package var wall: @Sendable () -> Timestamp { { self.now() } }

  /// Synchronises the clock with new readings.
  func set(_ readings: [Reading]) {
    guard let best = Self.best(readings) else { return }
    state.withLock { $0 = best }
  }

  private func now() -> Timestamp {
    let steady = steady()
    return state.withLock { $0.moment + (steady - $0.at) }
  }

  /// The best estimate of the time of a reading is the middle between the question and the answer.
  private static func best(_ readings: [Reading]) -> State? {
    readings.min { $0.uncertainty < $1.uncertainty }.map { State(moment: $0.moment, at: $0.asked + $0.uncertainty / 2) }
  }
}

extension PostgresConnection {
  /// Reads the server's clock several times.
  func clockReadings(_ count: Int = 5) throws(PostgresError) -> [ServerClock.Reading] {
    var readings: [ServerClock.Reading] = []
    for _ in 0..<count {
      queue(ServerClock.question, keeps: true)
      let asked = ContinuousClock.now
      let row = try exchange().first?.rows.first
      let answered = ContinuousClock.now
      guard let row, let moment = try? row.moment(0) else { throw broken(.lost) }
      readings.append(ServerClock.Reading(asked: asked, answered: answered, moment: moment))
    }
    return readings
  }
}
