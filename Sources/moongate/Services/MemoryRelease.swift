import CMalloc
import Foundation
import ServiceLifecycle

/// Returns memory to the system after a load peak.
///
/// glibc keeps freed memory that lies between allocations in use, which is most of it after a peak. Trimming blocks
/// allocations for milliseconds, so it happens only if much memory can be released.
struct MemoryRelease: Service {
  /// The interval between checks.
  static let interval: Duration = .seconds(5)
  /// The minimum growth of unused memory, in bytes, since the last trim.
  static let slack = 24 << 20

  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      var least = Int.max
      while !Task.isCancelled {
        if let unused = Self.unused { least = Self.look(unused, least: least) }
        try await Task.sleep(for: Self.interval)
      }
    }
  }

  /// Trims if the process holds much more memory than it uses.
  /// - Parameter least: the minimum of unused memory since the last trim, in bytes.
  /// - Returns: the new minimum.
  static func look(_ unused: Int, least: Int) -> Int {
    guard least != .max, unused - least > slack else { return min(unused, least) }
    cmalloc_trim()
    return Self.unused ?? least
  }

  /// The resident memory that allocations do not use, in bytes: program pages and freed memory. Nil if it is unknown.
  static var unused: Int? {
    let inUse = cmalloc_in_use()
    let sizes = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ") ?? []
    guard inUse > 0, sizes.count > 1, let resident = Int(sizes[1]) else { return nil }
    return resident * sysconf(Int32(_SC_PAGESIZE)) - Int(inUse)
  }
}
