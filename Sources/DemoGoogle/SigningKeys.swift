import CryptoExtras
import Foundation
import JWTKit
import MoongateSDK

/// The signing keys of the provider and their published form (RFC 7517). RS256, like Google.
struct SigningKeys: Sendable {
  /// A key pair with its id.
  private struct Pair: Sendable {
    let id: String
    let key: JWTKit.Insecure.RSA.PrivateKey

    init(id: String) throws {
      self.id = id
      key = try JWTKit.Insecure.RSA.PrivateKey(backing: _RSA.Signing.PrivateKey(keySize: .bits2048))
    }

    func published() throws -> PublishedKey {
      let numbers = try key.publicKey.getKeyPrimitives()
      let (modulus, exponent) = (Base64URL.encode(numbers.modulus), Base64URL.encode(numbers.publicExponent))
      return PublishedKey(kty: "RSA", use: "sig", alg: "RS256", kid: id, n: modulus, e: exponent)
    }
  }

  private let current: Pair
  private let previous: Pair?

  /// The id of the current signing key.
  var id: String { current.id }

  /// - Throws: an error if the system has no randomness.
  init(id: String) throws { self.init(current: try Pair(id: id), previous: nil) }

  private init(current: Pair, previous: Pair?) {
    self.current = current
    self.previous = previous
  }

  /// New keys with these as the previous ones.
  func rotated(id: String) throws -> SigningKeys { SigningKeys(current: try Pair(id: id), previous: current) }

  func published() throws -> PublishedKeys {
    PublishedKeys(keys: try [current.published()] + (previous.map { [try $0.published()] } ?? []))
  }

  func sign(_ claims: some JWTPayload) async throws -> String {
    let kid = JWKIdentifier(string: current.id)
    let keys = await JWTKeyCollection().add(rsa: current.key, digestAlgorithm: .sha256, kid: kid)
    return try await keys.sign(claims, kid: kid)
  }
}

/// The document at `jwks_uri`.
struct PublishedKeys: Encodable, Sendable { let keys: [PublishedKey] }

/// A public key of the document.
struct PublishedKey: Encodable, Sendable {
  let kty: String
  let use: String
  let alg: String
  let kid: String
  let n: String
  let e: String
}

/// The claims of an ID token (OpenID Connect Core 1.0 sections 2 and 5.1).
struct IdentityClaims: JWTPayload {
  let iss: String
  let azp: String
  let aud: String
  let sub: String
  let iat: Int64
  let exp: Int64
  let nonce: String?
  let email: String?
  let isEmailVerified: Bool?
  let hd: String?
  let name: String?
  let givenName: String?
  let familyName: String?

  enum CodingKeys: String, CodingKey {
    case iss, azp, aud, sub, iat, exp, nonce, email, hd, name
    case isEmailVerified = "email_verified"
    case givenName = "given_name"
    case familyName = "family_name"
  }

  func verify(using algorithm: some JWTAlgorithm) {}
}

/// The discovery document (OpenID Connect Discovery 1.0 section 3), encoded in snake case.
struct Discovery: Encodable, Sendable {
  let issuer: String
  let authorizationEndpoint: String
  let tokenEndpoint: String
  let userinfoEndpoint: String
  let jwksUri: String
  let responseTypesSupported = ["code"]
  let responseModesSupported = ["query"]
  let grantTypesSupported = ["authorization_code"]
  let subjectTypesSupported = ["public"]
  let idTokenSigningAlgValuesSupported = ["RS256"]
  let scopesSupported = ["openid", "email", "profile"]
  let tokenEndpointAuthMethodsSupported = ["client_secret_basic", "client_secret_post"]
  let claimsSupported = [
    "aud", "email", "email_verified", "exp", "family_name", "given_name", "iat", "iss", "name", "sub",
  ]
  let codeChallengeMethodsSupported = ["S256"]
  let authorizationResponseIssParameterSupported = true

  init(issuer: String) {
    self.issuer = issuer
    authorizationEndpoint = issuer + "/authorize"
    tokenEndpoint = issuer + "/token"
    userinfoEndpoint = issuer + "/userinfo"
    jwksUri = issuer + "/certs"
  }
}
