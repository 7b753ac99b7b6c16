import Logging
import MoongateCore

/// What costs a client of HTTP/2 less than the gateway, and is therefore limited for each connection.
enum HTTP2Limit: Sendable {
  /// The client resets its own streams.
  case resets
  /// The client breaks a rule, so that the gateway resets the stream.
  case errors
  /// The client sends PING and SETTINGS frames, which the gateway has to answer.
  case controlFrames

  /// The cause in a log line.
  var words: String {
    switch self {
    case .resets: "it has reset too many streams"
    case .errors: "it has sent too many malformed requests or frames"
    case .controlFrames: "it has sent too many PING and SETTINGS frames"
    }
  }
}

/// The log entry of HTTP/2 connections of a peer that take no more requests because a limit is reached.
struct LoggedHTTP2Limit: FoldedEntry, Hashable {
  let limit: HTTP2Limit
  let peer: ClientAddress

  var level: Logger.Level { .warning }
  var message: Logger.Message { "an HTTP/2 connection takes no more requests" }
  var messageOfMore: Logger.Message { "further HTTP/2 connections take no more requests" }
  var metadata: Logger.Metadata { ["peer": "\(peer)", "reason": "\(limit.words)"] }
}
