import Crypto
import Foundation
import MoongateSDK

/// All keys derived from one master key.
struct DerivedKeys: Sendable {
  /// Identifies the key in lists and commands. Reveals nothing about it.
  let name: String
  // Initialised once, so that the key block is not hashed for each code.
  let codes: HMAC<SHA256>
  let counting: CountingKeys
  let accessTokens: HMAC<SHA256>
  let backups: HMAC<SHA256>
  let records: SymmetricKey
  /// Seals device tokens.
  let devices: SymmetricKey
  let pepper: SymmetricKey
  /// Identifies the pepper in a hash that was made with it. Reveals nothing about it.
  let pepperName: String
  let assertions: SymmetricKey
  /// For the signing keys of apps.
  let apps: SymmetricKey
  /// For refresh tokens.
  let appTokens: HMAC<SHA256>

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
    apps = derive("app signing")
    appTokens = HMAC(key: derive("app token"))
  }

  /// Eight hexadecimal digits.
  static func name(of master: [UInt8]) -> String {
    let name = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: SymmetricKey(data: master), salt: Data("moongate".utf8), info: Data("key name".utf8),
      outputByteCount: 4)
    return name.withUnsafeBytes { Hex.encode($0) }
  }

  /// The key that signs in a period. Derived only from the master key, the use and the period.
  func signer(for use: RotatingKeys.Use, period: Int64) -> JWTSigner {
    switch use {
    case .assertions:
      JWTSigner(Self.derive(from: assertions, "assertion \(period)", P256.Signing.PrivateKey.init(rawRepresentation:)))
    case .appsES256:
      JWTSigner(Self.derive(from: apps, "ES256 \(period)", P256.Signing.PrivateKey.init(rawRepresentation:)))
    case .appsEdDSA:
      JWTSigner(Self.derive(from: apps, "EdDSA \(period)", Curve25519.Signing.PrivateKey.init(rawRepresentation:)))
    }
  }

  private static func derive<Key>(
    from secret: SymmetricKey, _ purpose: String, _ make: (UnsafeRawBufferPointer) throws -> Key
  ) -> Key {
    var attempt = 0
    while true {
      let info = "\(purpose) \(attempt)"
      let number = HKDF<SHA256>.deriveKey(
        inputKeyMaterial: secret, salt: Data("moongate".utf8), info: Data(info.utf8), outputByteCount: 32)
      // A number at or above the group's order is not a valid key. Try the next one then (the chance is 2^-32).
      if let key = number.withUnsafeBytes({ try? make($0) }) { return key }
      attempt += 1
    }
  }

  /// `KeyRing.codeMAC` with this key.
  func codeMAC(_ code: String, flow: TokenHash, provider: String, identifier: String, purpose: String) -> [UInt8] {
    codes.code(ofParts: [
      Array(code.utf8), flow.bytes, Array(provider.utf8), Array(identifier.utf8), Array(purpose.utf8),
    ])
  }

  /// `KeyRing.accessTokenHash` with this key.
  func accessTokenHash(_ secret: SecretText) -> AccessTokenHash {
    AccessTokenHash(key: name, bytes: accessTokens.code(of: Array(secret.reveal().utf8)))
  }

  func seal(_ record: [UInt8], for owner: String) throws -> [UInt8] { try records.seal(record, for: owner) }

  func open(_ sealed: [UInt8], for owner: String) throws -> [UInt8] { try records.open(sealed, for: owner) }
}

/// The keys that must stay the same for as long as a store exists: for counters, for keyed hashes in logs, and for the
/// store's fingerprint.
struct CountingKeys: Sendable {
  static let fingerprintLength = 16

  /// The name of the master key.
  let name: String
  /// For keyed hashes in logs.
  let logKey: SymmetricKey
  /// For the keys of counters.
  let counterKey: SymmetricKey
  // Initialised once, so that the key blocks are not hashed each time.
  let logs: HMAC<SHA256>
  let counters: HMAC<SHA256>
  /// Distinguishes stores that were created with another key. Reveals nothing about the key.
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
  /// The authentication code of bytes, with the key of this HMAC.
  func code(of bytes: [UInt8], length: Int = SHA256.byteCount) -> [UInt8] {
    var mac = self
    mac.update(data: bytes)
    return mac.finalize().withUnsafeBytes { Array($0.prefix(length)) }
  }

  /// The authentication code of a list. Each part is prefixed with its length, so that different lists never give the
  /// same bytes.
  func code(ofParts parts: [[UInt8]], length: Int = SHA256.byteCount) -> [UInt8] {
    // Update once: each update costs more than the bytes that it processes.
    var bytes: [UInt8] = []
    bytes.reserveCapacity(parts.reduce(0) { $0 + $1.count + 4 })
    for part in parts {
      withUnsafeBytes(of: UInt32(part.count).bigEndian) { bytes.append(contentsOf: $0) }
      bytes.append(contentsOf: part)
    }
    return code(of: bytes, length: length)
  }
}
