import Logging
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateProxy

/// The log messages of failing upstreams.
@Suite struct UpstreamFailureLogTests {
  private let clock = ManualClock()
  private let captured = CapturedLog()

  private func report(
    _ log: FoldedLog<LoggedUpstreamFailure>, _ cause: UpstreamFailureCause = .timeout,
    upstream: String = "http://one:1", reason: String? = nil, isRetried: Bool = false
  ) {
    log.report(
      LoggedUpstreamFailure(upstream: upstream, cause: cause, reason: reason ?? cause.words, isRetried: isRetried),
      ["route": "/", "decision": "dc_1"])
  }

  /// Attack: many requests to a failing service would fill the disk with log lines.
  @Test func upstreamFailureIsLoggedOnceAMinuteWithACount() {
    let log = FoldedLog<LoggedUpstreamFailure>(logger: captured.logger, clock: clock)
    for _ in 0..<1_000 { report(log) }
    report(log, upstream: "http://two:2")
    report(log, .unreachable)
    #expect(captured.lines.filter { $0.contains("an upstream failed") }.count == 3)
    log.logSuppressed()
    #expect(captured.lines.count == 3, "the minute is not over")
    clock.advance(by: .seconds(61))
    log.logSuppressed()
    let last = captured.lines.filter { $0.contains("an upstream kept failing") }
    #expect(
      last.count == 1
        && last.allSatisfy {
          $0.contains("999") && $0.contains("http://one:1") && $0.contains("it does not respond in time")
        },
      "\(last)")
    report(log)
    #expect(captured.lines.filter { $0.contains("an upstream failed") }.count == 4)
  }

  @Test func eachReasonOfACauseIsLogged() {
    let log = FoldedLog<LoggedUpstreamFailure>(logger: captured.logger, clock: clock)
    for reason in ["a chunk's size is not a hexadecimal number", "no HTTP/1 status line"] {
      for _ in 0..<2 {
        report(log, .unreadable, reason: reason)
      }
      #expect(captured.lines.count { $0.contains(reason) } == 1)
    }
    #expect(captured.lines.count == 2)
    // Attack: a service with ever new reasons. They are bounded.
    for number in 0..<2_000 {
      report(log, .cut, reason: "\(number)")
    }
    #expect(captured.lines.count == 1_000)
  }

  /// If one of several upstreams is down, requests succeed with another one, and only the log reports it.
  @Test func skippedUpstreamIsLoggedOnceAMinute() {
    let log = FoldedLog<LoggedUpstreamFailure>(logger: captured.logger, clock: clock)
    for _ in 0..<10 { report(log, .unreachable, reason: "refused", isRetried: true) }
    report(log, .unreachable)
    #expect(
      captured.lines.filter { $0.contains("the request was retried") && $0.contains("http://one:1") }
        .count == 1)
    #expect(captured.lines.count == 2)
    clock.advance(by: .seconds(61))
    log.logSuppressed()
    #expect(
      captured.lines.filter { $0.contains("requests were retried") && $0.contains("9") }.count == 1)
  }
}
