/// The limits on a program, with their reasons. The timeout of a call is set by the operator: `timeout` in gateway.lua.
package struct ProgramLimits: Sendable {
  /// The maximum length of a line in either direction, in bytes: twice as much as a request body from a client, or the
  /// groups and attributes of an identity, may have. The program is killed if it exceeds the limit.
  package var line = 131_072
  /// The maximum number of open and queued calls: enough for a thousand concurrent users. Further calls fail at once
  /// with 503.
  package var outstanding = 1_024
  /// The maximum number of bytes that wait for the program: four times what all calls of the usual size need.
  package var unread = 4 << 20
  /// The time limit from the start to the answer to `hello`, and from `configure` to its answer. A cold start of an
  /// interpreter takes up to one second, and ten times that on a busy machine.
  package var handshake: Duration = .seconds(10)
  /// The rate of lines that are not answers (logs, invalid lines, late or repeated answers). The program is killed if
  /// it exceeds the rate, because reading costs time.
  package var unrequestedLines = Rate(burst: 1_000, perSecond: 100)
  /// The maximum number of concurrent requests from the program: enough to keep a database busy. Further requests are
  /// refused at once.
  package var requests = 256
  /// The rate of requests from the program. The program is killed if it exceeds the rate.
  package var requestRate = Rate(burst: 4_000, perSecond: 2_000)
  /// The number of bytes per second that are read from standard error. The rest stays in the pipe and blocks the
  /// program.
  package var errorBytes = 65_536
  /// The rate of a program's lines in the gateway's log. Further lines are only counted.
  package var logLines = Rate(burst: 50, perSecond: 10)
  /// The delay of the first restart, which is short because most crashes are accidents. Each further delay doubles, up
  /// to `longestDelay`.
  package var firstDelay: Duration = .milliseconds(100)
  package var longestDelay: Duration = .seconds(30)
  /// A program that has run for this time starts again with the first delay.
  package var steady: Duration = .seconds(60)
  /// The time from closing standard input to SIGTERM, and from there to SIGKILL. Twice this is well under the ten
  /// seconds in which the gateway drains.
  package var farewell: Duration = .seconds(2)
  /// How long a program without new requests is kept for requests that were open when it was replaced.
  package var linger: Duration = .seconds(10)

  package init() {}

  /// A burst and a sustained rate per second.
  package struct Rate: Sendable {
    package let burst: Double
    package let perSecond: Double

    package init(burst: Double, perSecond: Double) {
      self.burst = burst
      self.perSecond = perSecond
    }
  }
}

/// A token bucket for a rate.
struct RateGate {
  private let rate: ProgramLimits.Rate
  private var left: Double
  private var last: ContinuousClock.Instant?

  init(_ rate: ProgramLimits.Rate) {
    self.rate = rate
    left = rate.burst
  }

  mutating func allows(at now: ContinuousClock.Instant) -> Bool {
    if let last, now > last { left = min(rate.burst, left + (now - last) / .seconds(1) * rate.perSecond) }
    last = now
    guard left >= 1 else { return false }
    left -= 1
    return true
  }
}

/// The delay before the next restart. It doubles with each failure up to a maximum, with jitter.
struct RestartDelays {
  private let limits: ProgramLimits
  private var failures = 0

  init(_ limits: ProgramLimits) { self.limits = limits }

  /// - Parameters:
  ///   - ran: how long the program ran; nil if it never accepted calls.
  ///   - jitter: in 0..<1. Attack: after an outage of a shared site, the programs of many gateways would all restart at
  ///     the same moment.
  mutating func next(afterRunning ran: Duration?, jitter: Double) -> Duration {
    if let ran, ran >= limits.steady { failures = 0 }
    let doubled = limits.firstDelay * (1 << min(failures, 20))
    failures += 1
    return min(doubled, limits.longestDelay) * (0.8 + 0.4 * jitter)
  }
}
