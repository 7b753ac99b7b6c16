import Foundation

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

  private static let plain = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~@+")

  private static func encode(_ text: String) -> String {
    text.addingPercentEncoding(withAllowedCharacters: plain) ?? ""
  }
}
