import Foundation
import Synchronization

/// The only source of time in the core.
package protocol GatewayClock: Sendable {
  /// The current time. Never earlier than any time returned before.
  func now() -> Timestamp
  /// Whether the system clock was seen more than two seconds behind this clock.
  var isSuspect: Bool { get }
}

/// The system's wall clock, adjusted to move only forward and at a steady pace.
///
/// Attack: someone who can set the machine's clock back (or a bad NTP server) would revive codes or extend locks. While
/// the wall clock is behind, time advances by the monotonic clock from the latest time seen, so that a lock of 15
/// minutes lasts 15 minutes. After a restart it begins no earlier than the latest time that the store has recorded.
package final class SystemClock: GatewayClock {
  private struct State {
    var latest: Timestamp
    var seenAt: ContinuousClock.Instant
    var suspect: Bool
  }

  /// If the wall clock is behind by more than this, the clock does not slow down to wait for it.
  private static let tolerance: Duration = .seconds(2)

  private let state: Mutex<State>
  private let wall: @Sendable () -> Timestamp
  private let steady: @Sendable () -> ContinuousClock.Instant

  /// - Parameters:
  ///   - floor: the latest time that the store has recorded. The clock starts no earlier.
  ///   - wall, steady: the system's clocks. Tests replace them.
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
        // Keep fractions of a millisecond for the next call. Otherwise time would stand still if the clock is read
        // often.
        state.seenAt = state.seenAt + (expected - state.latest)
        state.latest = expected
      } else {
        // Reduce a small lead by running at half speed. Otherwise every jitter of the wall clock would add up and nodes
        // would drift apart.
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
