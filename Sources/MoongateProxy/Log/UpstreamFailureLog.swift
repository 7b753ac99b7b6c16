import Logging
import MoongateCore

/// Logs failing upstreams, each at most once a minute with the number of suppressed messages.
final class UpstreamFailureLog: Sendable {
  private struct Key: Hashable {
    let upstream: String
    let cause: UpstreamFailureCause
    /// Whether the request was retried with another upstream of the route.
    var isPassedOver = false
  }

  private struct Line {
    let key: Key
    let reason: String
  }

  private let logger: Logger
  private let clock: any GatewayClock
  private let lines = FoldedLines<Key, Line>()

  init(logger: Logger, clock: any GatewayClock) {
    self.logger = logger
    self.clock = clock
  }

  /// - Parameters:
  ///   - upstream: the address, or several addresses if no upstream of the route answered.
  ///   - decision: the id of the refused request.
  func report(_ cause: UpstreamFailureCause, upstream: String, route: String, reason: String, decision: DecisionID) {
    log(
      Line(key: Key(upstream: upstream, cause: cause), reason: reason), .error, "an upstream failed",
      ["route": "\(route)", "decision": "\(decision)"])
  }

  /// Logs that a request was retried with another upstream of the route.
  func logRetry(_ cause: UpstreamFailureCause, upstream: String, route: String, reason: String) {
    log(
      Line(key: Key(upstream: upstream, cause: cause, isPassedOver: true), reason: reason), .warning,
      "an upstream failed, and the request was retried with another one", ["route": "\(route)"])
  }

  /// Logs once per minute and key, with the number of suppressed messages.
  private func log(_ line: Line, _ level: Logger.Level, _ message: Logger.Message, _ metadata: Logger.Metadata) {
    guard let suppressed = lines.admit(line.key, line, at: clock.now()) else { return }
    var metadata = metadata
    metadata["upstream"] = "\(line.key.upstream)"
    metadata["reason"] = "\(line.reason)"
    if suppressed > 0 { metadata["suppressed"] = "\(suppressed)" }
    logger.log(level: level, message, metadata: metadata)
  }

  /// Logs the suppressed messages of past minutes.
  func logSuppressed() {
    for (line, count) in lines.takeOver(at: clock.now()) {
      let isPassedOver = line.key.isPassedOver
      logger.log(
        level: isPassedOver ? .warning : .error,
        isPassedOver ? "an upstream kept failing, and requests were retried with others" : "an upstream kept failing",
        metadata: ["upstream": "\(line.key.upstream)", "reason": "\(line.reason)", "suppressed": "\(count)"])
    }
  }
}
