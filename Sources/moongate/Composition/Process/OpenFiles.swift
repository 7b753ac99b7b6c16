import Foundation

/// The limit on open files. Each connection uses one file, each proxied request two.
enum OpenFiles {
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
