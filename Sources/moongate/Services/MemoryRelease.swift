import CLinux
import CMalloc
import Foundation
import ServiceLifecycle

/// Returns memory to the system: after a load peak what is free, and at rest the program's pages that only the start or
/// the load needed.
struct MemoryRelease: Service {
  /// The interval between readings.
  static let interval: Duration = .seconds(5)

  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      var rules = MemoryReleaseRules(interval: Self.interval)
      while !Task.isCancelled {
        if let use = MemoryUse.current {
          switch rules.next(use) {
          case nil: break
          case .freeMemory: cmalloc_trim()
          case .programPages:
            clinux_unmap_program_pages()
            rules.released(MemoryUse.current ?? use)
          }
        }
        try await Task.sleep(for: Self.interval)
      }
    }
  }
}

/// A reading of this process's memory, in bytes, and of its processor time.
struct MemoryUse {
  /// Resident memory that allocations could use and do not: freed memory, stacks.
  let unused: Int
  /// Resident pages of the program and its libraries.
  let programPages: Int
  /// Processor time since the start of the process.
  let processorTime: Duration

  /// nil if the system does not say it.
  static var current: MemoryUse? {
    let pages = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ") ?? []
    let inUse = cmalloc_in_use()
    guard inUse > 0, pages.count > 2, let resident = Int(pages[1]), let mapped = Int(pages[2]) else { return nil }
    let pageSize = sysconf(Int32(_SC_PAGESIZE))
    var time = timespec()
    guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { return nil }
    return MemoryUse(
      unused: (resident - mapped) * pageSize - Int(inUse), programPages: mapped * pageSize,
      processorTime: .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec))
  }
}

/// Decides what is released, from readings at regular intervals.
struct MemoryReleaseRules {
  enum Release {
    /// Freed memory between allocations. glibc keeps it, which is most of it after a peak. Trimming blocks allocations
    /// for milliseconds.
    case freeMemory
    /// Pages of the program. A page returns when it is used, in microseconds.
    case programPages
  }

  /// The growth of unused memory since the last trim that is worth a trim.
  static let freeSlack = 24 << 20
  /// The growth of program pages since the last release that is worth another one. A process at rest gets 12 MiB back.
  static let programSlack = 16 << 20
  /// The share of one processor that a process at rest uses at most, in percent.
  static let restPercent = 2
  /// The number of readings at rest before program pages are released again. The first release is for the pages of the
  /// start and comes at the first such reading.
  static let restReadings = 12

  private let restTime: Duration
  private var leastUnused = Int.max
  /// The program pages after the last release.
  private var pagesAfterRelease = 0
  private var readingsNeeded = 1
  private var readingsAtRest = 0
  private var lastTime: Duration?

  /// - Parameter interval: the time between two readings.
  init(interval: Duration) { restTime = interval * Self.restPercent / 100 }

  /// What to release after a reading; nil for nothing.
  mutating func next(_ use: MemoryUse) -> Release? {
    let isAtRest = lastTime.map { use.processorTime - $0 <= restTime } ?? false
    lastTime = use.processorTime
    readingsAtRest = isAtRest ? readingsAtRest + 1 : 0
    if leastUnused != .max, use.unused - leastUnused > Self.freeSlack {
      leastUnused = .max
      return .freeMemory
    }
    leastUnused = min(leastUnused, use.unused)
    let isDue = readingsAtRest >= readingsNeeded && use.programPages - pagesAfterRelease > Self.programSlack
    return isDue ? .programPages : nil
  }

  /// Program pages were released.
  /// - Parameter use: a reading after that.
  mutating func released(_ use: MemoryUse) {
    pagesAfterRelease = use.programPages
    readingsNeeded = Self.restReadings
    readingsAtRest = 0
  }
}
