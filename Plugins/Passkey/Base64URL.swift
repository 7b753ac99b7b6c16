import Foundation

/// Base64url without padding (RFC 4648 section 5), as the JSON forms of Web Authentication have it.
enum Base64URL {
  static func encode(_ bytes: some Sequence<UInt8>) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// - Returns: nil for anything else, such as padding, spaces, or bits after the last byte: one value has one text.
  static func decode(_ text: String) -> [UInt8]? {
    guard text.utf8.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "=") }) else { return nil }
    let plain = text.replacing("-", with: "+").replacing("_", with: "/")
    guard let data = Data(base64Encoded: plain + String(repeating: "=", count: (4 - plain.utf8.count % 4) % 4)) else { return nil }
    let bytes = Array(data)
    return encode(bytes) == text ? bytes : nil
  }
}
