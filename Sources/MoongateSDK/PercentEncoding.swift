/// Percent-encoding for queries and forms (RFC 3986 section 2.1).
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
}
