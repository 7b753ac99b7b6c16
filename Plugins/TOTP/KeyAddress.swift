import MoongateSDK

/// The key URI in the QR code for authenticator apps: `otpauth://totp/Issuer:person?secret=…`.
enum KeyAddress {
  /// - Parameters:
  ///   - issuer: the name of the site in the app.
  ///   - person: distinguishes accounts of one issuer.
  static func make(key: [UInt8], issuer: String, person: String) -> String {
    // The colon separates issuer and account, so neither may contain one.
    let label = "\(encode(issuer.filter { $0 != ":" })):\(encode(person.filter { $0 != ":" }))"
    return
      "otpauth://totp/\(label)?secret=\(Base32.encode(key))&issuer=\(encode(issuer))&algorithm=SHA1&digits=\(TimeCode.length)&period=30"
  }

  /// Encodes a part of the address. `@` and `+` stay as they are, so that apps show email addresses and phone numbers.
  private static func encode(_ text: String) -> String {
    text.unicodeScalars.map { $0 == "@" || $0 == "+" ? String($0) : PercentEncoding.encode(String($0)) }.joined()
  }
}
