import Crypto
import Foundation

/// What a step keeps while the person is away. The core seals it, so nobody reads or changes it.
struct Attempt: Codable, Equatable, Sendable {
  let issuer: String
  /// In the ID token, it shows that the token was made for this step (OpenID Connect Core 1.0 section 15.5.2).
  let nonce: String
  /// Of PKCE: shows the token endpoint that who redeems the code is who asked for it (RFC 7636).
  let verifier: String
  let state: String
  let redirect: String
  /// Milliseconds since the Unix epoch.
  let begunAt: Int64

  init(issuer: String, nonce: String, verifier: String, state: String, redirect: String, begunAt: Int64) {
    self.issuer = issuer
    self.nonce = nonce
    self.verifier = verifier
    self.state = state
    self.redirect = redirect
    self.begunAt = begunAt
  }

  /// nil where a step was not begun by this provider.
  init?(sealed bytes: [UInt8]) {
    guard let attempt = try? JSONDecoder().decode(Attempt.self, from: Data(bytes)) else { return nil }
    self = attempt
  }

  func sealed() throws -> [UInt8] { Array(try JSONEncoder().encode(self)) }

  /// S256 of the verifier (RFC 7636 section 4.2).
  var challenge: String { Base64URL.encode(Array(SHA256.hash(data: Data(verifier.utf8)))) }
}

/// RFC 4648 section 5, without padding.
enum Base64URL {
  static func encode(_ bytes: [UInt8]) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// - Returns: nil for anything but the one spelling that `encode` gives.
  static func decode(_ text: Substring) -> [UInt8]? {
    guard text.utf8.allSatisfy({ isLetterOrDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }) else { return nil }
    let padded = String(text).replacing("-", with: "+").replacing("_", with: "/") + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    guard let data = Data(base64Encoded: padded) else { return nil }
    let bytes = Array(data)
    return encode(bytes) == text ? bytes : nil
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
  }
}

/// `application/x-www-form-urlencoded`, as OAuth sends it (RFC 6749 appendix B).
enum FormText {
  static func encode(_ fields: [(String, String)]) -> String { fields.map { "\($0)=\(escape($1))" }.joined(separator: "&") }

  /// Everything but RFC 3986's unreserved characters is percent-encoded.
  static func escape(_ text: String) -> String {
    let hex = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): bytes.append(byte)
      default: bytes += [UInt8(ascii: "%"), hex[Int(byte >> 4)], hex[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// Comparing of what must not be found out letter by letter.
enum SafeCompare {
  /// Takes the same time whatever differs.
  static func equal(_ left: String, _ right: String) -> Bool {
    let key = SymmetricKey(size: .bits256)
    return HMAC<SHA256>.authenticationCode(for: Data(left.utf8), using: key) == HMAC<SHA256>.authenticationCode(for: Data(right.utf8), using: key)
  }
}
