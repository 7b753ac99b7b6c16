import Logging
import MoongateCore

/// The log entry of a failing upstream. A service can fail for several reasons of one cause, such as two faults of its
/// responses, and each reason has a line.
struct LoggedUpstreamFailure: FoldedEntry, Hashable {
  /// The address, or several addresses if no upstream of the route answered.
  let upstream: String
  let cause: UpstreamFailureCause
  let reason: String
  /// Whether the request was sent again, to another upstream of the route or to the same one.
  let isRetried: Bool

  var level: Logger.Level { isRetried ? .warning : .error }

  var message: Logger.Message {
    isRetried ? "an upstream failed, and the request was retried" : "an upstream failed"
  }

  var messageOfMore: Logger.Message {
    isRetried ? "an upstream kept failing, and requests were retried" : "an upstream kept failing"
  }

  var metadata: Logger.Metadata { ["upstream": "\(upstream)", "reason": "\(reason)"] }
}
