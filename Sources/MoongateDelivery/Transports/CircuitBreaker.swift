import MoongateCore

/// Stops sending messages to a site that is down: users get an error at once, and the site is not flooded when it
/// recovers.
///
///     closed --(so many failures in a row)--> open --(a pause)--> half open: one message tries
///        ^                                     ^                      |
///        +------------- success ----------------+----- failure --------+
struct CircuitBreaker: Equatable, Sendable {
  enum State: Equatable, Sendable {
    /// - failures: the number of consecutive failures.
    case closed(failures: Int)
    case open(until: Timestamp)
    /// One test message is being sent.
    case halfOpen
  }

  /// The decision for a message.
  enum Admission: Equatable, Sendable {
    case goes
    /// - until: the time of the next test; nil while a test message is being sent.
    case refused(until: Timestamp?)
  }

  /// The number of consecutive failures that opens the circuit.
  let most: Int
  /// How long the circuit stays open.
  let pause: Duration
  private(set) var state = State.closed(failures: 0)

  init(most: Int = 5, pause: Duration = .seconds(10)) {
    self.most = most
    self.pause = pause
  }

  /// Decides whether to send a message. After `goes`, the caller must report the result.
  mutating func admit(at now: Timestamp) -> Admission {
    switch state {
    case .closed: return .goes
    case .halfOpen: return .refused(until: nil)
    case .open(let until):
      guard now >= until else { return .refused(until: until) }
      state = .halfOpen
      return .goes
    }
  }

  /// Records that the site accepted the message.
  mutating func succeeded() { state = .closed(failures: 0) }

  /// Records that the site did not answer, or answered incorrectly.
  mutating func failed(at now: Timestamp) {
    switch state {
    case .closed(let failures) where failures + 1 < most: state = .closed(failures: failures + 1)
    case .closed, .halfOpen: state = .open(until: now + pause)
    // A message that was sent before the circuit opened and took longer.
    case .open: break
    }
  }
}
