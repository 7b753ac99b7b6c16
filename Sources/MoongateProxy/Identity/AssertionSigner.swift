import Crypto
import Foundation
import MoongateCore
import MoongateSDK

/// Creates `X-Moongate-Assertion`, a JWT with the identity of the client (RFC 7519, ES256 of RFC 7518).
package struct AssertionSigner: Sendable {
  /// The lifetime of an assertion, in seconds.
  package static let lifetime: Int64 = 300

  /// The period of the key (`AssertionKeys`).
  let period: Int64
  private let key: P256.Signing.PrivateKey
  private let header: String
  /// The public key as a JWK (RFC 7517 section 4).
  let publicKey: String

  init(_ key: P256.Signing.PrivateKey, period: Int64) {
    self.period = period
    self.key = key
    let point = Array(key.publicKey.rawRepresentation)
    let x = Base64URL.encode(point[..<32])
    let y = Base64URL.encode(point[32...])
    // RFC 7638: the thumbprint covers these members in this order.
    let thumbprint = SHA256.hash(data: Data("{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"\(x)\",\"y\":\"\(y)\"}".utf8))
    let id = Base64URL.encode(thumbprint)
    header = Base64URL.encode("{\"alg\":\"ES256\",\"kid\":\"\(id)\",\"typ\":\"JWT\"}".utf8)
    publicKey =
      "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"\(x)\",\"y\":\"\(y)\",\"use\":\"sig\",\"alg\":\"ES256\",\"kid\":\"\(id)\"}"
  }

  /// - Parameters:
  ///   - issuer: `public_url`.
  ///   - audience: the host of the route, or of the request.
  /// - Throws: an error if signing fails.
  package func assertion(
    for snapshot: SessionSnapshot, _ entitlements: Entitlements = .none, issuer: String, audience: String,
    now: Timestamp
  ) throws -> String {
    let claims = Claims(
      iss: issuer, aud: audience, sub: snapshot.account.id,
      amr: snapshot.token == nil ? snapshot.session.counted.map(\.provider.rawValue) : ["token"],
      authTime: snapshot.session.authenticatedAt.seconds,
      emailVerified: snapshot.account.identifier(.email)?.verifiedAt != nil, iat: now.seconds,
      exp: now.seconds + Self.lifetime, groups: entitlements.groups.map(\.rawValue), claims: entitlements.claims)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let signed = header + "." + Base64URL.encode(try encoder.encode(claims))
    let signature = try key.signature(for: Data(signed.utf8))
    return signed + "." + Base64URL.encode(signature.rawRepresentation)
  }

  private struct Claims: Encodable {
    let iss: String
    let aud: String
    let sub: String
    let amr: [String]
    let authTime: Int64
    let emailVerified: Bool
    let iat: Int64
    let exp: Int64
    let groups: [String]
    let claims: [String: ClaimValue]

    enum CodingKeys: String, CodingKey {
      case iss, aud, sub, amr, iat, exp, groups, claims
      case authTime = "auth_time"
      case emailVerified = "email_verified"
    }
  }
}
