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

/// Logs connections of HTTP/2 that take no more requests because a limit is reached, each peer and limit at most once a
/// minute with its count.
final class HTTP2LimitLog: Sendable {
  private struct Key: Hashable {
    let peer: ClientAddress
    let limit: HTTP2Limit
  }

  private let logger: Logger
  private let clock: any GatewayClock
  private let lines = FoldedLines<Key, Key>()

  init(logger: Logger, clock: any GatewayClock) {
    self.logger = logger
    self.clock = clock
  }

  func report(_ limit: HTTP2Limit, from peer: ClientAddress) {
    let key = Key(peer: peer, limit: limit)
    guard let suppressed = lines.admit(key, key, at: clock.now()) else { return }
    log(key, "an HTTP/2 connection takes no more requests", suppressed: suppressed)
  }

  /// Logs the suppressed lines of past minutes.
  func logSuppressed() {
    for (key, count) in lines.takeOver(at: clock.now()) {
      log(key, "further HTTP/2 connections take no more requests", suppressed: count)
    }
  }

  private func log(_ key: Key, _ message: Logger.Message, suppressed: Int) {
    var metadata: Logger.Metadata = ["peer": "\(key.peer)", "reason": "\(key.limit.words)"]
    if suppressed > 0 { metadata["suppressed"] = "\(suppressed)" }
    logger.warning(message, metadata: metadata)
  }
}
