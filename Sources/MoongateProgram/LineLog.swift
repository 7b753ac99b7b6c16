import Foundation
import Logging
import MoongateCore

/// A log handler that writes one event per line to standard error:
/// `2026-11-21T02:00:00.123Z notice  serve: ready gateway=http://localhost:8080 admin=http://127.0.0.1:9901`
///
/// Attack: a client sends a value with line breaks or terminal escapes to forge log lines. All control characters are
/// escaped.
package struct LineLog: LogHandler {
  package var metadata: Logger.Metadata = [:]
  package var metadataProvider: Logger.MetadataProvider?
  package var logLevel: Logger.Level
  private let label: String
  private let write: @Sendable (String) -> Void

  /// - Parameter write: receives one line including its line feed.
  package init(label: String, level: Logger.Level, write: @escaping @Sendable (String) -> Void = LineLog.standardError)
  {
    self.label = label
    logLevel = level
    self.write = write
  }

  package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  package func log(event: LogEvent) {
    var values = metadata
    if let provided = metadataProvider?.get() { values.merge(provided) { _, new in new } }
    if let given = event.metadata { values.merge(given) { _, new in new } }
    if let error = event.error { values["error"] = "\(error)" }
    let level = event.level.rawValue
    var line = Self.moment(Date()) + " " + level + String(repeating: " ", count: max(0, 8 - level.utf8.count))
    line += "\(label): \(Self.plain("\(event.message)"))"
    for (key, value) in values.sorted(by: { $0.key < $1.key }) { line += " \(key)=\(Self.quoted("\(value)"))" }
    write(line + "\n")
  }

  /// Writes each line with one call, so that lines of several threads do not mix.
  package static let standardError: @Sendable (String) -> Void = { line in
    // A failing log must not stop the process.
    _ = DescriptorIO.writeAll(Array(line.utf8), to: STDERR_FILENO)
  }

  private static func moment(_ date: Date) -> String {
    date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
  }

  /// The text with control characters escaped.
  package static func plain(_ text: String) -> String {
    if text.utf8.allSatisfy({ (0x20..<0x7f).contains($0) }) { return text }
    var plain = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\n": plain += "\\n"
      case "\r": plain += "\\r"
      case "\t": plain += "\\t"
      case _
      where scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value) || scalar.value == 0x2028
        || scalar.value == 0x2029:
        plain += "\\u{\(String(scalar.value, radix: 16))}"
      default: plain.unicodeScalars.append(scalar)
      }
    }
    return plain
  }

  private static let ambiguous = Array(" \"=".utf8)

  /// The text in quotes if it is empty or contains spaces or quotes.
  private static func quoted(_ text: String) -> String {
    let plain = plain(text)
    guard plain.isEmpty || plain.utf8.contains(where: ambiguous.contains) else { return plain }
    return "\"" + plain.replacingOccurrences(of: "\"", with: "\\\"") + "\""
  }
}

extension Logger.Level {
  /// The level of `MOONGATE_LOG`; `notice` if the variable is empty.
  /// - Throws: an error if the value is not a level.
  package static func fromEnvironment() throws(StartProblem) -> Self {
    guard let text = ProcessInfo.processInfo.environment["MOONGATE_LOG"], !text.isEmpty else { return .notice }
    guard let level = Self(rawValue: text.lowercased()), level != .critical else {
      throw StartProblem(
        "MOONGATE_LOG is \"\(LineLog.plain(text))\"; it must be one of trace, debug, info, notice, warning, error.",
        status: .couldNotRun)
    }
    return level
  }
}
