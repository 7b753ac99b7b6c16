import Foundation
import Synchronization

/// The only source of time in the core.
package protocol GatewayClock: Sendable {
  /// The present moment. Never earlier than any moment that this clock has told before.
  func now() -> Timestamp
  /// Whether the system's clock has been seen to stand behind what this clock tells, by more than two seconds.
  var isSuspect: Bool { get }
}

/// The system's wall clock, made to go forward only and at a steady pace.
///
/// Attack: who can set the machine's clock back (or a bad NTP server) would revive codes or stretch locks. While the
/// wall clock stands behind, time goes on by the monotonic clock from the latest moment seen, so that a lock of 15
/// minutes lasts 15 minutes. After a restart it begins no earlier than the latest moment that the store has recorded.
package final class SystemClock: GatewayClock {
  private struct State {
    var latest: Timestamp
    var seenAt: ContinuousClock.Instant
    var suspect: Bool
  }

  /// A wall clock that stands behind by more is not waited for.
  private static let tolerance: Duration = .seconds(2)

  private let state: Mutex<State>
  private let wall: @Sendable () -> Timestamp
  private let steady: @Sendable () -> ContinuousClock.Instant

  /// - Parameters:
  ///   - floor: the latest moment that the store has recorded; time begins no earlier.
  ///   - wall, steady: the system's clocks; tests put their own here.
  package init(
    floor: Timestamp, wall: @escaping @Sendable () -> Timestamp = SystemClock.systemWall,
    steady: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
  ) {
    self.wall = wall
    self.steady = steady
    state = Mutex(State(latest: floor, seenAt: steady(), suspect: false))
  }

  package func now() -> Timestamp {
    let wall = wall()
    let steady = steady()
    return state.withLock { state in
      let elapsed = max(.zero, steady - state.seenAt)
      let expected = state.latest + elapsed
      let lead = expected - wall
      state.suspect = lead > Self.tolerance
      if lead <= .zero {
        state.latest = wall
        state.seenAt = steady
      } else if state.suspect {
        // What is less than a millisecond is kept for the next time: else time would stand still for whoever asks
        // often.
        state.seenAt = state.seenAt + (expected - state.latest)
        state.latest = expected
      } else {
        // A small lead is given back by going at half the pace: else every jitter of the wall clock would stay for
        // ever, and nodes drift apart.
        let next = max(state.latest + elapsed / 2, wall)
        if next > state.latest { state.seenAt = steady }
        state.latest = max(state.latest, next)
      }
      return state.latest
    }
  }

  package var isSuspect: Bool { state.withLock { $0.suspect } }

  /// The system's real-time clock.
  package static let systemWall: @Sendable () -> Timestamp = {
    Timestamp(milliseconds: Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)))
  }
}
