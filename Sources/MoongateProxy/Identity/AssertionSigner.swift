import Foundation
import MoongateCore
import MoongateSDK

/// Creates `X-Moongate-Assertion`, a JWT with the identity of the client (RFC 7519, ES256 of RFC 7518).
package struct AssertionSigner: Sendable {
  /// The lifetime of an assertion, in seconds.
  package static let lifetime: Int64 = 300

  private let key: JWTSigner

  /// - Parameter key: one of `RotatingKeys.Use.assertions`.
  package init(_ key: JWTSigner) { self.key = key }

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
    return try key.sign(Array(encoder.encode(claims)))
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
