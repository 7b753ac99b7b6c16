import CLinux
import Foundation

/// This process's memory, which holds keys, tokens and codes: for nobody else, not even after a crash.
enum ProcessMemory {
  /// Forbids core files and tracing, and lets a crash end the process at once: the Swift runtime's crash report shows
  /// memory, and takes many seconds during which nothing restarts the gateway. Must be called before any secret is
  /// read.
  /// - Throws: a sentence where the system does not let it.
  static func protect() throws(StartProblem) {
    let problem = clinux_protect_memory()
    guard problem == 0, clinux_is_dumpable() == 0 else {
      throw StartProblem(
        "This process cannot keep its memory to itself: \(String(cString: strerror(problem))).", status: .couldNotRun)
    }
  }
}
