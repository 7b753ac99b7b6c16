import Foundation
import JWTKit
import MoongateSDK

/// The client's private key, which signs what proves its identity at the token endpoint.
struct ClientKey: Sendable {
  /// A secret.
  let pem: String
  /// The id under which the site knows the public key.
  let id: String?
  /// Apple's id of the developer team.
  let team: String?

  /// How long a signed text is valid, in seconds. A stolen one is of little use.
  private static let lifetime: Double = 120

  /// The claims of RFC 7523 section 3.
  private struct Statement: JWTPayload {
    let iss: String
    let sub: String
    let aud: String
    let iat: Int
    let exp: Int
    let jti: String

    func verify(using algorithm: some JWTAlgorithm) {}
  }

  /// The client assertion of `private_key_jwt` (OpenID Connect Core 1.0 section 9).
  func assertion(of client: Client, for site: IssuerMetadata, _ call: SiteCall) async throws -> String {
    try await signed(issuer: client.id, subject: client.id, audience: site.token, call)
  }

  /// The client secret that Apple expects.
  func secret(of client: Client, for site: IssuerMetadata, _ call: SiteCall) async throws -> String {
    try await signed(issuer: team ?? "", subject: client.id, audience: site.issuer, call)
  }

  private func signed(issuer: String, subject: String, audience: String, _ call: SiteCall) async throws -> String {
    let keys = JWTKeyCollection()
    let name = id.map { JWKIdentifier(string: $0) }
    switch Self.read(pem) {
    case .p256(let key): await keys.add(ecdsa: key, kid: name)
    case .p384(let key): await keys.add(ecdsa: key, kid: name)
    case .ed25519(let key): await keys.add(eddsa: key, kid: name)
    case .rsa(let key): await keys.add(rsa: key, digestAlgorithm: .sha256, kid: name)
    case nil: throw OAuthFault.setting("private_key")
    }
    let now = Double(call.now) / 1000
    return try await keys.sign(
      Statement(
        iss: issuer, sub: subject, aud: audience, iat: Int(now), exp: Int(now + Self.lifetime),
        jti: Base64URL.encode(call.tools.randomBytes(16))), kid: name)
  }

  /// A private key that can sign.
  private enum Material {
    case p256(ES256PrivateKey)
    case p384(ES384PrivateKey)
    case ed25519(EdDSA.PrivateKey)
    case rsa(Insecure.RSA.PrivateKey)
  }

  private static func read(_ pem: String) -> Material? {
    if let key = try? ES256PrivateKey(pem: pem) { return .p256(key) }
    if let key = try? ES384PrivateKey(pem: pem) { return .p384(key) }
    if let key = try? EdDSA.PrivateKey(pem: pem) { return .ed25519(key) }
    return (try? Insecure.RSA.PrivateKey(pem: pem)).map { .rsa($0) }
  }

  /// Whether the text is a private key that can sign.
  static func isKey(_ pem: String) -> Bool { read(pem) != nil }

  /// Whether the key is of the curve P-256.
  static func isP256(_ pem: String) -> Bool { if case .p256 = read(pem) { true } else { false } }
}
