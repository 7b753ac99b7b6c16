import MoongateCore

/// The `Date` field for the responses of one event loop (RFC 9110 section 6.6.1), formatted once per second.
struct DateField {
  private var second: Int64 = .min
  private var bytes: [UInt8] = []

  /// The field as a line with its CRLF.
  mutating func line(at now: Timestamp) -> [UInt8] {
    if now.seconds != second {
      second = now.seconds
      bytes = Array("Date: \(now.fixdate)\r\n".utf8)
    }
    return bytes
  }
}
