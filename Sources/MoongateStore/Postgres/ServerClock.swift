import MoongateCore
import Synchronization

/// The clock of the store's server, told by a node: steady time that was set by asking the server. Nodes whose own
/// clocks are a minute apart agree.
package final class ServerClock: Sendable {
  private struct State {
    var moment: Timestamp
    var at: ContinuousClock.Instant
  }

  /// One answer of the server to the question what time it is.
  struct Reading: Sendable {
    /// Between these two the server looked at its clock.
    let asked: ContinuousClock.Instant
    let answered: ContinuousClock.Instant
    let moment: Timestamp

    fileprivate var uncertainty: Duration { answered - asked }
  }

  /// Microseconds: half a millisecond counts when nodes are compared.
  static let question = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"

  private let state: Mutex<State>
  private let steady: @Sendable () -> ContinuousClock.Instant

  /// - Parameter readings: at least one; the one that took the shortest time counts.
  init?(_ readings: [Reading], steady: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) {
    guard let best = Self.best(readings) else { return nil }
    state = Mutex(best)
    self.steady = steady
  }

  /// For `SystemClock(floor:wall:)`: what the server's clock shows now. May step back when it is set anew.
  package var wall: @Sendable () -> Timestamp { { self.now() } }

  /// Sets it by readings that were taken just now.
  func set(_ readings: [Reading]) {
    guard let best = Self.best(readings) else { return }
    state.withLock { $0 = best }
  }

  private func now() -> Timestamp {
    let steady = steady()
    return state.withLock { $0.moment + (steady - $0.at) }
  }

  /// The server looked at its clock somewhere between the question and the answer: in the middle, most likely.
  private static func best(_ readings: [Reading]) -> State? {
    readings.min { $0.uncertainty < $1.uncertainty }.map { State(moment: $0.moment, at: $0.asked + $0.uncertainty / 2) }
  }
}

extension PostgresConnection {
  /// Asks what time it is, a few times.
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
