import Tracing

/// A finished span: one operation of a request, as it is sent to a collector.
package struct SpanRecord: Sendable {
  /// The kind of span. The numbers are those of OTLP.
  package enum Kind: Int, Sendable {
    case `internal` = 1
    case server = 2
    case client = 3
  }

  package var place: TracePlace
  /// The parent span; 0 if the trace begins here.
  package var parent: UInt64
  package var name: String
  package var kind: Kind
  /// Nanoseconds since the Unix epoch.
  package var start: UInt64
  /// Nanoseconds since the Unix epoch.
  package var end: UInt64
  /// Never contains identifiers of users, tokens, codes or addresses: readers of traces are not necessarily allowed to
  /// see them.
  package var attributes: [(key: String, value: Value)]
  /// Why it failed; nil if it succeeded.
  package var fault: String?

  /// The value of an attribute.
  package enum Value: Sendable, Equatable {
    case text(String)
    case number(Int)
    case flag(Bool)
  }

  /// More than five parameters: one for each field.
  package init(
    _ name: String, at place: TracePlace, parent: UInt64, kind: Kind, start: UInt64, end: UInt64,
    attributes: [(key: String, value: Value)] = [],
    fault: String? = nil
  ) {
    self.name = name
    self.place = place
    self.parent = parent
    self.kind = kind
    self.start = start
    self.end = end
    self.attributes = attributes
    self.fault = fault
  }
}

/// Identifies a span by its trace and its own ID (W3C Trace Context, sections 3.2.2.3 and 3.2.2.4).
package struct TracePlace: Sendable, Equatable {
  /// The upper half of the trace ID.
  package let high: UInt64
  package let low: UInt64
  package let span: UInt64

  package init(high: UInt64, low: UInt64, span: UInt64) {
    self.high = high
    self.low = low
    self.span = span
  }

  /// Parses a `traceparent` that the gateway itself wrote; nil if it is malformed or its trace is not recorded.
  package init?(recorded traceparent: String) {
    let parts = traceparent.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 4, parts[1].utf8.count == 32, parts[2].utf8.count == 16,
      let high = UInt64(parts[1].prefix(16), radix: 16),
      let low = UInt64(parts[1].suffix(16), radix: 16), let span = UInt64(parts[2], radix: 16),
      let flags = UInt8(parts[3], radix: 16), flags & 1 == 1
    else { return nil }
    self.init(high: high, low: low, span: span)
  }

  /// 32 hexadecimal digits.
  package var trace: String { Self.hex(high) + Self.hex(low) }

  /// 16 hexadecimal digits.
  package static func hex(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }
}

extension InstrumentationContext {
  private enum Key: InstrumentationContextKey { typealias Value = TracePlace }

  /// The current span, if its trace is recorded.
  package var place: TracePlace? {
    get { self[Key.self] }
    set { self[Key.self] = newValue }
  }
}
