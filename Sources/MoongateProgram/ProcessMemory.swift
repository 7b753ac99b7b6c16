import CLinux
import Foundation

/// Protects the memory of this process, which contains keys, tokens and codes, even after a crash.
enum ProcessMemory {
  /// Disables core dumps and tracing, and makes a crash end the process at once. The crash report of the Swift runtime
  /// would print memory and delay a restart by many seconds. Call before any secret is read.
  /// - Throws: an error if the system refuses.
  static func protect() throws(StartProblem) {
    let problem = clinux_protect_memory()
    guard problem == 0, clinux_is_dumpable() == 0 else {
      throw StartProblem(
        "The memory of this process cannot be protected: \(String(cString: strerror(problem))).", status: .couldNotRun)
    }
  }
}
