import Foundation
import MoongateSDK

/// The forms of settings that are compared exactly with the values that browsers and devices send. Each check returns
/// what is wrong with a text and its right form; nil if it is right.
enum SettingForms {
  /// The beginning of the origin of an Android app. The base64url of SHA-256 of its signing certificate follows.
  private static let android = "android:apk-key-hash:"

  /// An entry of `origins`: the origin of a site, or of an Android app.
  static func origin(_ text: String) -> String? {
    if text.hasPrefix(android), Base64URL.decode(String(text.dropFirst(android.count)))?.count == 32 { return nil }
    if let fingerprint = fingerprint(in: text) {
      guard fingerprint.count == 32 else {
        return "is not a SHA-256 fingerprint: use the SHA-256 line of `keytool -list -v`, not the SHA-1 line"
      }
      return "is not the origin of an Android app: write \(android)\(Base64URL.encode(fingerprint))"
    }
    if text.hasPrefix("android:") {
      return
        "is not the origin of an Android app: write \(android) and the base64url of the certificate's SHA-256, 43 characters without padding"
    }
    guard let origin = SiteAddress.origin(of: text) else {
      return "is not an origin, such as https://app.example.com or \(android)…"
    }
    if text.contains("*") {
      return "can never match, because there are no wildcards: write each origin, such as https://app.example.com"
    }
    // Browsers trust names below `localhost` too.
    guard SiteAddress.isSite(origin) || URLComponents(string: origin)?.host?.hasSuffix(".localhost") ?? false else {
      return "is not an origin that can use passkeys: it must begin with https://"
    }
    return origin == text ? nil : "can never match what browsers send: write \(origin)"
  }

  /// `rp_id`: the host of `public_url`, or a parent domain.
  static func rpID(_ text: String, of site: String?) -> String? {
    guard let host = site.flatMap({ URLComponents(string: $0)?.host }) else { return nil }
    if text == host || host.hasSuffix(".\(text)") && text.contains(".") { return nil }
    return
      "is not the host of public_url or a parent domain: write \(host), or a domain above it, in lower case and without a port"
  }

  /// An entry of `aaguids`, in either case.
  static func aaguid(_ text: String) -> String? {
    if text.wholeMatch(of: /[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}/) != nil { return nil }
    guard let bytes = hex(text.filter { $0 != "-" && $0 != "{" && $0 != "}" }), bytes.count == 16 else {
      return "is not a model, such as d548826e-79b4-db40-a3d8-11116f7e8349"
    }
    return "is not a model: write \(AAGUID.text(bytes))"
  }

  /// The fingerprint of a certificate in a form other than the right one: hexadecimal with or without colons, as
  /// `keytool` prints it, or base64.
  private static func fingerprint(in text: String) -> [UInt8]? {
    var rest = text.hasPrefix(android) ? String(text.dropFirst(android.count)) : text
    for label in ["SHA256:", "SHA1:"] where rest.hasPrefix(label) { rest = String(rest.dropFirst(label.count)) }
    rest = rest.filter { !$0.isWhitespace }
    if let bytes = hex(rest.filter { $0 != ":" }), bytes.count == 32 || bytes.count == 20 { return bytes }
    let base64 = rest.replacing("-", with: "+").replacing("_", with: "/").filter { $0 != "=" }
    let padded = base64 + String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
    guard let data = Data(base64Encoded: padded), data.count == 32 || data.count == 20 else { return nil }
    return Array(data)
  }

  private static func hex(_ text: String) -> [UInt8]? {
    let digits = text.compactMap(\.hexDigitValue)
    guard digits.count == text.count, digits.count % 2 == 0 else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }
}
