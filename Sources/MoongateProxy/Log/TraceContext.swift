import MoongateCore
import NIOCore

/// Where a request stands in a trace (W3C Trace Context, `traceparent` of version 00).
///
/// The gateway takes part in traces where its access log is on, for the log is what it records of them: a valid
/// traceparent is kept with a parent id of our own, and a request without one begins a trace, marked as recorded. Where the
/// log is off, both headers pass as they came.
struct TraceContext: Sendable, Equatable {
  let high: UInt64
  let low: UInt64
  /// Names our part of it: the parent id that the upstream sees.
  let span: UInt64
  /// `sampled` and `random`; others mean nothing yet and are not passed on.
  let flags: UInt8
  /// Whether the client sent it. If not, its tracestate belongs to no trace and ends here (section 3.3).
  let isContinued: Bool

  init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, ids: inout TraceIDs) {
    span = ids.next()
    if head.count(of: .traceparent) == 1, let field = head.first(.traceparent), let sent = Self.read(bytes, field.value) {
      (high, low, flags) = sent
      isContinued = true
    } else {
      high = ids.next()
      low = ids.next()
      flags = 0x03
      isContinued = false
    }
  }

  /// `version "-" trace-id "-" parent-id "-" trace-flags`, in lower-case hex (section 3.2).
  private static func read(_ bytes: Span<UInt8>, _ value: Range<Int>) -> (UInt64, UInt64, UInt8)? {
    let start = value.lowerBound
    guard value.count >= 55, let version = hex(bytes, start..<start + 2), version != 0xff,
      version == 0 ? value.count == 55 : value.count == 55 || bytes[start + 55] == 0x2d,
      bytes[start + 2] == 0x2d, bytes[start + 35] == 0x2d, bytes[start + 52] == 0x2d,
      let high = hex(bytes, start + 3..<start + 19), let low = hex(bytes, start + 19..<start + 35), high | low != 0,
      let parent = hex(bytes, start + 36..<start + 52), parent != 0, let flags = hex(bytes, start + 53..<start + 55)
    else { return nil }
    return (high, low, UInt8(flags) & 0x03)
  }

  private static func hex(_ bytes: Span<UInt8>, _ range: Range<Int>) -> UInt64? {
    var value: UInt64 = 0
    for index in range {
      let digit = ByteClass.hexValue(bytes[index])
      guard digit < 16, bytes[index] &- 0x41 >= 6 else { return nil }
      value = value << 4 | UInt64(digit)
    }
    return value
  }

  /// The header's line.
  func write(to out: inout ByteBuffer) {
    out.writeStaticString("traceparent: 00-")
    Self.hex(high) { out.writeInteger($0) }
    Self.hex(low) { out.writeInteger($0) }
    out.writeStaticString("-")
    Self.hex(span) { out.writeInteger($0) }
    out.writeStaticString("-0")
    out.writeInteger(UInt8(ascii: "0") + flags)
    out.writeStaticString("\r\n")
  }

  /// The sixteen digits.
  static func hex(_ value: UInt64, _ body: (UInt8) -> Void) {
    for shift in stride(from: UInt64(60), through: 0, by: -4) {
      let digit = UInt8(truncatingIfNeeded: value >> shift & 15)
      body(digit < 10 ? 0x30 + digit : 0x57 + digit)
    }
  }
}

/// Names for traces and their parts: unlike each other, not secret. One per event loop (xorshift64*, seeded by the gateway's
/// generator).
struct TraceIDs {
  private var state: UInt64

  init(from random: any RandomSource) { state = random.bytes(8).reduce(1) { $0 << 8 | UInt64($1) } | 1 }

  /// Never 0, which names nothing.
  mutating func next() -> UInt64 {
    while true {
      state ^= state >> 12
      state ^= state << 25
      state ^= state >> 27
      let value = state &* 0x2545_f491_4f6c_dd1d
      if value != 0 { return value }
    }
  }
}
