import Synchronization

/// The outcome of work that several tasks can end, such as a call and its time limit: what comes first counts.
final class FirstOutcome<Outcome: Sendable>: Sendable {
  private struct State {
    var outcome: Outcome?
    var waiting: CheckedContinuation<Outcome, Never>?
  }

  private let state = Mutex(State())

  init() {}

  func end(_ outcome: Outcome) {
    let waiting = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
      guard state.outcome == nil else { return nil }
      state.outcome = outcome
      return state.waiting.take()
    }
    waiting?.resume(returning: outcome)
  }

  /// Waits for the first end. Only one task may wait.
  var value: Outcome {
    get async {
      await withCheckedContinuation { continuation in
        let outcome = state.withLock { state -> Outcome? in
          if state.outcome == nil { state.waiting = continuation }
          return state.outcome
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    }
  }
}
