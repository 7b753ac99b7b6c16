import MoongateSDK

/// The key URI in the QR code for authenticator apps: `otpauth://totp/Issuer:person?secret=…`.
enum KeyAddress {
  /// - Parameters:
  ///   - issuer: the name of the site in the app.
  ///   - person: distinguishes accounts of one issuer.
  static func make(key: [UInt8], issuer: String, person: String) -> String {
    // The colon separates issuer and account, so neither may contain one. The issuer stands in two places, and apps
    // compare them.
    let (issuer, person) = (encode(issuer.filter { $0 != ":" }), encode(person.filter { $0 != ":" }))
    return
      "otpauth://totp/\(issuer):\(person)?secret=\(Base32.encode(key))&issuer=\(issuer)&algorithm=SHA1&digits=\(TimeCode.length)&period=30"
  }

  /// What is wrong with an operator's issuer, and the right form; nil if nothing is.
  static func mistake(inIssuer text: String) -> String? {
    guard text.contains(":") else { return nil }
    let words = text.split(separator: ":").joined(separator: " ").split(separator: " ").joined(separator: " ")
    return "contains a colon, which separates the issuer from the account in authenticator apps: write \"\(words)\""
  }

  /// Encodes a part of the address. `@` and `+` stay as they are, so that apps show email addresses and phone numbers.
  private static func encode(_ text: String) -> String {
    text.unicodeScalars.map { $0 == "@" || $0 == "+" ? String($0) : PercentEncoding.encode(String($0)) }.joined()
  }
}
