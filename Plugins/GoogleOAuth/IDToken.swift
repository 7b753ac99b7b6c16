import Foundation
import JWTKit
import MoongateSDK

/// An ID token that was read and not believed yet (OpenID Connect Core 1.0 section 2).
struct IDToken: Sendable {
  /// In bytes.
  static let longest = 16 * 1024

  let text: String
  /// `RS256` or `ES256`, and nothing else: `none`, and HS256 with the public key as its secret, are the classic
  /// forgeries.
  let algorithm: String
  let keyID: String?

  private struct Header: Decodable {
    let alg: String
    let kid: String?
    let crit: [String]?
  }

  /// nil where it is no token that could be good.
  init?(_ text: String) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard text.utf8.count <= Self.longest, parts.count == 3, let head = Base64URL.decode(String(parts[0])),
      Base64URL.decode(String(parts[1])) != nil,
      let signature = Base64URL.decode(String(parts[2])), !signature.isEmpty,
      let header = try? JSONDecoder().decode(Header.self, from: Data(head)),
      // What a header calls critical must be understood (RFC 7515 section 4.1.11), and nothing is.
      ["RS256", "ES256"].contains(header.alg), header.crit == nil
    else { return nil }
    self.text = text
    algorithm = header.alg
    keyID = header.kid
  }

  /// What it says; nil where this key did not sign it.
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

/// What an ID token says. Who signed it is known by then; whether it was meant for us is `IDTokenExpectation`'s.
struct IDTokenClaims: JWTPayload {
  let issuer: String
  let subject: String
  let audiences: [String]
  let authorizedParty: String?
  /// Seconds since the Unix epoch. Not whole numbers: a claim of 1e300 must not be an overflow.
  let expiresAt: Double
  let issuedAt: Double
  let notBefore: Double?
  let nonce: String?
  let email: String?
  /// True only where the token says `true`.
  let isEmailVerified: Bool
  /// The domain of the organisation that the account belongs to; nil where it belongs to none.
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
    // What is about the person only may be odd without the token being a forgery.
    email = try? fields.decodeIfPresent(String.self, forKey: .email)
    isEmailVerified = (try? fields.decodeIfPresent(Bool.self, forKey: .isEmailVerified)) == true
    hostedDomain = try? fields.decodeIfPresent(String.self, forKey: .hostedDomain)
    firstName = try? fields.decodeIfPresent(String.self, forKey: .firstName)
    lastName = try? fields.decodeIfPresent(String.self, forKey: .lastName)
    name = try? fields.decodeIfPresent(String.self, forKey: .name)
  }

  func encode(to encoder: any Encoder) throws {
    throw EncodingError.invalidValue(
      self, EncodingError.Context(codingPath: [], debugDescription: "an ID token is only read here"))
  }

  /// Nothing to do here: what is to be compared with is not at hand.
  func verify(using algorithm: some JWTAlgorithm) {}
}

/// What an ID token must say to be ours (OpenID Connect Core 1.0 section 3.1.3.7).
struct IDTokenExpectation {
  let client: Client
  let attempt: Attempt
  /// Whether a token that was made for one of the operator's own apps will do: where the app brings it itself.
  let takesApps: Bool
  /// Milliseconds since the Unix epoch.
  let now: Int64

  /// Seconds that two clocks may differ.
  private static let leeway: Double = 60

  func accepts(_ claims: IDTokenClaims) -> Bool {
    let parties = takesApps ? [client.id] + client.apps : [client.id]
    let now = Double(now) / 1000
    let begun = Double(attempt.begunAt) / 1000
    guard client.speaksFor(claims.issuer) else { return false }
    // Attack: a token that another site got for this person, brought here. All of its audiences must be ours.
    guard !claims.audiences.isEmpty, claims.audiences.allSatisfy(parties.contains) else { return false }
    guard claims.authorizedParty.map(parties.contains) ?? (claims.audiences.count == 1) else { return false }
    guard now < claims.expiresAt + Self.leeway, claims.issuedAt <= now + Self.leeway, claims.issuedAt < claims.expiresAt
    else { return false }
    // Attack: a token from before this step. None that answers it can be older.
    guard claims.issuedAt >= begun - Self.leeway, claims.notBefore ?? 0 <= now + Self.leeway else { return false }
    // Attack: a token of another step, of this person or another (replay, injection).
    guard let nonce = claims.nonce, SafeCompare.equal(nonce, attempt.nonce) else { return false }
    // At most 255 characters of ASCII (section 2).
    return !claims.subject.isEmpty && claims.subject.utf8.count <= 255
      && claims.subject.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }
  }
}
