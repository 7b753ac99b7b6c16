import Logging
import Synchronization

/// What a program has written or done, for tests of a provider.
package enum ReceivedNotification: Sendable {
  /// A line of its standard error, a `log` message, or the text of a failure, unredacted.
  case said(String)
  /// A violation of the protocol.
  /// - kind: the kind of complaint: `rubbish`, `notification`, `request`, `stray`, `late`, `farewell`, …
  case misbehaved(kind: String, sentence: String)
  /// A line of the protocol, without its end.
  /// - isOut: whether the gateway sent it.
  case message(String, isOut: Bool)
}

/// Writes a program's violations and its own messages to the gateway's log, redacted and rate-limited.
final class ProgramLog: Sendable {
  private struct RateGates {
    var said: RateGate
    var suppressed = 0
    /// The last time of each kind of complaint, and the number suppressed since.
    var complaints: [String: (at: ContinuousClock.Instant, left: Int)] = [:]
  }

  /// Repeated complaints are logged once in this time, with their count.
  private static let complaintPause: Duration = .seconds(10)
  /// The maximum length of a program's line in the log, in characters.
  private static let longest = 1_000

  private let logger: Logger
  private let gates: Mutex<RateGates>
  let secrets: SecretTexts
  private let listener: (@Sendable (ReceivedNotification) -> Void)?

  /// - Parameter listener: receives everything unredacted, for tests of a provider. Nil in a running gateway.
  init(
    _ logger: Logger, name: String, limits: ProgramLimits, secrets: SecretTexts,
    listener: (@Sendable (ReceivedNotification) -> Void)? = nil
  ) {
    self.listener = listener
    var logger = logger
    logger[metadataKey: "provider"] = "\(name)"
    self.logger = logger
    self.secrets = secrets
    gates = Mutex(RateGates(said: RateGate(limits.logLines)))
  }

  /// Logs a message once.
  func notice(_ sentence: String) { logger.notice("\(secrets.redacted(sentence))") }

  /// Logs a violation by the program.
  /// - Parameter kind: complaints of one kind are logged at most once in ten seconds.
  func complain(_ kind: String, _ sentence: @autoclosure () -> String, at now: ContinuousClock.Instant = .now) {
    listener?(.misbehaved(kind: kind, sentence: sentence()))
    let left: Int? = gates.withLock { gates in
      if let last = gates.complaints[kind], now - last.at < Self.complaintPause {
        gates.complaints[kind]?.left += 1
        return nil
      }
      let left = gates.complaints[kind]?.left ?? 0
      gates.complaints[kind] = (now, 0)
      return left
    }
    guard let left else { return }
    let more = left > 0 ? " (and \(left) more of this kind before)" : ""
    logger.error("a program violates the protocol: \(secrets.redacted(sentence()))\(more)")
  }

  /// Passes the program's text to the listener.
  func notifyListener(_ text: String) { listener?(.said(text)) }

  /// Passes a line of the protocol to the listener.
  func notifyListener(message line: [UInt8], isOut: Bool) {
    guard let listener else { return }
    listener(
      .message(
        String(decoding: line.last == UInt8(ascii: "\n") ? line.dropLast() : line[...], as: UTF8.self), isOut: isOut))
  }

  /// Logs a message of the program.
  func logMessage(
    _ text: String, level: Logger.Level, values: [String: String] = [:], at now: ContinuousClock.Instant = .now
  ) {
    notifyListener(([text] + values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }).joined(separator: " "))
    let (isAllowed, suppressed) = gates.withLock { gates -> (Bool, Int) in
      guard gates.said.allows(at: now) else {
        gates.suppressed += 1
        return (false, 0)
      }
      defer { gates.suppressed = 0 }
      return (true, gates.suppressed)
    }
    guard isAllowed else { return }
    var metadata: Logger.Metadata = [:]
    for (name, value) in values.sorted(by: { $0.key < $1.key }).prefix(16) {
      metadata["says.\(secrets.redacted(name).prefix(48))"] = "\(cut(value))"
    }
    if suppressed > 0 { metadata["left_out"] = "\(suppressed)" }
    logger.log(level: level, "says: \(cut(text))", metadata: metadata)
  }

  private func cut(_ text: String) -> String {
    let redacted = secrets.redacted(text)
    return redacted.count > Self.longest ? redacted.prefix(Self.longest) + "…" : redacted
  }
}

extension ProgramLog {
  /// A quoted excerpt of a program's output for the log.
  func excerpt(_ bytes: [UInt8]) -> String {
    let text = secrets.redacted(String(decoding: bytes, as: UTF8.self))
    return text.count > 120 ? "\"\(text.prefix(120))…\"" : "\"\(text)\""
  }
}
