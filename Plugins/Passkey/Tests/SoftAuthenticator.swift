import Crypto
import CryptoExtras
import Foundation
import MoongateSDK

@testable import Passkey

/// A software authenticator with one credential, and its browser. Tests change parts of the response.
struct SoftAuthenticator: Sendable {
  enum Key: Sendable {
    case p256(P256.Signing.PrivateKey)
    case ed25519(Curve25519.Signing.PrivateKey)
    case rsa(_RSA.Signing.PrivateKey)

    func sign(_ message: [UInt8]) throws -> [UInt8] {
      switch self {
      case .p256(let key): Array(try key.signature(for: Data(message)).derRepresentation)
      case .ed25519(let key): Array(try key.signature(for: Data(message)))
      case .rsa(let key):
        Array(try key.signature(for: SHA256.hash(data: Data(message)), padding: .insecurePKCS1v1_5).rawRepresentation)
      }
    }

    func cose() throws -> CBORText {
      switch self {
      case .p256(let key):
        let point = Array(key.publicKey.rawRepresentation)
        return .map([
          (.integer(1), .integer(2)), (.integer(3), .integer(-7)), (.integer(-1), .integer(1)),
          (.integer(-2), .bytes(Array(point[..<32]))),
          (.integer(-3), .bytes(Array(point[32...]))),
        ])
      case .ed25519(let key):
        return .map([
          (.integer(1), .integer(1)), (.integer(3), .integer(-8)), (.integer(-1), .integer(6)),
          (.integer(-2), .bytes(Array(key.publicKey.rawRepresentation))),
        ])
      case .rsa(let key):
        let parts = try key.publicKey.getKeyPrimitives()
        return .map([
          (.integer(1), .integer(3)), (.integer(3), .integer(-257)), (.integer(-1), .bytes(Array(parts.modulus))),
          (.integer(-2), .bytes(Array(parts.publicExponent))),
        ])
      }
    }

    var algorithm: Int64 {
      switch self {
      case .p256: -7
      case .ed25519: -8
      case .rsa: -257
      }
    }
  }

  var key = Key.p256(P256.Signing.PrivateKey())
  var id: [UInt8] = (0..<32).map { _ in UInt8.random(in: 0...255) }
  var count: UInt32 = 0
  /// Present, verified, eligible for backup, backed up.
  var flags: UInt8 = 0x1d
  var aaguid = [UInt8](repeating: 0, count: 16)
  var userHandle: String? = Base64URL.encode("ac_1".utf8)

  // Parts of the response that tests change.
  var kind = "public-key"
  var type: String?
  var challenge: String?
  var origin = "https://auth.example.com"
  var crossOrigin: Bool?
  var topOrigin: String?
  var tokenBinding: String?
  var rpID: String?
  var format = "none"
  var statement: CBORText?
  /// Creates the attestation statement for a message, in place of self attestation.
  var states: (@Sendable ([UInt8]) throws -> CBORText)?
  var cose: CBORText?
  var rawID: [UInt8]?
  var extensions: CBORText?
  /// Trailing bytes of the authenticator data.
  var rubbish: [UInt8] = []
  var clientDataPrefix: [UInt8] = []
  var clientDataBytes: [UInt8]?
  /// Appended to the client data after signing.
  var clientDataAfter: [UInt8] = []
  /// Replaces the authenticator data.
  var dataBytes: [UInt8]?
  var attestationObject: [UInt8]?
  var hasCredential = true
  var signs: @Sendable ([UInt8]) -> [UInt8] = { $0 }

  private struct Options: Decodable {
    struct Party: Decodable { let id: String }
    let challenge: String
    let rp: Party?
    let rpId: String?
  }

  private func options(_ text: String) throws -> Options {
    try JSONDecoder().decode(Options.self, from: Data(text.utf8))
  }

  private func clientData(_ ceremony: String, _ challenge: String) throws -> [UInt8] {
    if let clientDataBytes { return clientDataBytes }
    var said: [String: Any] = ["type": type ?? ceremony, "challenge": self.challenge ?? challenge, "origin": origin]
    if let crossOrigin { said["crossOrigin"] = crossOrigin }
    if let topOrigin { said["topOrigin"] = topOrigin }
    if let tokenBinding { said["tokenBinding"] = ["status": tokenBinding, "id": "AAAA"] }
    return clientDataPrefix + Array(try JSONSerialization.data(withJSONObject: said))
  }

