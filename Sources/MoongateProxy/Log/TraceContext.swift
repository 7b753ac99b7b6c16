import MoongateCore
import NIOCore

/// Where a request stands in a trace (W3C Trace Context, `traceparent` of version 00).
///
/// The gateway takes part in traces where its access log or `tracing` is on, for they are what it records of them: a
/// valid traceparent is kept with a parent id of our own, and a request without one begins a trace. It is marked as
/// recorded where `tracing` records it or the log is all there is. Where both are off, both headers pass as they came.
struct TraceContext: Sendable, Equatable {
  let high: UInt64
  let low: UInt64
  /// Names our part of it: the parent id that the upstream sees.
  let span: UInt64
  /// Names the whole request among the spans that are recorded of it; otherwise like `span`.
  let request: UInt64
  /// The span of the client's that the request is a part of; 0: none.
  let parent: UInt64
  /// Whether spans of it go to the collector.
  let isRecorded: Bool
  /// `sampled` and `random`; others mean nothing yet and are not passed on.
  let flags: UInt8
  /// Whether the client sent it. If not, its tracestate belongs to no trace and ends here (section 3.3).
  let isContinued: Bool

  /// - Parameter sampling: how many requests `tracing` records, nil where it is off.
  init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, ids: inout TraceIDs, sampling: Sampling? = nil) {
    span = ids.next()
    let sent = head.count(of: .traceparent) == 1 ? head.first(.traceparent).flatMap { Self.read(bytes, $0.value) } : nil
    isRecorded = sampling?.records(sent?.flags ?? 0, &ids) ?? false
    request = isRecorded ? ids.next() : span
    isContinued = sent != nil
    if let sent {
      (high, low, parent) = (sent.high, sent.low, sent.parent)
      flags = sent.flags | (isRecorded ? 0x01 : 0)
    } else {
      high = ids.next()
      low = ids.next()
      parent = 0
      flags = sampling == nil || isRecorded ? 0x03 : 0x02
    }
  }

  /// Which requests are recorded.
  struct Sampling {
    /// Out of `UInt64.max`.
    let share: UInt64
    /// Whether whoever sent the request is believed that its trace is recorded.
    let isTrusted: Bool

    /// Attack: a client that marks every request as recorded, and so decides what the operator stores. It is asked only
    /// behind trusted proxies.
    func records(_ flags: UInt8, _ ids: inout TraceIDs) -> Bool {
      isTrusted && flags & 0x01 == 1 || share > 0 && ids.next() <= share
    }
  }

  /// Where spans of the request itself belong.
  var place: TracePlace { TracePlace(high: high, low: low, span: request) }

  /// `version "-" trace-id "-" parent-id "-" trace-flags`, in lower-case hex (section 3.2).
  private static func read(_ bytes: Span<UInt8>, _ value: Range<Int>) -> (
    high: UInt64, low: UInt64, parent: UInt64, flags: UInt8
  )? {
    let start = value.lowerBound
    guard value.count >= 55, let version = hex(bytes, start..<start + 2), version != 0xff,
      version == 0 ? value.count == 55 : value.count == 55 || bytes[start + 55] == 0x2d,
      bytes[start + 2] == 0x2d, bytes[start + 35] == 0x2d, bytes[start + 52] == 0x2d,
      let high = hex(bytes, start + 3..<start + 19), let low = hex(bytes, start + 19..<start + 35), high | low != 0,
      let parent = hex(bytes, start + 36..<start + 52), parent != 0, let flags = hex(bytes, start + 53..<start + 55)
    else { return nil }
    return (high, low, parent, UInt8(flags) & 0x03)
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

  /// The header's value as the gateway's own pages and calls read it: below the request's span.
  var value: String { "00-\(place.trace)-\(TracePlace.hex(request))-0\(flags)" }

  /// The sixteen digits.
  static func hex(_ value: UInt64, _ body: (UInt8) -> Void) {
    for shift in stride(from: UInt64(60), through: 0, by: -4) {
      let digit = UInt8(truncatingIfNeeded: value >> shift & 15)
      body(digit < 10 ? 0x30 + digit : 0x57 + digit)
    }
  }
}

/// Names for traces and their parts: unlike each other, not secret. One per event loop (xorshift64*, seeded by the
/// gateway's generator).
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
