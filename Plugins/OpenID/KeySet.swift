import Foundation
import JWTKit

/// The public keys of an issuer (RFC 7517) that can verify an ID token.
struct KeySet: Sendable {
  /// A key with its algorithm.
  struct Key: Sendable {
    enum Material: Sendable {
      case rsa(Insecure.RSA.PublicKey)
      case p256(ES256PublicKey)
      case p384(ES384PublicKey)
      case ed25519(EdDSA.PublicKey)
    }

    let id: String?
    let material: Material
    /// The algorithms of the key: its own `alg`, or those of its type. They never depend on the token.
    let algorithms: [String]
  }

  /// The maximum number of keys that are read.
  private static let most = 32

  /// The keys that can be used, of the first ones only.
  ///
  /// Attack: a document of 1 MiB with thousands of keys, each of which costs time to read.
  private struct Document: Decodable {
    let keys: [Key]

    private enum CodingKeys: String, CodingKey { case keys }

    init(from decoder: any Decoder) throws {
      var list = try decoder.container(keyedBy: CodingKeys.self).nestedUnkeyedContainer(forKey: .keys)
      var keys: [Key] = []
      var count = 0
      while !list.isAtEnd, count < KeySet.most {
        count += 1
        if let key = try list.decode(Readable.self).key { keys.append(key) }
      }
      self.keys = keys
    }
  }

  /// Decodes a key; unsupported keys are skipped without failing the whole set.
  private struct Readable: Decodable {
    let key: Key?

    private enum CodingKeys: String, CodingKey { case kty, use, alg, kid, n, e, crv, x, y }

    init(from decoder: any Decoder) {
      key = try? Self.read(decoder)
    }

    private static func read(_ decoder: any Decoder) throws -> Key? {
      let fields = try decoder.container(keyedBy: CodingKeys.self)
      let kind = try fields.decode(String.self, forKey: .kty)
      let algorithm = try fields.decodeIfPresent(String.self, forKey: .alg)
      guard try fields.decodeIfPresent(String.self, forKey: .use) ?? "sig" == "sig" else { return nil }
      let id = try fields.decodeIfPresent(String.self, forKey: .kid)
      func key(_ material: Key.Material, of type: [String]) -> Key? {
        guard let algorithm else { return Key(id: id, material: material, algorithms: type) }
        return type.contains(algorithm) ? Key(id: id, material: material, algorithms: [algorithm]) : nil
      }
      switch (kind, try fields.decodeIfPresent(String.self, forKey: .crv)) {
      case ("RSA", _):
        let modulus = try fields.decode(String.self, forKey: .n)
        let exponent = try fields.decode(String.self, forKey: .e)
        return key(
          .rsa(try Insecure.RSA.PublicKey(modulus: modulus, exponent: exponent)), of: ["RS256", "PS256"])
      case ("EC", "P-256"): return key(.p256(try ES256PublicKey(parameters: try point(fields))), of: ["ES256"])
      case ("EC", "P-384"): return key(.p384(try ES384PublicKey(parameters: try point(fields))), of: ["ES384"])
      case ("OKP", "Ed25519"):
        let x = try fields.decode(String.self, forKey: .x)
        return key(.ed25519(try EdDSA.PublicKey(x: x, curve: .ed25519)), of: ["EdDSA"])
      // Attack: with a symmetric key, every reader of the set could sign tokens. Such keys are ignored.
      default: return nil
      }
    }

    private static func point(_ fields: KeyedDecodingContainer<CodingKeys>) throws -> ECDSAParameters {
      (x: try fields.decode(String.self, forKey: .x), y: try fields.decode(String.self, forKey: .y))
    }
  }

  let keys: [Key]

  /// - Throws: an error if the document is not a key set.
  init(_ bytes: [UInt8], of issuer: Issuer) throws(OAuthFault) {
    guard let document = try? JSONDecoder().decode(Document.self, from: Data(bytes)) else {
      throw .site("the keys of \(issuer.address) cannot be read")
    }
    keys = document.keys
  }

  /// The key named by a token; without a name, the only key with the algorithm (OpenID Connect Core 1.0 section 10.1).
  func key(for token: IDToken) -> Key? {
    let fitting = keys.filter { $0.algorithms.contains(token.algorithm) }
    guard let id = token.keyID else { return fitting.count == 1 ? fitting[0] : nil }
    return fitting.first { $0.id == id }
  }
}
