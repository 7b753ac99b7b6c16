import Logging
import MoongateCore

/// Tells the operator of upstreams that fail: each at most once a minute, with how many requests it was.
final class UpstreamFailureLog: Sendable {
  /// Why a request got no answer. A closed set: it labels a metric.
  enum Cause: String, CaseIterable, Sendable {
    case unreachable, timeout, closed, unreadable
    /// The answer ended before it was whole.
    case cut

    var words: String {
      switch self {
      case .unreachable: "it cannot be reached"
      case .timeout: "it does not answer"
      case .closed: "it closed the connection"
      case .unreadable: "its answer cannot be read"
      case .cut: "it died inside its answer"
      }
    }
  }

  private struct Key: Hashable {
    let upstream: String
    let cause: Cause
    /// Whether another upstream of the route was asked in its place.
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
  ///   - upstream: where it is; several, where a route has several and none answered.
  ///   - decision: of the request that was refused for it.
  func report(_ cause: Cause, upstream: String, route: String, reason: String, decision: DecisionID) {
    tell(
      Key(upstream: upstream, cause: cause), .error, "an upstream failed",
      ["route": "\(route)", "reason": "\(reason)", "decision": "\(decision)"])
  }

  /// Another upstream of the route is asked in place of this one.
  func passedOver(_ cause: Cause, upstream: String, route: String) {
    tell(
      Key(upstream: upstream, cause: cause, isPassedOver: true), .warning,
      "an upstream was passed over, and another one is asked",
      ["route": "\(route)", "reason": "\(cause.words)"])
  }

  /// Once a minute for each key, with how often it was left unsaid.
  private func tell(_ key: Key, _ level: Logger.Level, _ message: Logger.Message, _ metadata: Logger.Metadata) {
    guard let unsaid = lines.admit(key, key, at: clock.now()) else { return }
    var metadata = metadata
    metadata["upstream"] = "\(key.upstream)"
    if unsaid > 0 { metadata["suppressed"] = "\(unsaid)" }
    logger.log(level: level, message, metadata: metadata)
  }

  /// Tells how many requests failed in minutes that are over.
  func tellSuppressed() {
    for (key, count) in lines.takeOver(at: clock.now()) {
      logger.log(
        level: key.isPassedOver ? .warning : .error,
        key.isPassedOver ? "an upstream went on being passed over" : "an upstream went on failing",
        metadata: ["upstream": "\(key.upstream)", "reason": "\(key.cause.words)", "suppressed": "\(count)"])
    }
  }
}
