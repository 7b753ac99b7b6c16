import Crypto
import Foundation
import MoongateSDK

/// The state of a step while the user is at the site. The core encrypts and authenticates it.
struct Attempt: Codable, Equatable, Sendable {
  let issuer: String
  /// Binds the ID token to this step (OpenID Connect Core 1.0 section 15.5.2).
  let nonce: String
  /// The PKCE verifier, which proves to the token endpoint that the same client requested the code (RFC 7636).
  let verifier: String
  let state: String
  let redirect: String
  /// Milliseconds since the Unix epoch.
  let begunAt: Int64

  /// More than five parameters: one for each field.
  init(issuer: String, nonce: String, verifier: String, state: String, redirect: String, begunAt: Int64) {
    self.issuer = issuer
    self.nonce = nonce
    self.verifier = verifier
    self.state = state
    self.redirect = redirect
    self.begunAt = begunAt
  }

  /// nil if the state is not from this provider.
  init?(sealed bytes: [UInt8]) {
    guard let attempt = try? JSONDecoder().decode(Attempt.self, from: Data(bytes)) else { return nil }
    self = attempt
  }

  func sealed() throws -> [UInt8] { Array(try JSONEncoder().encode(self)) }

  /// The S256 challenge of the verifier (RFC 7636 section 4.2).
  var challenge: String { Base64URL.encode(Array(SHA256.hash(data: Data(verifier.utf8)))) }
}
