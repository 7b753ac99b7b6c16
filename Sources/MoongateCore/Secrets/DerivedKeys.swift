import Crypto
import Foundation
import MoongateSDK

/// All keys that follow from one master key.
struct DerivedKeys: Sendable {
  /// Tells the key from others in lists and commands; says nothing about it.
  let name: String
  // Begun: the key's own blocks are hashed once, not for each code that is made with it.
  let codes: HMAC<SHA256>
  let counting: CountingKeys
  let accessTokens: HMAC<SHA256>
  let backups: HMAC<SHA256>
  let records: SymmetricKey
  /// Seals what devices carry.
  let devices: SymmetricKey
  let pepper: SymmetricKey
  /// Names the pepper in a hash that was made with it; says nothing about it.
  let pepperName: String
  let assertions: SymmetricKey

  /// - Parameter master: 32 bytes or more.
  init(_ master: [UInt8]) {
    let root = SymmetricKey(data: master)
    let derive = { (purpose: String) in
      HKDF<SHA256>.deriveKey(
        inputKeyMaterial: root, salt: Data("moongate".utf8), info: Data(purpose.utf8), outputByteCount: 32)
    }
    name = Self.name(of: master)
    codes = HMAC(key: derive("code"))
    counting = CountingKeys(
      name: name, logs: derive("log"), counters: derive("counter"),
      fingerprint: derive("fingerprint").withUnsafeBytes { Array($0.prefix(CountingKeys.fingerprintLength)) })
    accessTokens = HMAC(key: derive("access token"))
    backups = HMAC(key: derive("backup"))
    records = derive("record")
    devices = derive("device")
    pepper = derive("pepper")
    pepperName = derive("pepper name").withUnsafeBytes { Base64URL.encode($0.prefix(6)) }
    assertions = derive("assertion")
  }

  /// Eight hexadecimal digits.
  static func name(of master: [UInt8]) -> String {
    let name = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: SymmetricKey(data: master), salt: Data("moongate".utf8), info: Data("key name".utf8),
      outputByteCount: 4)
    return name.withUnsafeBytes { $0.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
  }

  /// The key that signs `X-Moongate-Assertion` (ES256) in a period; which one it is depends on nothing else.
  func assertionKey(period: Int64) -> P256.Signing.PrivateKey {
    var attempt = 0
    while true {
      let number = HKDF<SHA256>.deriveKey(
        inputKeyMaterial: assertions, salt: Data("moongate".utf8), info: Data("assertion \(period) \(attempt)".utf8),
        outputByteCount: 32)
      // A number at or above the group's order is no key: take the next one then (its chance is 2^-32).
      if let key = number.withUnsafeBytes({ try? P256.Signing.PrivateKey(rawRepresentation: $0) }) { return key }
      attempt += 1
    }
  }

  /// `KeyRing.codeMAC` under this key.
  func codeMAC(_ code: String, flow: TokenHash, provider: String, identifier: String, purpose: String) -> [UInt8] {
    codes.code(ofParts: [
      Array(code.utf8), flow.bytes, Array(provider.utf8), Array(identifier.utf8), Array(purpose.utf8),
    ])
  }

  /// `KeyRing.accessTokenHash` under this key.
  func accessTokenHash(_ secret: SecretText) -> AccessTokenHash {
    AccessTokenHash(key: name, bytes: accessTokens.code(of: Array(secret.reveal().utf8)))
  }

  func seal(_ record: [UInt8], for owner: String) throws -> [UInt8] { try records.seal(record, for: owner) }

  func open(_ sealed: [UInt8], for owner: String) throws -> [UInt8] { try records.open(sealed, for: owner) }
}

/// What must mean the same for as long as a store lives: what it counts by, what logs call people by, and by what it is
/// known itself.
struct CountingKeys: Sendable {
  static let fingerprintLength = 16

  /// Of the master key.
  let name: String
  /// By which logs call people.
  let logKey: SymmetricKey
  /// By which it is counted.
  let counterKey: SymmetricKey
  // Begun: the keys' own blocks are hashed once.
  let logs: HMAC<SHA256>
  let counters: HMAC<SHA256>
  /// Tells stores that were made under another key from ours; says nothing about the key.
  let fingerprint: [UInt8]

  init(name: String, logs: SymmetricKey, counters: SymmetricKey, fingerprint: [UInt8]) {
    self.name = name
    (logKey, counterKey) = (logs, counters)
    self.logs = HMAC(key: logs)
    self.counters = HMAC(key: counters)
    self.fingerprint = fingerprint
  }
}

extension SymmetricKey {
  var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

  func seal(_ record: [UInt8], for owner: String) throws -> [UInt8] {
    try Array(ChaChaPoly.seal(record, using: self, authenticating: Array(owner.utf8)).combined)
  }

  func open(_ sealed: [UInt8], for owner: String) throws -> [UInt8] {
    try Array(ChaChaPoly.open(ChaChaPoly.SealedBox(combined: sealed), using: self, authenticating: Array(owner.utf8)))
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
