import MoongateCore

/// Keeps messages from a site that is down: people are told at once, and the site is not flooded when it comes back.
///
///     closed --(so many failures in a row)--> open --(a pause)--> half open: one message tries
///        ^                                     ^                      |
///        +------------- it got through --------+----- it did not -----+
struct CircuitBreaker: Equatable, Sendable {
  enum State: Equatable, Sendable {
    /// - Parameter failures: in a row.
    case closed(failures: Int)
    case open(until: Timestamp)
    /// One message is on its way to find out.
    case halfOpen
  }

  /// What becomes of a message.
  enum Admission: Equatable, Sendable {
    case goes
    /// - Parameter until: nil while another one finds out.
    case refused(until: Timestamp?)
  }

  /// How many failures in a row open it.
  let most: Int
  /// How long it stays open.
  let pause: Duration
  private(set) var state = State.closed(failures: 0)

  init(most: Int = 5, pause: Duration = .seconds(10)) {
    self.most = most
    self.pause = pause
  }

  /// Whoever is told `goes` must report how it ended.
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

  /// The site answered.
  mutating func succeeded() { state = .closed(failures: 0) }

  /// The site did not answer, or not in a way that is to be believed.
  mutating func failed(at now: Timestamp) {
    switch state {
    case .closed(let failures) where failures + 1 < most: state = .closed(failures: failures + 1)
    case .closed, .halfOpen: state = .open(until: now + pause)
    // One that was sent before it opened, and took longer.
    case .open: break
    }
  }
}
