import Logging
import MoongateCore

/// The log entry of requests that reach a service without the access token that their route promises (`bearer`).
struct LoggedMissingToken: FoldedEntry, Hashable {
  /// The `client_id`.
  let app: String
  /// The place of the route in routes.lua.
  let route: String
  let reason: String
  /// The rule of apps.lua that refused the user, with its place; empty if none did.
  let rule: String
  /// Whether the user is refused. Otherwise the token could not be made.
  let isRefusal: Bool

  var level: Logger.Level { isRefusal ? .warning : .error }
  var message: Logger.Message { "a service gets no access token for a user" }
  var messageOfMore: Logger.Message { "a service still gets no access token for some users" }

  var metadata: Logger.Metadata {
    var metadata: Logger.Metadata = [
      "app": "\(app)", "route": "\(route)", "reason": "\(reason)",
      "effect": "requests go on without Authorization",
    ]
    if !rule.isEmpty { metadata["rule"] = "\(rule)" }
    return metadata
  }
}
