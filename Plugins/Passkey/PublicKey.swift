import Crypto
import CryptoExtras
import Foundation

/// The public key of a credential with one of the three offered algorithms.
enum PublicKey {
  case es256(P256.Signing.PublicKey)
  case eddsa(Curve25519.Signing.PublicKey)
  case rs256(_RSA.Signing.PublicKey)

  /// COSE algorithm identifiers (IANA "COSE Algorithms"), in order of preference.
  static let algorithms: [Int64] = [-7, -8, -257]

  /// Parses a COSE_Key (RFC 9053).
  /// - Returns: nil for another algorithm or an invalid key: a point off the curve, an RSA modulus under 2,048 bits, an
  ///   exponent other than 65,537.
  init?(cose bytes: [UInt8]) {
    guard let key = try? CBORReader.read(bytes), let type = key[.integer(1)]?.integer,
      let algorithm = key[.integer(3)]?.integer
    else { return nil }
    switch (type, algorithm) {
    case (2, -7):
      guard key[.integer(-1)]?.integer == 1, let x = key[.integer(-2)]?.bytes, let y = key[.integer(-3)]?.bytes,
        x.count == 32, y.count == 32,
        let point = try? P256.Signing.PublicKey(rawRepresentation: x + y)
      else { return nil }
      self = .es256(point)
    case (1, -8):
      guard key[.integer(-1)]?.integer == 6, let x = key[.integer(-2)]?.bytes, x.count == 32,
        let point = try? Curve25519.Signing.PublicKey(rawRepresentation: x)
      else { return nil }
      self = .eddsa(point)
    case (3, -257):
      // Attack: with an exponent of 1, every message is its own signature; a short modulus can be factored; a huge one
      // wastes CPU time.
      guard let modulus = key[.integer(-1)]?.bytes, let exponent = key[.integer(-2)]?.bytes, exponent == [1, 0, 1],
        (256...512).contains(modulus.count),
        let first = modulus.first, first >= 0x80, let last = modulus.last, last & 1 == 1,
        let read = try? _RSA.Signing.PublicKey(n: Data(modulus), e: Data(exponent))
      else { return nil }
      self = .rs256(read)
    default: return nil
    }
  }

  /// The COSE identifier of the algorithm.
  var algorithm: Int64 {
    switch self {
    case .es256: -7
    case .eddsa: -8
    case .rs256: -257
    }
  }

  /// Whether the key signed the message.
  func isSignature(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    switch self {
    case .es256(let key):
      guard let read = try? P256.Signing.ECDSASignature(derRepresentation: Data(signature)) else { return false }
      return key.isValidSignature(read, for: Data(message))
    case .eddsa(let key): return key.isValidSignature(Data(signature), for: Data(message))
    case .rs256(let key):
      return key.isValidSignature(
        _RSA.Signing.RSASignature(rawRepresentation: Data(signature)), for: SHA256.hash(data: Data(message)),
        padding: .insecurePKCS1v1_5)
    }
  }
}
