import Foundation

/// Whoever reads what tools print.
enum Terminal {
  /// Colour only where a person looks, and has not said otherwise (no-color.org).
  static var showsColour: Bool {
    let environment = ProcessInfo.processInfo.environment
    return isatty(STDOUT_FILENO) == 1 && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
  }
}
