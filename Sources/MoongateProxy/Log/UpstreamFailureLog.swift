import Logging
import MoongateCore

/// Logs failing upstreams, each at most once a minute for each reason, with the number of suppressed messages.
final class UpstreamFailureLog: Sendable {
  private struct Key: Hashable {
    let upstream: String
    let cause: UpstreamFailureCause
    /// A service can fail for two reasons of one cause, such as two faults of its responses. `FoldedLines` bounds the
    /// number of keys.
    let reason: String
    /// Whether the request was retried with another upstream of the route.
    var isPassedOver = false
  }

  private let logger: Logger
  private let clock: any GatewayClock
  private let lines = FoldedLines<Key, Key>()

  init(logger: Logger, clock: any GatewayClock) {
    self.logger = logger
    self.clock = clock
  }

  /// - Parameters:
  ///   - upstream: the address, or several addresses if no upstream of the route answered.
  ///   - decision: the id of the refused request.
  func report(_ cause: UpstreamFailureCause, upstream: String, route: String, reason: String, decision: DecisionID) {
    log(
      Key(upstream: upstream, cause: cause, reason: reason), .error, "an upstream failed",
      ["route": "\(route)", "decision": "\(decision)"])
  }

  /// Logs that a request was retried with another upstream of the route.
  func logRetry(_ cause: UpstreamFailureCause, upstream: String, route: String, reason: String) {
    log(
      Key(upstream: upstream, cause: cause, reason: reason, isPassedOver: true), .warning,
      "an upstream failed, and the request was retried with another one", ["route": "\(route)"])
  }

  /// Logs once per minute and key, with the number of suppressed messages.
  private func log(_ key: Key, _ level: Logger.Level, _ message: Logger.Message, _ metadata: Logger.Metadata) {
    guard let suppressed = lines.admit(key, key, at: clock.now()) else { return }
    var metadata = metadata
    metadata["upstream"] = "\(key.upstream)"
    metadata["reason"] = "\(key.reason)"
    if suppressed > 0 { metadata["suppressed"] = "\(suppressed)" }
    logger.log(level: level, message, metadata: metadata)
  }

  /// Logs the suppressed messages of past minutes.
  func logSuppressed() {
    for (key, count) in lines.takeOver(at: clock.now()) {
      let isPassedOver = key.isPassedOver
      logger.log(
        level: isPassedOver ? .warning : .error,
        isPassedOver ? "an upstream kept failing, and requests were retried with others" : "an upstream kept failing",
        metadata: ["upstream": "\(key.upstream)", "reason": "\(key.reason)", "suppressed": "\(count)"])
    }
  }
}
