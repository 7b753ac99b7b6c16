import Crypto
import Foundation

/// The keys of one installation, all derived from its master key, none of them in the database.
package struct KeyRing: Sendable {
  private let codes: SymmetricKey
  private let logs: SymmetricKey
  /// Begun: the key's own blocks are hashed once, not for each counter.
  private let counters: HMAC<SHA256>
  private let records: SymmetricKey
  private let pepper: SymmetricKey
  /// Names the pepper in a hash that was made with it; says nothing about it.
  package let pepperName: String
  private let assertions: SymmetricKey
  /// Tells stores that were made under another key from ours; says nothing about the key.
  package let fingerprint: [UInt8]

  /// - Parameter master: 32 bytes or more.
  /// - Throws: `KeyRingError.tooShort`.
  package init(master: [UInt8]) throws(KeyRingError) {
    guard master.count >= 32 else { throw .tooShort }
    let root = SymmetricKey(data: master)
    let derive = { (purpose: String) in
      HKDF<SHA256>.deriveKey(inputKeyMaterial: root, salt: Data("moongate".utf8), info: Data(purpose.utf8), outputByteCount: 32)
    }
    codes = derive("code")
    logs = derive("log")
    counters = HMAC(key: derive("counter"))
    records = derive("record")
    pepper = derive("pepper")
    pepperName = derive("pepper name").withUnsafeBytes { Base64URL.encode($0.prefix(6)) }
    fingerprint = derive("fingerprint").withUnsafeBytes { Array($0.prefix(16)) }
    assertions = derive("assertion")
  }

  /// The key that signs `X-Moongate-Assertion` (ES256) in a period; which one it is depends on nothing else.
  package func assertionKey(period: Int64) -> P256.Signing.PrivateKey {
    var attempt = 0
    while true {
      let number = HKDF<SHA256>.deriveKey(
        inputKeyMaterial: assertions, salt: Data("moongate".utf8), info: Data("assertion \(period) \(attempt)".utf8), outputByteCount: 32)
      // A number at or above the group's order is no key: take the next one then (its chance is 2^-32).
      if let key = number.withUnsafeBytes({ try? P256.Signing.PrivateKey(rawRepresentation: $0) }) { return key }
      attempt += 1
    }
  }

  /// The form in which a code is kept: HMAC-SHA-256 over the code and all that it is good for, so that it cannot be
  /// moved to another flow, provider, identifier or purpose, and a copy of the database tells no codes.
  package func codeMAC(_ code: String, flow: TokenHash, provider: String, identifier: String, purpose: String) -> [UInt8] {
    var mac = HMAC<SHA256>(key: codes)
    for part in [Array(code.utf8), flow.bytes, Array(provider.utf8), Array(identifier.utf8), Array(purpose.utf8)] {
      // Each part with its length before it: no two different lists of parts give the same bytes.
      withUnsafeBytes(of: UInt32(part.count).bigEndian) { mac.update(data: $0) }
      mac.update(data: part)
    }
    return Array(mac.finalize())
  }

  /// What a log or an event may say of an identifier: the same person gives the same text, which tells nothing else.
  package func logHash(_ identifier: String) -> String {
    Base64URL.encode(HMAC<SHA256>.authenticationCode(for: Data(identifier.utf8), using: logs).prefix(9))
  }

  /// The row of a counter in the ledger: what is counted by, without saying who it is.
  package func counterKey(_ parts: [[UInt8]]) -> [UInt8] {
    // In one piece: each update costs more than the bytes that it takes.
    var bytes: [UInt8] = []
    bytes.reserveCapacity(128)
    for part in parts {
      withUnsafeBytes(of: UInt32(part.count).bigEndian) { bytes.append(contentsOf: $0) }
      bytes.append(contentsOf: part)
    }
    var mac = counters
    mac.update(data: bytes)
    return Array(Array(mac.finalize()).prefix(20))
  }

  /// A secret as it goes into Argon2: under a key that is not in the database, without which a copy of the database cannot
  /// be guessed against.
  package func peppered(_ secret: [UInt8]) -> [UInt8] { Array(HMAC<SHA256>.authenticationCode(for: secret, using: pepper)) }

  /// Seals what a provider keeps, bound to whom it is for: moved to another account or provider it cannot be opened.
  package func seal(_ record: [UInt8], for owner: String) throws -> [UInt8] {
    try Array(ChaChaPoly.seal(record, using: records, authenticating: Array(owner.utf8)).combined)
  }

  /// Opens what `seal` closed.
  /// - Throws: where it was changed, moved, or sealed under another key.
  package func open(_ sealed: [UInt8], for owner: String) throws -> [UInt8] {
    try Array(ChaChaPoly.open(ChaChaPoly.SealedBox(combined: sealed), using: records, authenticating: Array(owner.utf8)))
  }

  /// Compares in a time that does not depend on where the two differ.
  package static func equal(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    return zip(left, right).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }
}

/// A master key that cannot be used.
package enum KeyRingError: Error, Sendable {
  /// Under 32 bytes.
  case tooShort
}
