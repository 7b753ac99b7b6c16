import MoongateCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The `Date` field for the responses of one event loop (RFC 9110 section 6.6.1), formatted once per second.
package struct DateField {
  private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  private var second: Int64 = .min
  private var bytes: [UInt8] = []

  /// The field as a line with its CRLF.
  mutating func line(at now: Timestamp) -> [UInt8] {
    if now.seconds != second {
      second = now.seconds
      bytes = Array("Date: \(Self.text(second))\r\n".utf8)
    }
    return bytes
  }

  /// `IMF-fixdate` (RFC 9110 section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
  /// - Parameter seconds: since 1970.
  package static func text(_ seconds: Int64) -> String {
    var moment = time_t(seconds)
    var parts = tm()
    gmtime_r(&moment, &parts)
    let two = { (number: Int32) in (number < 10 ? "0" : "") + String(number) }
    let time = "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
    return
      "\(days[Int(parts.tm_wday)]), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(parts.tm_year + 1900) \(time) GMT"
  }
}
