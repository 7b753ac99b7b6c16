/// Every bound on what a program may do, each with its reason. The time of one call is the operator's: `timeout` in
/// gateway.lua.
package struct ProgramLimits: Sendable {
  /// The longest line, either way, in bytes: as much as a body that the gateway itself takes from a client (http.md). A
  /// longer one ends the program.
  package var line = 65_536
  /// Calls that wait for an answer or to be sent. A thousand people at once must get through; what is beyond is
  /// answered 503 at once.
  package var outstanding = 1_024
  /// Bytes that wait for the program to read them: as many as all those calls have of the usual size, four times over.
  package var unread = 4 << 20
  /// From the start to the answer to `hello`, and from `configure` to its answer: an interpreter that starts cold takes
  /// up to one second, and ten times that beside a burst of other work.
  package var handshake: Duration = .seconds(10)
  /// Lines that answer nothing (logs, rubbish, what comes too late or twice): so many at once, and so many a second
  /// from then on. A program that writes more is ended: reading costs the gateway time.
  package var unasked = Rate(burst: 1_000, perSecond: 100)
  /// Requests of the program's to the gateway that are under way at once: as many as keep a database busy. Those beyond
  /// are refused at once.
  package var requests = 256
  /// Requests of the program's: so many at once, and so many a second from then on. A program that asks more is ended.
  package var requestRate = Rate(burst: 4_000, perSecond: 2_000)
  /// Bytes a second that are read of its standard error; the rest waits in its pipe, and the program with it.
  package var errorBytes = 65_536
  /// Lines of a program in the gateway's log; those beyond are counted.
  package var logLines = Rate(burst: 50, perSecond: 10)
  /// The first start after an end comes soon, since most ends are accidents; each further one waits twice as long, up
  /// to the longest.
  package var firstDelay: Duration = .milliseconds(100)
  package var longestDelay: Duration = .seconds(30)
  /// Whoever has run for so long begins again with the first delay.
  package var steady: Duration = .seconds(60)
  /// From the close of standard input to SIGTERM, and from there to SIGKILL: together well under the ten seconds that
  /// the gateway has to drain.
  package var farewell: Duration = .seconds(2)
  /// How long a program that no new request uses is kept for requests that were under way when it was replaced.
  package var linger: Duration = .seconds(10)

  package init() {}

  /// So many at once, and so many a second.
  package struct Rate: Sendable {
    package let burst: Double
    package let perSecond: Double

    package init(burst: Double, perSecond: Double) {
      self.burst = burst
      self.perSecond = perSecond
    }
  }
}

/// Lets as much through as a rate allows.
struct RateGate {
  private let rate: ProgramLimits.Rate
  private var left: Double
  private var last: ContinuousClock.Instant?

  init(_ rate: ProgramLimits.Rate) {
    self.rate = rate
    left = rate.burst
  }

  mutating func lets(at now: ContinuousClock.Instant) -> Bool {
    if let last, now > last { left = min(rate.burst, left + (now - last) / .seconds(1) * rate.perSecond) }
    last = now
    guard left >= 1 else { return false }
    left -= 1
    return true
  }
}

/// How long a program that ended waits for its next start: twice as long each time, up to a longest, and never two
/// alike.
struct RestartDelays {
  private let limits: ProgramLimits
  private var failures = 0

  init(_ limits: ProgramLimits) { self.limits = limits }

  /// - Parameters:
  ///   - ran: how long it ran; nil where it never came so far as to take calls.
  ///   - jitter: in 0..<1. Attack: many gateways whose programs fail with a site that they all use would all return to
  ///     it at the same moment.
  mutating func next(afterRunning ran: Duration?, jitter: Double) -> Duration {
    if let ran, ran >= limits.steady { failures = 0 }
    let doubled = limits.firstDelay * (1 << min(failures, 20))
    failures += 1
    return min(doubled, limits.longestDelay) * (0.8 + 0.4 * jitter)
  }
}
