/// A time of the gateway's clock, in whole milliseconds since the Unix epoch.
///
/// The core compares times as half-open intervals: what is valid until `t` is no longer valid at `t`.
package struct Timestamp: Hashable, Comparable, Sendable, Codable {
  /// Milliseconds since 1970-01-01T00:00:00Z.
  package let milliseconds: Int64

  package init(milliseconds: Int64) { self.milliseconds = milliseconds }

  package init(from decoder: any Decoder) throws {
    milliseconds = try decoder.singleValueContainer().decode(Int64.self)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(milliseconds)
  }

  /// Whole seconds since the epoch, rounded down.
  package var seconds: Int64 { milliseconds >= 0 ? milliseconds / 1000 : (milliseconds - 999) / 1000 }

  package static func < (left: Self, right: Self) -> Bool { left.milliseconds < right.milliseconds }

  /// Saturates instead of overflowing.
  package static func + (moment: Self, duration: Duration) -> Self {
    let (sum, overflow) = moment.milliseconds.addingReportingOverflow(duration.wholeMilliseconds)
    return Self(milliseconds: overflow ? (duration < .zero ? .min : .max) : sum)
  }

  package static func - (moment: Self, duration: Duration) -> Self { moment + (.zero - duration) }

  /// The time from `right` to `left`; negative if `right` is later.
  package static func - (left: Self, right: Self) -> Duration { .milliseconds(left.milliseconds - right.milliseconds) }
}

extension Duration {
  /// Milliseconds, rounded towards zero. Saturates.
  package var wholeMilliseconds: Int64 {
    let (seconds, overflow) = components.seconds.multipliedReportingOverflow(by: 1000)
    if overflow { return components.seconds < 0 ? .min : .max }
    return seconds + components.attoseconds / 1_000_000_000_000_000
  }

  /// Nanoseconds, rounded towards zero. Saturates.
  package var wholeNanoseconds: Int64 {
    let (seconds, overflow) = components.seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return components.seconds < 0 ? .min : .max }
    return seconds + components.attoseconds / 1_000_000_000
  }

  /// Seconds, rounded up and at least 1, as for `Retry-After` (RFC 9110 section 10.2.3).
  package var retryAfterSeconds: Int { max(1, Int((wholeMilliseconds + 999) / 1000)) }
}
