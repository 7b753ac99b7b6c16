import MoongateCore
import NIOCore

/// The position of a request in a trace (W3C Trace Context, `traceparent` version 00).
///
/// The gateway joins traces if its access log or `tracing` is on: a valid traceparent is continued with a new parent
/// id, and a request without one starts a trace. The trace is marked as sampled if `tracing` records it, or if only the
/// access log is on. If both are off, the headers are forwarded unchanged.
struct TraceContext: Sendable, Equatable {
  let high: UInt64
  let low: UInt64
  /// The parent id that the upstream receives.
  let span: UInt64
  /// The id of the request's own span, if spans are recorded; otherwise equal to `span`.
  let request: UInt64
  /// The client's span that contains the request; 0 if none exists.
  let parent: UInt64
  /// Whether spans are sent to the collector.
  let isRecorded: Bool
  /// The flags `sampled` and `random`. Other flags are undefined and not forwarded.
  let flags: UInt8
  /// Whether the client sent the trace. Otherwise its tracestate belongs to no trace and is dropped (section 3.3).
  let isContinued: Bool

  /// - Parameter sampling: the sampling of `tracing`; nil if it is off.
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

  /// The sampling decision.
  struct Sampling {
    /// The share of recorded requests, out of `UInt64.max`.
    let share: UInt64
    /// Whether the sender's sampled flag is trusted.
    let isTrusted: Bool

    /// Attack: a client marks every request as sampled and so controls what the operator stores. The flag is used only
    /// behind trusted proxies.
    func records(_ flags: UInt8, _ ids: inout TraceIDs) -> Bool {
      isTrusted && flags & 0x01 == 1 || share > 0 && ids.next() <= share
    }
  }

  /// The parent of spans inside the request.
  var place: TracePlace { TracePlace(high: high, low: low, span: request) }

  /// Parses `version "-" trace-id "-" parent-id "-" trace-flags` in lower-case hex (section 3.2).
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

  /// Writes the header line.
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

  /// The header value for the gateway's own pages and calls, as children of the request's span.
  var value: String { "00-\(place.trace)-\(TracePlace.hex(request))-0\(flags)" }

  /// Calls the closure with each of the sixteen hex digits.
  static func hex(_ value: UInt64, _ body: (UInt8) -> Void) {
    for shift in stride(from: UInt64(60), through: 0, by: -4) {
      let digit = UInt8(truncatingIfNeeded: value >> shift & 15)
      body(digit < 10 ? 0x30 + digit : 0x57 + digit)
    }
  }
}

/// Generates unique, non-secret ids of traces and spans, one generator per event loop (xorshift64*, seeded from the
/// gateway's random source).
struct TraceIDs {
  private var state: UInt64

  init(from random: any RandomSource) { state = random.bytes(8).reduce(1) { $0 << 8 | UInt64($1) } | 1 }

  /// The next id. Never 0, which is invalid.
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
