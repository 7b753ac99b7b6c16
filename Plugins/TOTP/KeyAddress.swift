import Foundation

/// What the picture says to an authenticator app: `otpauth://totp/Issuer:person?secret=…` (the key URI format that all
/// of them read).
enum KeyAddress {
  /// - Parameters:
  ///   - issuer: under which the app lists it.
  ///   - person: tells several accounts of one issuer apart.
  static func make(key: [UInt8], issuer: String, person: String) -> String {
    // The colon parts issuer and person, so neither may bring one.
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
