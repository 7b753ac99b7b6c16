import Foundation
import JWTKit
import MoongateSDK

/// A parsed but not yet verified ID token (OpenID Connect Core 1.0 section 2).
struct IDToken: Sendable {
  /// The maximum length in bytes.
  static let longest = 16 * 1024

  let text: String
  /// `RS256` or `ES256` only. `none`, and HS256 with the public key as secret, are well-known forgeries.
  let algorithm: String
  let keyID: String?

  private struct Header: Decodable {
    let alg: String
    let kid: String?
    let crit: [String]?
  }

  /// nil if the text cannot be a valid token.
  init?(_ text: String) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard text.utf8.count <= Self.longest, parts.count == 3, let head = Base64URL.decode(String(parts[0])),
      Base64URL.decode(String(parts[1])) != nil,
      let signature = Base64URL.decode(String(parts[2])), !signature.isEmpty,
      let header = try? JSONDecoder().decode(Header.self, from: Data(head)),
      // A critical header parameter must be understood (RFC 7515 section 4.1.11), and none is supported.
      ["RS256", "ES256"].contains(header.alg), header.crit == nil
    else { return nil }
    self.text = text
    algorithm = header.alg
    keyID = header.kid
  }

  /// The claims; nil if the key did not sign the token.
  func claims(signedBy key: KeySet.Key) async -> IDTokenClaims? {
    guard key.algorithm == algorithm else { return nil }
    let keys = JWTKeyCollection()
    switch key.material {
    case .rsa(let material): await keys.add(rsa: material, digestAlgorithm: .sha256)
    case .p256(let material): await keys.add(ecdsa: material)
    }
    return try? await keys.verify(text, as: IDTokenClaims.self)
  }
}

/// The claims of an ID token with a valid signature. `IDTokenExpectation` checks whether it is meant for this client.
struct IDTokenClaims: JWTPayload {
  let issuer: String
  let subject: String
  let audiences: [String]
  let authorizedParty: String?
  /// Seconds since the Unix epoch. Floating-point, so that a claim of 1e300 does not overflow.
  let expiresAt: Double
  let issuedAt: Double
  let notBefore: Double?
  let nonce: String?
  let email: String?
  /// Whether the claim is exactly `true`.
  let isEmailVerified: Bool
  /// The domain of the account's organization; nil for a personal account.
  let hostedDomain: String?
  let firstName: String?
  let lastName: String?
  let name: String?

  private enum CodingKeys: String, CodingKey {
    case issuer = "iss"
    case subject = "sub"
    case audiences = "aud"
    case authorizedParty = "azp"
    case expiresAt = "exp"
    case issuedAt = "iat"
    case notBefore = "nbf"
    case isEmailVerified = "email_verified"
    case hostedDomain = "hd"
    case firstName = "given_name"
    case lastName = "family_name"
    case nonce, email, name
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: CodingKeys.self)
    issuer = try fields.decode(String.self, forKey: .issuer)
    subject = try fields.decode(String.self, forKey: .subject)
    if let one = try? fields.decode(String.self, forKey: .audiences) {
      audiences = [one]
    } else {
      audiences = try fields.decode([String].self, forKey: .audiences)
    }
    authorizedParty = try fields.decodeIfPresent(String.self, forKey: .authorizedParty)
    expiresAt = try fields.decode(Double.self, forKey: .expiresAt)
    issuedAt = try fields.decode(Double.self, forKey: .issuedAt)
    notBefore = try fields.decodeIfPresent(Double.self, forKey: .notBefore)
    nonce = try fields.decodeIfPresent(String.self, forKey: .nonce)
    // Malformed profile claims do not make the token a forgery.
    email = try? fields.decodeIfPresent(String.self, forKey: .email)
    isEmailVerified = (try? fields.decodeIfPresent(Bool.self, forKey: .isEmailVerified)) == true
    hostedDomain = try? fields.decodeIfPresent(String.self, forKey: .hostedDomain)
    firstName = try? fields.decodeIfPresent(String.self, forKey: .firstName)
    lastName = try? fields.decodeIfPresent(String.self, forKey: .lastName)
    name = try? fields.decodeIfPresent(String.self, forKey: .name)
  }

  func encode(to encoder: any Encoder) throws {
    throw EncodingError.invalidValue(
      self, EncodingError.Context(codingPath: [], debugDescription: "ID tokens are not encoded"))
  }

  /// Does nothing, because the expected values are not available here.
  func verify(using algorithm: some JWTAlgorithm) {}
}

/// The validation of an ID token's claims (OpenID Connect Core 1.0 section 3.1.3.7).
struct IDTokenExpectation {
  let client: Client
  let attempt: Attempt
  /// Whether a token issued to one of the operator's apps is accepted, because the app submits it itself.
  let takesApps: Bool
  /// Milliseconds since the Unix epoch.
  let now: Int64

  /// The allowed clock difference, in seconds.
  private static let leeway: Double = 60

  func accepts(_ claims: IDTokenClaims) -> Bool {
    let parties = takesApps ? [client.id] + client.apps : [client.id]
    let now = Double(now) / 1000
    let begun = Double(attempt.begunAt) / 1000
    guard client.speaksFor(claims.issuer) else { return false }
    // Attack: a token that another site obtained for this user. All its audiences must be ours.
    guard !claims.audiences.isEmpty, claims.audiences.allSatisfy(parties.contains) else { return false }
    guard claims.authorizedParty.map(parties.contains) ?? (claims.audiences.count == 1) else { return false }
    guard now < claims.expiresAt + Self.leeway, claims.issuedAt <= now + Self.leeway, claims.issuedAt < claims.expiresAt
    else { return false }
    // Attack: a token from before this step, which cannot be an answer to it.
    guard claims.issuedAt >= begun - Self.leeway, claims.notBefore ?? 0 <= now + Self.leeway else { return false }
    // Attack: a token of another step (replay, injection).
    guard let nonce = claims.nonce, constantTimeEquals(nonce, attempt.nonce) else { return false }
    // At most 255 ASCII characters (section 2).
    return !claims.subject.isEmpty && claims.subject.utf8.count <= 255
      && claims.subject.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }
  }
}
