import CMalloc
import Foundation
import ServiceLifecycle

/// Gives the memory that a rush of clients needed back to the system when they have gone.
///
/// glibc keeps freed memory that lies between pieces in use, which after a rush is nearly all of it. Trimming takes
/// milliseconds in which allocations wait, so it happens only where there is much to give back.
struct MemoryRelease: Service {
  /// Between two looks.
  static let interval: Duration = .seconds(5)
  /// How much more than after the last time, in bytes, makes it worth the while.
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

  /// Trims where the process holds more than it uses.
  /// - Parameter least: the least that it has held so since the last time, in bytes.
  /// - Returns: the least that is known now.
  static func look(_ unused: Int, least: Int) -> Int {
    guard least != .max, unused - least > slack else { return min(unused, least) }
    cmalloc_trim()
    return Self.unused ?? least
  }

  /// What is resident and not in use by the program, in bytes: the program's own pages, and memory that was freed. Nil
  /// where the system does not tell.
  static var unused: Int? {
    let inUse = cmalloc_in_use()
    let sizes = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ") ?? []
    guard inUse > 0, sizes.count > 1, let resident = Int(sizes[1]) else { return nil }
    return resident * sysconf(Int32(_SC_PAGESIZE)) - Int(inUse)
  }
}