  private func data(_ site: String, attested: Bool) throws -> [UInt8] {
    if let dataBytes { return dataBytes }
    var bytes = Array(SHA256.hash(data: Data((rpID ?? site).utf8)))
    bytes.append(flags | (attested && hasCredential ? 0x40 : 0) | (extensions == nil ? 0 : 0x80))
    bytes += withUnsafeBytes(of: count.bigEndian) { Array($0) }
    if attested, hasCredential {
      bytes += aaguid + [UInt8(id.count >> 8), UInt8(id.count & 255)] + id + (try cose ?? key.cose()).bytes
    }
    return bytes + (extensions?.bytes ?? []) + rubbish
  }

  private func json(_ response: [String: Any]) throws -> String {
    let id = Base64URL.encode(rawID ?? self.id)
    let answer: [String: Any] = [
      "id": id, "rawId": id, "type": kind, "response": response, "clientExtensionResults": [String: Any](),
    ]
    return String(decoding: try JSONSerialization.data(withJSONObject: answer), as: UTF8.self)
  }

  /// The response to `navigator.credentials.create()`.
  func create(_ text: String) throws -> String {
    let options = try options(text)
    let client = try clientData("webauthn.create", options.challenge)
    let data = try data(options.rp?.id ?? "", attested: true)
    var statement = statement ?? .map([])
    if let states {
      statement = try states(data + Array(SHA256.hash(data: Data(client))))
    } else if format == "packed", self.statement == nil {
      let signature = signs(try key.sign(data + Array(SHA256.hash(data: Data(client)))))
      statement = .map([(.text("alg"), .integer(key.algorithm)), (.text("sig"), .bytes(signature))])
    }
    let object = CBORText.map([
      (.text("fmt"), .text(format)), (.text("attStmt"), statement), (.text("authData"), .bytes(data)),
    ])
    return try json([
      "clientDataJSON": Base64URL.encode(client + clientDataAfter),
      "attestationObject": Base64URL.encode(attestationObject ?? object.bytes),
      "transports": ["internal", "hybrid", "<script>"],
    ])
  }

  /// The response to `navigator.credentials.get()`.
  func get(_ text: String) throws -> String {
    let options = try options(text)
    let client = try clientData("webauthn.get", options.challenge)
    let data = try data(options.rpId ?? "", attested: false)
    var response = [
      "clientDataJSON": Base64URL.encode(client + clientDataAfter), "authenticatorData": Base64URL.encode(data),
      "signature": Base64URL.encode(signs(try key.sign(data + Array(SHA256.hash(data: Data(client)))))),
    ]
    response["userHandle"] = userHandle
    return try json(response)
  }
}

/// A CBOR value for encoding in tests.
indirect enum CBORText: Sendable {
  case integer(Int64)
  case bytes([UInt8])
  case text(String)
  case list([CBORText])
  case map([(CBORText, CBORText)])
  case flag(Bool)

  var bytes: [UInt8] {
    switch self {
    case .integer(let number): number < 0 ? Self.head(1, UInt64(-1 - number)) : Self.head(0, UInt64(number))
    case .bytes(let bytes): Self.head(2, UInt64(bytes.count)) + bytes
    case .text(let text): Self.head(3, UInt64(text.utf8.count)) + Array(text.utf8)
    case .list(let items): Self.head(4, UInt64(items.count)) + items.flatMap(\.bytes)
    case .map(let members): Self.head(5, UInt64(members.count)) + members.flatMap { $0.0.bytes + $0.1.bytes }
    case .flag(let flag): [flag ? 0xf5 : 0xf4]
    }
  }

  private static func head(_ type: UInt8, _ number: UInt64) -> [UInt8] {
    let (info, size): (UInt8, Int) =
      switch number {
      case ..<24: (UInt8(number), 0)
      case ..<256: (24, 1)
      case ..<65_536: (25, 2)
      case ..<4_294_967_296: (26, 4)
      default: (27, 8)
      }
    return [type << 5 | info] + (0..<size).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) }
  }
}
