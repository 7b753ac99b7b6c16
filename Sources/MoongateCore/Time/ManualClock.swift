import Synchronization

/// A clock that only moves when it is told to, for tests and for simulating a month of policies in a second.
package final class ManualClock: GatewayClock {
  private struct State {
    var now: Timestamp
    var isSuspect = false
  }

  /// 2026-11-20T12:00:00Z, the default start.
  package static let start = Timestamp(milliseconds: 1_795_176_000_000)

  private let state: Mutex<State>

  package init(_ start: Timestamp = ManualClock.start) { state = Mutex(State(now: start)) }

  package func now() -> Timestamp { state.withLock { $0.now } }

  package var isSuspect: Bool {
    get { state.withLock { $0.isSuspect } }
    set { state.withLock { $0.isSuspect = newValue } }
  }

  /// Moves the clock forward, or back to simulate a bad clock.
  package func advance(by duration: Duration) { state.withLock { $0.now = $0.now + duration } }

  package func set(_ moment: Timestamp) { state.withLock { $0.now = moment } }
}
