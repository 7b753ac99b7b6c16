import Crypto
import Foundation
import MoongateSDK

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

/// Comparing of what must not be found out letter by letter.
enum SafeCompare {
  /// Takes the same time whatever differs.
  static func equal(_ left: String, _ right: String) -> Bool {
    let key = SymmetricKey(size: .bits256)
    return HMAC<SHA256>.authenticationCode(for: Data(left.utf8), using: key)
      == HMAC<SHA256>.authenticationCode(for: Data(right.utf8), using: key)
  }
}
