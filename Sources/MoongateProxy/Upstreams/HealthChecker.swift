import MoongateCore
import NIOCore

/// Makes the health checks of one upstream on one event loop, one after the other.
///
/// `tick` is called ten times a second; there is no timer that could outlive the event loop or the generation.
final class HealthChecker: UpstreamClient {
  /// The longest time that a check takes, with the TLS handshake.
  private static let maxTime: TimeAmount = .seconds(5)
  /// The time after the first failed check, so that a failure is confirmed soon.
  private static let confirmation: TimeAmount = .seconds(1)
  /// The maximum number of bytes of a body that are read. The status decides, but a service may log an error if its
  /// response is not read.
  private static let maxBody = 64 * 1024

  private let health: UpstreamHealth
  private let target: UpstreamTarget
  private let log: FoldedLog<LoggedUpstreamHealth>
  private let interval: TimeAmount
  private let request: ByteBuffer
  private var connection: UpstreamConnection?
  private var due = NIODeadline.uptimeNanoseconds(0)
  /// When the check that is made began; nil between checks.
  private var began: NIODeadline?
  /// The number of checks, so that a connection that is opened too late is not used.
  private var number = 0
  private var status: Int?
  private var bodySize = 0
  /// The number of failed checks in a row.
  private var failures = 0

  /// - Parameter target: used for checks only.
  init(_ health: UpstreamHealth, target: UpstreamTarget, log: FoldedLog<LoggedUpstreamHealth>) {
    self.health = health
    self.target = target
    self.log = log
    let check = health.check
    interval = .nanoseconds(max(1_000_000, check.rule.interval.wholeNanoseconds))
    request = ByteBuffer(
      string: "GET \(check.rule.path) HTTP/1.1\r\nHost: \(check.host)\r\nUser-Agent: moongate-health-check\r\n"
        + "Accept: */*\r\n\r\n")
  }

  /// Begins a check that is due, and ends one that takes too long.
  /// - Returns: false if the check is over.
  func tick(_ now: NIODeadline) -> Bool {
    guard !health.isOver else {
      stop()
      return false
    }
    if let began {
      if now - began >= min(interval, Self.maxTime) { finish("it does not respond in time", at: now) }
    } else if now >= due {
      begin(now)
    }
    return true
  }

  private func begin(_ now: NIODeadline) {
    began = now
    number += 1
    status = nil
    bodySize = 0
    let asked = number
    target.connect(timeout: min(interval, Self.maxTime)) { result in
      guard self.number == asked, self.began != nil else {
        if case .success(let connection) = result { connection.close() }
        return
      }
      switch result {
      case .failure(let error): self.finish(ConnectFailure(error).reason, at: now)
      case .success(let connection):
        self.connection = connection
        connection.begin(for: self, toHead: false, wantsUpgrade: false)
        connection.write(self.request)
        connection.flush()
      }
    }
  }

  /// Ends the check.
  /// - Parameters:
  ///   - fault: why the upstream did not answer.
  ///   - now: the time, or an earlier one within the check.
  private func finish(_ fault: String?, at now: NIODeadline) {
    guard began != nil else { return }
    stop()
    let isGood = status.map { (200..<400).contains($0) } ?? false
    failures = isGood ? 0 : failures + 1
    due = now + (failures == 1 ? min(interval, Self.confirmation) : interval)
    guard health.record(failures: failures) else { return }
    let reason = status.map { "it answered with \($0)" } ?? fault ?? UpstreamFailureCause.closed.words
    log.report(
      LoggedUpstreamHealth(
        upstream: health.check.upstream.description, path: health.check.rule.path, fault: isGood ? nil : reason))
  }

  private func stop() {
    began = nil
    connection?.close()
    connection = nil
    // Each check opens a connection, also to an upstream that serves several requests on one.
    target.closeIdle(before: .distantFuture)
  }

  // MARK: UpstreamClient

  var takesAnswer: Bool { true }

  func upstreamWritabilityChanged() {}
  func answerInterim(_ status: Int) {}
  func flushAnswer() {}

  func answerBegan(_ head: ResponseHead, by connection: UpstreamConnection) { status = head.status }

  func answerData(_ data: ByteBuffer) {
    bodySize += data.readableBytes
    if bodySize > Self.maxBody { finish(nil, at: began ?? due) }
  }

  func answerEnded(by connection: UpstreamConnection) { finish(nil, at: began ?? due) }

  func upstreamFailed(_ failure: UpstreamFailure, _ connection: UpstreamConnection) {
    finish(failure.reason ?? UpstreamFailureCause.closed.words, at: began ?? due)
  }

  // A connection that was not asked to switch protocols fails if it does.
  func tunnelBegan(_ head: ResponseHead, by connection: UpstreamConnection) {}
  func tunnelRead(_ bytes: ByteBuffer) {}
  func tunnelEnded() {}
}
