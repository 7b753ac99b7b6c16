/// The validated path of a request: in normal form, and decoded for route matching.
///
/// Attack: a gateway that reads `/public/..;/admin` or `/public%2f..%2fadmin` differently from the service behind it
/// lets requests pass to where they must not go. A path that two programs could parse differently is therefore refused,
/// and the path sent upstream is byte for byte the validated path (RFC 3986 section 6).
///
/// `%2F`, `%5C` and `//` are allowed for paths of routes that take them (`RouteMatcher.find`): `%2F` and `%5C` are part
/// of a name then, and `//` is an empty name. However they are read, no name is `.` or `..`.
package struct RequestPath: Sendable {
  /// For operators.
  package static let fault = "a path that is not in normal form"

  /// The path decoded once, without parameters; nil if that equals the received path. `%2F` and `%5C` are the marks of
  /// `EncodedPathBytes`, so that patterns do not take them for separators.
  package let decoded: [UInt8]?
  /// The bytes in the path that only some routes take. If there are any, `decoded` is not nil.
  package let encoded: EncodedPathBytes

  /// - Parameters:
  ///   - raw: the path as received, without the query.
  ///   - allowed: the bytes that are no fault. `RouteMatcher.find` judges them.
  /// - Returns: nil if it is not in normal form. The request must then be answered with 400.
  package init?(_ raw: Span<UInt8>, taking allowed: EncodedPathBytes = []) {
    guard raw.count > 0, raw[0] == UInt8(ascii: "/") else { return nil }
    // Most paths have nothing to decode or cut, and are validated without a copy.
    var plain = true
    var segmentStart = 1
    for index in 1..<max(1, raw.count) {
      switch raw[index] {
      case UInt8(ascii: "/"):
        let length = index - segmentStart
        if Self.isDots(raw, segmentStart, length) { return nil }
        if length == 0 { plain = false }
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
      encoded = []
      return
    }
    guard let path = PathDecoder.decode(raw), allowed.isSuperset(of: path.encoded) else { return nil }
    decoded = path.decoded
    encoded = path.encoded
  }

  private static func isDots(_ bytes: Span<UInt8>, _ start: Int, _ length: Int) -> Bool {
    (length == 1 && bytes[start] == UInt8(ascii: "."))
      || (length == 2 && bytes[start] == UInt8(ascii: ".") && bytes[start + 1] == UInt8(ascii: "."))
  }

  /// The byte that `%` and two hexadecimal digits at the position encode; nil if there are none.
  static func encodedByte(_ raw: Span<UInt8>, at index: Int) -> UInt8? {
    guard index + 2 < raw.count, raw[index] == UInt8(ascii: "%"), let high = hexValue(raw[index + 1]),
      let low = hexValue(raw[index + 2])
    else { return nil }
    return high << 4 | low
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

/// Decodes a path once, cuts its parameters, and finds the bytes that need `encoded`.
private struct PathDecoder {
  /// A name without its parameters. Here, every `%2F` and `%5C` ends one, so that no reading of the path has others.
  private struct Name {
    /// The number of its bytes, up to 3, if all of them are dots; 3 otherwise.
    var dots = 0
    var hasParameters = false

    /// Whether a separator may follow.
    var isComplete: Bool { dots == 0 ? !hasParameters : dots > 2 }
    /// Whether the path may end with it, as in `/a/` and `/a/;x`.
    var isLast: Bool { dots == 0 || dots > 2 }

    mutating func add(_ byte: UInt8) { dots = byte == UInt8(ascii: ".") ? min(dots + 1, 3) : 3 }
  }

  private var decoded: [UInt8] = []
  private var encoded: EncodedPathBytes = []
  private var name = Name()
  /// Whether parameters go on, if `%2F` and `%5C` are parts of names.
  private var isInParameters = false

  /// - Returns: nil if the path is not in normal form.
  static func decode(_ raw: Span<UInt8>) -> (decoded: [UInt8], encoded: EncodedPathBytes)? {
    var path = PathDecoder()
    path.decoded.reserveCapacity(raw.count)
    var index = 0
    var previous: UInt8 = 0
    while index < raw.count {
      var byte = raw[index]
      switch byte {
      case UInt8(ascii: "#"), UInt8(ascii: "\\"), 0...0x20, 0x7f...: return nil
      case UInt8(ascii: "/"):
        guard path.endName(isEmpty: index > 0 && raw[index - 1] == byte) else { return nil }
      case UInt8(ascii: "%"):
        guard let value = RequestPath.encodedByte(raw, at: index) else { return nil }
        // Control bytes end strings in C.
        guard value >= 0x20, value != 0x7f, !isOverlong(previous, value), path.addEncoded(value) else { return nil }
        byte = value
        index += 2
      default: path.add(byte)
      }
      previous = byte
      index += 1
    }
    return path.name.isLast ? (path.decoded, path.encoded) : nil
  }

  private mutating func add(_ byte: UInt8) {
    if byte == UInt8(ascii: ";") {
      isInParameters = true
      name.hasParameters = true
    }
    if !isInParameters { decoded.append(byte) }
    if !name.hasParameters { name.add(byte) }
  }

  /// An encoded `;` begins parameters like a plain one, because services that decode first read it so.
  private mutating func addEncoded(_ byte: UInt8) -> Bool {
    guard let mark = EncodedPathBytes.mark(of: byte) else {
      add(byte)
      return true
    }
    guard name.isComplete else { return false }
    encoded.insert(mark == EncodedPathBytes.slashMark ? .slash : .backslash)
    if !isInParameters { decoded.append(mark) }
    name = Name()
    return true
  }

  /// - Parameter isEmpty: whether the slash follows another one.
  private mutating func endName(isEmpty: Bool) -> Bool {
    guard name.isComplete else { return false }
    if isEmpty {
      // Attack: `//host/admin`, which a program that expects a URL reference reads as `/admin` of a host (RFC 3986
      // section 4.2).
      guard decoded.count > 1 else { return false }
      encoded.insert(.empty)
    }
    decoded.append(UInt8(ascii: "/"))
    isInParameters = false
    name = Name()
    return true
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
}
