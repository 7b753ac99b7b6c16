import Logging
import Synchronization

/// What was heard of a program, as it said or did it: for whoever tries one out.
package enum ReceivedNotification: Sendable {
  /// A line of its standard error, a `log`, or the text of a failure, with whatever stands in it.
  case said(String)
  /// What it did that it may not.
  /// - Parameter kind: which of the complaints: `rubbish`, `notification`, `request`, `stray`, `late`, `farewell`, …
  case misbehaved(kind: String, sentence: String)
  /// A line of the protocol, without its end.
  /// - Parameter isOut: whether the gateway wrote it.
  case message(String, isOut: Bool)
}

/// What the gateway's log is told of one program: what it does wrong, and what it says itself. Both without secrets,
/// and both bounded.
final class ProgramLog: Sendable {
  private struct RateGates {
    var said: RateGate
    var unsaid = 0
    /// When each kind of complaint was last told, and how many were not since.
    var complaints: [String: (at: ContinuousClock.Instant, left: Int)] = [:]
  }

  /// A program that does something wrong a thousand times a second is told of once in this time, with the count.
  private static let complaintPause: Duration = .seconds(10)
  /// Characters of one line that a program says.
  private static let longest = 1_000

  private let logger: Logger
  private let gates: Mutex<RateGates>
  let secrets: SecretTexts
  private let listener: (@Sendable (ReceivedNotification) -> Void)?

  /// - Parameter listener: is told everything, unredacted. A gateway that serves has none.
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

  /// Tells of something once.
  func notice(_ sentence: String) { logger.notice("\(secrets.redacted(sentence))") }

  /// Tells what a program did wrong.
  /// - Parameter kind: those of one kind are told at most once in ten seconds.
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
    let more = left > 0 ? " (and \(left) more of the kind before)" : ""
    logger.error("a program misbehaves: \(secrets.redacted(sentence()))\(more)")
  }

  /// Tells whoever tries the program out what stands in its own words.
  func overhear(_ text: String) { listener?(.said(text)) }

  /// Whether somebody tries the program out.
  var isOverheard: Bool { listener != nil }

  /// Tells whoever tries the program out what it does that a gateway passes over.
  func remark(_ kind: String, _ sentence: @autoclosure () -> String) {
    listener?(.misbehaved(kind: kind, sentence: sentence()))
  }

  /// Tells whoever tries the program out of a line of the protocol.
  func overhear(message line: [UInt8], isOut: Bool) {
    guard let listener else { return }
    listener(
      .message(
        String(decoding: line.last == UInt8(ascii: "\n") ? line.dropLast() : line[...], as: UTF8.self), isOut: isOut))
  }

  /// Passes on what the program says.
  func says(_ text: String, level: Logger.Level, values: [String: String] = [:], at now: ContinuousClock.Instant = .now)
  {
    overhear(([text] + values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }).joined(separator: " "))
    let (lets, unsaid) = gates.withLock { gates -> (Bool, Int) in
      guard gates.said.lets(at: now) else {
        gates.unsaid += 1
        return (false, 0)
      }
      defer { gates.unsaid = 0 }
      return (true, gates.unsaid)
    }
    guard lets else { return }
    var metadata: Logger.Metadata = [:]
    for (name, value) in values.sorted(by: { $0.key < $1.key }).prefix(16) {
      metadata["says.\(secrets.redacted(name).prefix(48))"] = "\(cut(value))"
    }
    if unsaid > 0 { metadata["left_out"] = "\(unsaid)" }
    logger.log(level: level, "says: \(cut(text))", metadata: metadata)
  }

  private func cut(_ text: String) -> String {
    let redacted = secrets.redacted(text)
    return redacted.count > Self.longest ? redacted.prefix(Self.longest) + "…" : redacted
  }
}

extension ProgramLog {
  /// What a program wrote, as a line of a log shows it.
  func excerpt(_ bytes: [UInt8]) -> String {
    let text = secrets.redacted(String(decoding: bytes, as: UTF8.self))
    return text.count > 120 ? "\"\(text.prefix(120))…\"" : "\"\(text)\""
  }
}
