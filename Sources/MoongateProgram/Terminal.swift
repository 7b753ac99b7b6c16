import Foundation

/// The terminal that tools print to.
package enum Terminal {
  /// Whether to print color: only to a terminal, and not if NO_COLOR is set (no-color.org).
  package static var showsColour: Bool {
    let environment = ProcessInfo.processInfo.environment
    return isatty(STDOUT_FILENO) == 1 && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
  }

  /// Asks a question and reads one line.
  /// - Returns: nil if standard input is not a terminal: nobody could answer.
  package static func answer(to question: String) -> String? {
    guard isatty(STDIN_FILENO) == 1 else { return nil }
    FileHandle.standardError.write(Data(question.utf8))
    return (readLine() ?? "").trimmingCharacters(in: .whitespaces)
  }
}
