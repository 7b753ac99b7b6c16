import NIOCore

/// Counts what is limited for each connection (`HTTP2Limit`), in windows of half a minute.
struct HTTP2LimitCounts {
  private static let window: TimeAmount = .seconds(30)
  /// The maximum in a window.
  static let most = 200
  /// The maximum for proxies in `trusted_proxies`, whose connections carry the requests of many users. It bounds the
  /// work, and is not reached by what users of one proxy cancel.
  static let mostOfProxies = 20_000

  private var began = NIODeadline.uptimeNanoseconds(0)
  private var resets = 0
  private var errors = 0
  private var controlFrames = 0

  /// - Returns: the number in the current window.
  mutating func count(_ limit: HTTP2Limit, at now: NIODeadline) -> Int {
    if now - began >= Self.window {
      self = Self()
      began = now
    }
    switch limit {
    case .resets:
      resets += 1
      return resets
    case .errors:
      errors += 1
      return errors
    case .controlFrames:
      controlFrames += 1
      return controlFrames
    }
  }
}
