import Crypto
import Foundation

/// All keys that follow from one master key.
struct DerivedKeys: Sendable {
  /// Tells the key from others in lists and commands; says nothing about it.
  let name: String
  // Begun: the key's own blocks are hashed once, not for each code that is made with it.
  let codes: HMAC<SHA256>
  let logs: HMAC<SHA256>
  let counters: HMAC<SHA256>
  let accessTokens: HMAC<SHA256>
  let records: SymmetricKey
  let pepper: SymmetricKey
  /// Names the pepper in a hash that was made with it; says nothing about it.
  let pepperName: String
  let assertions: SymmetricKey
  /// Tells stores that were made under another key from ours; says nothing about the key.
  let fingerprint: [UInt8]

  /// - Parameter master: 32 bytes or more.
  init(_ master: [UInt8]) {
    let root = SymmetricKey(data: master)
    let derive = { (purpose: String) in
      HKDF<SHA256>.deriveKey(inputKeyMaterial: root, salt: Data("moongate".utf8), info: Data(purpose.utf8), outputByteCount: 32)
    }
    name = Self.name(of: master)
    codes = HMAC(key: derive("code"))
    logs = HMAC(key: derive("log"))
    counters = HMAC(key: derive("counter"))
    accessTokens = HMAC(key: derive("access token"))
    records = derive("record")
    pepper = derive("pepper")
    pepperName = derive("pepper name").withUnsafeBytes { Base64URL.encode($0.prefix(6)) }
    fingerprint = derive("fingerprint").withUnsafeBytes { Array($0.prefix(16)) }
    assertions = derive("assertion")
  }

  /// Eight hexadecimal digits.
  static func name(of master: [UInt8]) -> String {
    let name = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: SymmetricKey(data: master), salt: Data("moongate".utf8), info: Data("key name".utf8), outputByteCount: 4)
    return name.withUnsafeBytes { $0.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
  }

  /// The key that signs `X-Moongate-Assertion` (ES256) in a period; which one it is depends on nothing else.
  func assertionKey(period: Int64) -> P256.Signing.PrivateKey {
    var attempt = 0
    while true {
      let number = HKDF<SHA256>.deriveKey(
        inputKeyMaterial: assertions, salt: Data("moongate".utf8), info: Data("assertion \(period) \(attempt)".utf8), outputByteCount: 32)
      // A number at or above the group's order is no key: take the next one then (its chance is 2^-32).
      if let key = number.withUnsafeBytes({ try? P256.Signing.PrivateKey(rawRepresentation: $0) }) { return key }
      attempt += 1
    }
  }

  /// `KeyRing.codeMAC` under this key.
  func codeMAC(_ code: String, flow: TokenHash, provider: String, identifier: String, purpose: String) -> [UInt8] {
    codes.code(ofParts: [Array(code.utf8), flow.bytes, Array(provider.utf8), Array(identifier.utf8), Array(purpose.utf8)])
  }

  /// `KeyRing.accessTokenHash` under this key.
  func accessTokenHash(_ secret: SecretText) -> AccessTokenHash {
    AccessTokenHash(key: name, bytes: accessTokens.code(of: Array(secret.reveal().utf8)))
  }

  func seal(_ record: [UInt8], for owner: String) throws -> [UInt8] {
    try Array(ChaChaPoly.seal(record, using: records, authenticating: Array(owner.utf8)).combined)
  }

  func open(_ sealed: [UInt8], for owner: String) throws -> [UInt8] {
    try Array(ChaChaPoly.open(ChaChaPoly.SealedBox(combined: sealed), using: records, authenticating: Array(owner.utf8)))
  }
}

extension HMAC<SHA256> {
  /// The authentication code of bytes, by a key with which this was begun.
  func code(of bytes: [UInt8], length: Int = SHA256.byteCount) -> [UInt8] {
    var mac = self
    mac.update(data: bytes)
    return mac.finalize().withUnsafeBytes { Array($0.prefix(length)) }
  }

  /// The same of a list: each part with its length before it, so that no two different lists give the same bytes.
  func code(ofParts parts: [[UInt8]], length: Int = SHA256.byteCount) -> [UInt8] {
    // In one piece: each update costs more than the bytes that it takes.
    var bytes: [UInt8] = []
    bytes.reserveCapacity(parts.reduce(0) { $0 + $1.count + 4 })
    for part in parts {
      withUnsafeBytes(of: UInt32(part.count).bigEndian) { bytes.append(contentsOf: $0) }
      bytes.append(contentsOf: part)
    }
    return code(of: bytes, length: length)
  }
}
