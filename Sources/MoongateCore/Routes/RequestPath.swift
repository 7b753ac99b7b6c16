/// The validated path of a request: in normal form, and decoded for route matching.
///
/// Attack: a gateway that reads `/public/..;/admin` or `/public%2f..%2fadmin` differently from the service behind it
/// lets requests pass to where they must not go. A path that two programs could parse differently is therefore refused,
/// and the path sent upstream is byte for byte the validated path (RFC 3986 section 6).
package struct RequestPath: Sendable {
  /// The path decoded once, without parameters; nil if that equals the received path.
  package let decoded: [UInt8]?

  /// - Parameter raw: the path as received, without the query.
  /// - Returns: nil if it is not in normal form. The request must then be answered with 400.
  package init?(_ raw: Span<UInt8>) {
    guard raw.count > 0, raw[0] == UInt8(ascii: "/") else { return nil }
    // Most paths have nothing to decode or cut, and are validated without a copy.
    var plain = true
    var segmentStart = 1
    for index in 1..<max(1, raw.count) {
      switch raw[index] {
      case UInt8(ascii: "/"):
        let length = index - segmentStart
        if length == 0 || Self.isDots(raw, segmentStart, length) { return nil }
        segmentStart = index + 1
      case UInt8(ascii: "%"), UInt8(ascii: ";"): plain = false
      case UInt8(ascii: "#"), UInt8(ascii: "\\"), 0...0x20, 0x7f...: return nil
      default: break
      }
      if !plain { break }
    }
    if plain {
      if Self.isDots(raw, segmentStart, raw.count - segmentStart) { return nil }
      decoded = nil
      return
    }
    guard let decoded = Self.decode(raw) else { return nil }
    self.decoded = decoded
  }

  private static func isDots(_ bytes: Span<UInt8>, _ start: Int, _ length: Int) -> Bool {
    (length == 1 && bytes[start] == UInt8(ascii: "."))
      || (length == 2 && bytes[start] == UInt8(ascii: ".") && bytes[start + 1] == UInt8(ascii: "."))
  }

  /// Decodes once and cuts parameters. An encoded `;` cuts like a plain one, because services that decode first read it
  /// so.
  private static func decode(_ raw: Span<UInt8>) -> [UInt8]? {
    var out: [UInt8] = []
    out.reserveCapacity(raw.count)
    var segmentStart = 0
    var inParameters = false
    var index = 0
    var previous: UInt8 = 0
    while index < raw.count {
      var byte = raw[index]
      defer { previous = byte }
      index += 1
      switch byte {
      case UInt8(ascii: "#"), UInt8(ascii: "\\"), 0...0x20, 0x7f...: return nil
      case UInt8(ascii: "%"):
        guard index + 1 < raw.count, let high = hexValue(raw[index]), let low = hexValue(raw[index + 1]) else {
          return nil
        }
        index += 2
        byte = high << 4 | low
        // Programs disagree about whether an encoded slash or backslash is a separator. Control bytes end strings in C.
        if byte < 0x20 || byte == 0x7f || byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\")
          || isOverlong(previous, byte)
        {
          return nil
        }
      case UInt8(ascii: "/"):
        if !out.isEmpty, !isSegment(out, segmentStart) { return nil }
        out.append(byte)
        segmentStart = out.count
        inParameters = false
        continue
      default: break
      }
      if byte == UInt8(ascii: ";") { inParameters = true }
      if !inParameters { out.append(byte) }
    }
    // The last segment may be empty (`/a/`), but not `.` or `..`.
    if segmentStart < out.count, !isSegment(out, segmentStart) { return nil }
    return out
  }

  /// Whether the two bytes begin an overlong UTF-8 encoding (RFC 3629 section 3). Attack: a decoder without this check
  /// reads `%c0%ae` as a dot and `%c0%af` as a slash.
  private static func isOverlong(_ first: UInt8, _ second: UInt8) -> Bool {
    switch first {
    case 0xc0, 0xc1: (0x80..<0xc0).contains(second)
    case 0xe0: (0x80..<0xa0).contains(second)
    case 0xf0: (0x80..<0x90).contains(second)
    default: false
    }
  }

  /// Whether the segment at the end of the bytes is a name: not empty, not `.` or `..`.
  private static func isSegment(_ bytes: [UInt8], _ start: Int) -> Bool {
    switch bytes.count - start {
    case 0: false
    case 1: bytes[start] != UInt8(ascii: ".")
    case 2: bytes[start] != UInt8(ascii: ".") || bytes[start + 1] != UInt8(ascii: ".")
    default: true
    }
  }

  private static func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
