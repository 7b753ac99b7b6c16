import Synchronization

/// A clock that stands still until it is moved: for tests, and for trying out policies over a month in a second.
package final class ManualClock: GatewayClock {
  private struct State {
    var now: Timestamp
    var isSuspect = false
  }

  /// 2026-11-20T12:00:00Z: where it begins unless told otherwise.
  package static let start = Timestamp(milliseconds: 1_795_176_000_000)

  private let state: Mutex<State>

  package init(_ start: Timestamp = ManualClock.start) { state = Mutex(State(now: start)) }

  package func now() -> Timestamp { state.withLock { $0.now } }

  package var isSuspect: Bool {
    get { state.withLock { $0.isSuspect } }
    set { state.withLock { $0.isSuspect = newValue } }
  }

  /// Moves forward, or back to see what a bad clock does.
  package func advance(by duration: Duration) { state.withLock { $0.now = $0.now + duration } }

  package func set(_ moment: Timestamp) { state.withLock { $0.now = moment } }
}
