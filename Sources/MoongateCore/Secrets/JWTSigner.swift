import Crypto
import CryptoExtras
import Foundation
import MoongateSDK

/// The algorithm of a signature (RFC 7518, RFC 8037).
package enum SigningAlgorithm: String, Sendable, CaseIterable {
  case rs256 = "RS256"
  case es256 = "ES256"
  case edDSA = "EdDSA"

  /// The left half of the hash of a text, as `at_hash` (OpenID Connect Core 1.0 section 3.1.3.6). Ed25519 uses SHA-512.
  func halfHash(of text: String) -> String {
    let bytes = Array(text.utf8)
    return switch self {
    case .edDSA: Base64URL.encode(Array(SHA512.hash(data: bytes)).prefix(32))
    case .rs256, .es256: Base64URL.encode(Array(SHA256.hash(data: bytes)).prefix(16))
    }
  }
}

/// A private key that signs JWTs (RFC 7519), with its public key as a JWK (RFC 7517 section 4).
package struct JWTSigner: Sendable {
  private enum Key: Sendable {
    case p256(P256.Signing.PrivateKey)
    case ed25519(Curve25519.Signing.PrivateKey)
    case rsa(_RSA.Signing.PrivateKey)
  }

  package let algorithm: SigningAlgorithm
  /// The thumbprint of the public key (RFC 7638), as `kid`.
  package let id: String
  package let publicKey: String
  private let key: Key

  init(_ key: P256.Signing.PrivateKey) {
    let point = Array(key.publicKey.rawRepresentation)
    let x = Base64URL.encode(point[..<32])
    let y = Base64URL.encode(point[32...])
    self.init(
      .p256(key), .es256, thumbprint: #"{"crv":"P-256","kty":"EC","x":"\#(x)","y":"\#(y)"}"#,
      members: #""kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)""#)
  }

  init(_ key: Curve25519.Signing.PrivateKey) {
    let x = Base64URL.encode(Array(key.publicKey.rawRepresentation))
    self.init(
      .ed25519(key), .edDSA, thumbprint: #"{"crv":"Ed25519","kty":"OKP","x":"\#(x)"}"#,
      members: #""kty":"OKP","crv":"Ed25519","x":"\#(x)""#)
  }

  init(_ key: _RSA.Signing.PrivateKey) throws {
    let numbers = try key.publicKey.getKeyPrimitives()
    let e = Base64URL.encode(Array(numbers.publicExponent))
    let n = Base64URL.encode(Array(numbers.modulus))
    self.init(
      .rsa(key), .rs256, thumbprint: #"{"e":"\#(e)","kty":"RSA","n":"\#(n)"}"#,
      members: #""kty":"RSA","n":"\#(n)","e":"\#(e)""#)
  }

  /// - Parameters:
  ///   - thumbprint: the members that the thumbprint covers, in their order.
  ///   - members: the members of the JWK that describe the key.
  private init(_ key: Key, _ algorithm: SigningAlgorithm, thumbprint: String, members: String) {
    id = Base64URL.encode(SHA256.hash(data: Data(thumbprint.utf8)))
    publicKey = #"{\#(members),"use":"sig","alg":"\#(algorithm.rawValue)","kid":"\#(id)"}"#
    self.algorithm = algorithm
    self.key = key
  }

  /// A signed JWT.
  /// - Parameters:
  ///   - claims: the JSON of the claims.
  ///   - type: the `typ` of the header, by which one kind of token is never taken for another (RFC 8725 section 3.11).
  /// - Throws: an error if signing fails.
  package func sign(_ claims: [UInt8], type: String = "JWT") throws -> String {
    let header = #"{"alg":"\#(algorithm.rawValue)","kid":"\#(id)","typ":"\#(type)"}"#
    let signed = Base64URL.encode(header.utf8) + "." + Base64URL.encode(claims)
    return signed + "." + Base64URL.encode(try signature(of: Data(signed.utf8)))
  }

  private func signature(of bytes: Data) throws -> [UInt8] {
    switch key {
    case .p256(let key): Array(try key.signature(for: bytes).rawRepresentation)
    case .ed25519(let key): Array(try key.signature(for: bytes))
    case .rsa(let key):
      Array(try key.signature(for: SHA256.hash(data: bytes), padding: .insecurePKCS1v1_5).rawRepresentation)
    }
  }

  /// Whether the key has made the signature of the bytes.
  package func hasSigned(_ bytes: Data, with signature: [UInt8]) -> Bool {
    switch key {
    case .p256(let key):
      (try? P256.Signing.ECDSASignature(rawRepresentation: signature)).map {
        key.publicKey.isValidSignature($0, for: bytes)
      } ?? false
    case .ed25519(let key): key.publicKey.isValidSignature(Data(signature), for: bytes)
    case .rsa(let key):
      key.publicKey.isValidSignature(
        _RSA.Signing.RSASignature(rawRepresentation: Data(signature)), for: SHA256.hash(data: bytes),
        padding: .insecurePKCS1v1_5)
    }
  }
}

/// The parts of a JWT, of which nothing is verified yet.
struct UnverifiedJWT {
  let algorithm: SigningAlgorithm
  let keyID: String
  let type: String
  let claims: [String: JSONClaim]
  let signed: Data
  let signature: [UInt8]

  /// - Returns: nil if the text is not a JWT with an algorithm of ours.
  init?(_ text: String) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Base64URL.decode(String(parts[0])),
      let members = try? JSONClaim.members(header), let claims = Base64URL.decode(String(parts[1])),
      let signature = Base64URL.decode(String(parts[2])),
      // Attack: `none`, or `HS256` with a public key as the secret.
      let algorithm = members["alg"]?.text.flatMap(SigningAlgorithm.init), let keyID = members["kid"]?.text,
      members["crit"] == nil, let said = try? JSONClaim.members(claims)
    else { return nil }
    self.algorithm = algorithm
    self.keyID = keyID
    type = members["typ"]?.text ?? ""
    self.claims = said
    signed = Data("\(parts[0]).\(parts[1])".utf8)
    self.signature = signature
  }

  /// The claims, if one of the keys has signed them. Each key is for one algorithm.
  func verified(by signers: [JWTSigner]) -> [String: JSONClaim]? {
    guard let signer = signers.first(where: { $0.algorithm == algorithm && $0.id == keyID }) else { return nil }
    return signer.hasSigned(signed, with: signature) ? claims : nil
  }
}
