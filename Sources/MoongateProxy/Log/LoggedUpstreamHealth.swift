import Logging
import MoongateCore

/// The log entry of an upstream whose health checks begin to fail, or to pass again.
struct LoggedUpstreamHealth: FoldedEntry, Hashable {
  let upstream: String
  /// The path of the check.
  let path: String
  /// Why checks fail; nil if they pass.
  let fault: String?

  var level: Logger.Level { fault == nil ? .notice : .warning }

  var message: Logger.Message {
    fault == nil ? "an upstream passes its health check again" : "an upstream fails its health check"
  }

  var messageOfMore: Logger.Message {
    fault == nil ? "an upstream keeps recovering" : "an upstream keeps failing its health check"
  }

  var metadata: Logger.Metadata {
    var metadata: Logger.Metadata = ["upstream": "\(upstream)", "path": "\(path)"]
    metadata["reason"] = fault.map { "\($0)" }
    return metadata
  }
}
