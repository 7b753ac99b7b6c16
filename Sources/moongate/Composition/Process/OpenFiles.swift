import Foundation

/// The limit on open files. Each connection uses one file, each proxied request two.
enum OpenFiles {
  /// Descriptors for the admin listener, for calls to other sites, and for programs.
  private static let reserve = 16

  /// How many connections can be open, so that `reserve` descriptors are left. A quarter is for connections to
  /// services: most connections of clients are idle. Call when the process has opened its store.
  ///
  /// Attack: idle connections use up all descriptors, and the admin listener does not answer either.
  /// - Parameter limit: the limit on open files; nil if it is unknown.
  static func connections(within limit: UInt64?) -> Int {
    guard let limit else { return .max }
    let inUse = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
    let free = Int(clamping: limit) - inUse - reserve
    return max(1, free - free / 4)
  }

  /// Raises the soft limit to the hard limit.
  /// - Returns: the new limit; nil if it is unknown.
  @discardableResult static func raiseLimit() -> UInt64? {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
    if limit.rlim_cur < limit.rlim_max {
      limit.rlim_cur = limit.rlim_max
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
    return UInt64(limit.rlim_cur)
  }
}
