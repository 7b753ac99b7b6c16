/// Percent-encoding for paths, queries and forms (RFC 3986 section 2.1).
public enum PercentEncoding {
  private static let digits = Array("0123456789ABCDEF".utf8)

  /// Encodes everything except RFC 3986's unreserved characters, byte by byte in UTF-8. A space becomes %20, which form
  /// parsers accept as well as a plus.
  public static func encode(_ text: String) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count * 2)
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        bytes.append(byte)
      default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// `application/x-www-form-urlencoded` (RFC 6749 appendix B): `name=value&name=value`. The names are not encoded.
  public static func form(_ fields: [(String, String)]) -> String {
    fields.map { "\($0)=\(encode($1))" }.joined(separator: "&")
  }

  /// Parses the fields of a query or form (`application/x-www-form-urlencoded`, WHATWG URL, section 5.1) strictly.
  /// - Returns: nil if the text is ambiguous or invalid: duplicate fields (RFC 6749 section 3.1), `%` without two
  ///   hexadecimal digits, invalid UTF-8, or control characters.
  public static func fields(in text: some Collection<UInt8>) -> [String: String]? {
    var values: [String: String] = [:]
    for pair in text.split(separator: UInt8(ascii: "&")) {
      let equals = pair.firstIndex(of: UInt8(ascii: "="))
      guard let name = decode(pair[..<(equals ?? pair.endIndex)]),
        let value = decode(equals.map { pair[pair.index(after: $0)...] } ?? pair[pair.endIndex...]),
        values.updateValue(value, forKey: name) == nil
      else { return nil }
    }
    return values
  }

  /// Decodes a name or a value of a form, in which a plus is a space.
  /// - Returns: nil if it is invalid or contains control characters.
  package static func decode(_ text: some Sequence<UInt8>) -> String? {
    guard let bytes = bytes(of: text, isForm: true), bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }

  /// Decodes a segment of a path, in which a plus is a plus.
  /// - Returns: nil if it contains `%` without two hexadecimal digits, or invalid UTF-8.
  package static func decodeSegment(_ text: String) -> String? {
    bytes(of: text.utf8, isForm: false).flatMap { String(validating: $0, as: UTF8.self) }
  }

  private static func bytes(of text: some Sequence<UInt8>, isForm: Bool) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = text.makeIterator()
    while let byte = rest.next() {
      switch byte {
      case UInt8(ascii: "+") where isForm: bytes.append(0x20)
      case UInt8(ascii: "%"):
        guard let high = rest.next().flatMap(hex), let low = rest.next().flatMap(hex) else { return nil }
        bytes.append(high << 4 | low)
      default: bytes.append(byte)
      }
    }
    return bytes
  }

  private static func hex(_ byte: UInt8) -> UInt8? { Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) } }
}
