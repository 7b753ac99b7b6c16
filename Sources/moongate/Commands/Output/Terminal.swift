import Foundation

/// The terminal that tools print to.
enum Terminal {
  /// Whether to print color: only to a terminal, and not if NO_COLOR is set (no-color.org).
  static var showsColour: Bool {
    let environment = ProcessInfo.processInfo.environment
    return isatty(STDOUT_FILENO) == 1 && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
  }
}
