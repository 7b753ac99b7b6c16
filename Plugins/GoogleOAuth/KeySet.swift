import Foundation
import JWTKit

/// The public keys of a provider (RFC 7517) that can verify an ID token.
struct KeySet: Sendable {
  /// A key with its algorithm.
  struct Key: Sendable {
    enum Material: Sendable {
      case rsa(Insecure.RSA.PublicKey)
      case p256(ES256PublicKey)
    }

    let id: String?
    let material: Material

    /// The algorithm of the key. It never depends on the token.
    var algorithm: String {
      switch material {
      case .rsa: "RS256"
      case .p256: "ES256"
      }
    }
  }

  /// The maximum number of keys that are read.
  private static let most = 32

  private struct Document: Decodable {
    let keys: [Readable]
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
      switch kind {
      case "RSA" where algorithm ?? "RS256" == "RS256":
        let modulus = try fields.decode(String.self, forKey: .n)
        let exponent = try fields.decode(String.self, forKey: .e)
        return Key(id: id, material: .rsa(try Insecure.RSA.PublicKey(modulus: modulus, exponent: exponent)))
      case "EC" where algorithm ?? "ES256" == "ES256":
        guard try fields.decode(String.self, forKey: .crv) == "P-256" else { return nil }
        let point = (x: try fields.decode(String.self, forKey: .x), y: try fields.decode(String.self, forKey: .y))
        return Key(id: id, material: .p256(try ES256PublicKey(parameters: point)))
      // Attack: with a symmetric key, every reader of the set could sign tokens. Such keys are ignored.
      default: return nil
      }
    }
  }

  let keys: [Key]

  /// - Throws: an error if the document is not a key set.
  init(_ bytes: [UInt8], of issuer: String) throws(OAuthFault) {
    guard let document = try? JSONDecoder().decode(Document.self, from: Data(bytes)) else {
      throw .provider("the keys of \(issuer) cannot be read")
    }
    keys = document.keys.prefix(Self.most).compactMap(\.key)
  }

  /// The key named by a token; without a name, the only key with the algorithm (OpenID Connect Core 1.0 section 10.1).
  func key(for token: IDToken) -> Key? {
    let fitting = keys.filter { $0.algorithm == token.algorithm }
    guard let id = token.keyID else { return fitting.count == 1 ? fitting[0] : nil }
    return fitting.first { $0.id == id }
  }
}
