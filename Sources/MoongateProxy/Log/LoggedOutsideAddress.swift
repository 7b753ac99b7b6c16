import Logging
import MoongateCore

/// The log entry of a service whose responses name paths that are not below the one in `to`. Clients receive them
/// unchanged, and may reach another service by them, or none.
struct LoggedOutsideAddress: FoldedEntry, Hashable {
  /// The field, such as `Location`.
  let field: String
  let upstream: String
  /// The path in `to`.
  let base: String

  var level: Logger.Level { .warning }
  var message: Logger.Message { "a response names a path outside of the one in `to`" }
  var messageOfMore: Logger.Message { "further responses name a path outside of the one in `to`" }

  var metadata: Logger.Metadata {
    [
      "upstream": "\(upstream)", "field": "\(field)", "to": "\(base)",
      "effect": "it is passed on unchanged, and does not lead to this service",
    ]
  }
}
