import Crypto
import Foundation
import MoongateSDK
import Synchronization

/// The keys of one installation, all derived from its master keys, none of them in the database.
///
/// What is made is made with the current key. What was made with any key of the ring stays good: codes, sealed records,
/// hashes, device tokens, assertions. What must mean the same for as long as the store lives (counters, log hashes, the
/// store's mark) follows from the oldest key, so that a rotation lifts no lock and forgets no try.
///
/// One ring is held by all who make and open things: `replace` exchanges its keys under their hands. What takes several
/// calls must mean the same whichever keys each of them finds.
package final class KeyRing: Sendable {
  /// The keys at one moment.
  private final class Keys: Sendable {
    let current: DerivedKeys
    let counting: CountingKeys
    /// The current key first: most of what is opened was made with it. Without those that are retired.
    let all: [DerivedKeys]
    let retired: [RetiredKey]
    /// Of all keys, retired ones too, the oldest first.
    let fingerprints: [(name: String, fingerprint: [UInt8])]

    init(_ masters: MasterKeys) {
      let members = masters.members.filter { $0.rest == nil }
      let derived = members.map { DerivedKeys($0.master) }
      let place = members.firstIndex { $0.role == .current } ?? 0
      current = derived[place]
      all = [derived[place]] + derived[..<place].reversed() + derived[(place + 1)...]
      retired = masters.members.compactMap(\.rest)
      counting = masters.oldest.rest?.counting ?? derived[0].counting
      fingerprints =
        retired.map { ($0.name, $0.counting.fingerprint) } + derived.map { ($0.name, $0.counting.fingerprint) }
    }
  }

  private let keys: Mutex<Keys>
  private var all: [DerivedKeys] { keys.withLock { $0 }.all }
  private var current: DerivedKeys { keys.withLock { $0 }.current }
  private var counting: CountingKeys { keys.withLock { $0 }.counting }

  package init(_ masters: MasterKeys) { keys = Mutex(Keys(masters)) }

  /// A ring of one key.
  /// - Parameter master: 32 bytes or more.
  /// - Throws: `KeyRingError.tooShort`.
  package convenience init(master: [UInt8]) throws(KeyRingError) { self.init(try MasterKeys(only: master)) }

  /// Takes these keys in place of those that it has.
  /// - Returns: false where the oldest key is another one, by which is counted and a store is known: then it stays as
  ///   it is.
  package func replace(by masters: MasterKeys) -> Bool {
    let new = Keys(masters)
    return keys.withLock { keys in
      guard new.counting.fingerprint == keys.counting.fingerprint else { return false }
      keys = new
      return true
    }
  }

  /// The names of all keys that open things, the current one first.
  package var names: [String] { all.map(\.name) }

  /// The name of the key with which all is made now.
  package var currentName: String { current.name }
  /// Names the current pepper in a hash that is made with it; says nothing about it.
  package var pepperName: String { current.pepperName }
  /// Tells stores that were made under another key from ours; says nothing about the key.
  package var fingerprint: [UInt8] { counting.fingerprint }
  /// The name of the key by which is counted.
  package var oldestName: String { counting.name }

  /// The name of the key of the ring by which a store was made that has this fingerprint; nil where none of them is it.
  package func holder(of fingerprint: [UInt8]) -> String? {
    keys.withLock { $0 }.fingerprints.first { $0.fingerprint == fingerprint }?.name
  }

  /// The fingerprint of the stores that are made by the named key of the ring.
  package func fingerprint(of name: String) -> [UInt8]? {
    keys.withLock { $0 }.fingerprints.first { $0.name == name }?.fingerprint
  }

  /// The key that signs `X-Moongate-Assertion` (ES256) in a period; which one it is depends on nothing else.
  package func assertionKey(period: Int64) -> P256.Signing.PrivateKey { current.assertionKey(period: period) }

  /// All keys with which an assertion of the period may be signed, by this node or by one that has another current key:
  /// the current one first.
  package func assertionKeys(period: Int64) -> [P256.Signing.PrivateKey] { all.map { $0.assertionKey(period: period) } }

  // MARK: codes

  /// The form in which a code is kept: HMAC-SHA-256 over the code and all that it is good for, so that it cannot be
  /// moved to another flow, provider, identifier or purpose, and a copy of the database tells no codes.
  package func codeMAC(_ code: String, flow: TokenHash, provider: String, identifier: String, purpose: String)
    -> [UInt8]
  {
    current.codeMAC(code, flow: flow, provider: provider, identifier: identifier, purpose: purpose)
  }

  /// Whether `codeMAC` gave this for the code, under any key of the ring. In a time that depends on the number of keys
  /// alone.
  package func isMAC(
    _ mac: [UInt8], of code: String, flow: TokenHash, provider: String, identifier: String, purpose: String
  ) -> Bool {
    all.reduce(false) { found, keys in
      let fits = constantTimeEquals(
        keys.codeMAC(code, flow: flow, provider: provider, identifier: identifier, purpose: purpose), mac)
      return found || fits
    }
  }

  // MARK: tokens of programs

  /// The form in which the secret of a token is stored from now on.
  package func accessTokenHash(_ secret: SecretText) -> AccessTokenHash { current.accessTokenHash(secret) }

  /// All forms in which it may be stored: under each key of the ring, the current one first.
  package func accessTokenHashes(_ secret: SecretText) -> [AccessTokenHash] { all.map { $0.accessTokenHash(secret) } }

  // MARK: backups

  /// Begins the authentication code of a backup of the store.
  /// - Parameter name: the key that the backup names; nil: the current one, for a backup that is made.
  /// - Returns: nil where the ring has no key of this name.
  package func backupCode(by name: String? = nil) -> HMAC<SHA256>? {
    guard let name else { return current.backups }
    return all.first { $0.name == name }?.backups
  }

  // MARK: what stays as long as the store

  /// What a log or an event may say of an identifier: the same person gives the same text, which tells nothing else.
  package func logHash(_ identifier: String) -> String {
    Base64URL.encode(counting.logs.code(of: Array(identifier.utf8), length: 9))
  }

  /// The form in which a passed step keeps the identifier that it proved.
  package func proofHash(of identifier: Identifier) -> String {
    logHash("\(identifier.kind.rawValue) \(identifier.value)")
  }

  /// The row of a counter in the ledger: what is counted by, without saying who it is.
  package func counterKey(_ parts: [[UInt8]]) -> [UInt8] { counting.counters.code(ofParts: parts, length: 20) }

  // MARK: peppers

  /// A secret as it goes into Argon2: under a key that is not in the database, without which a copy of the database
  /// cannot be guessed against.
  /// - Returns: with the name of the pepper that was taken.
  package func peppered(_ secret: [UInt8]) -> (secret: [UInt8], pepper: String) {
    let current = current
    return (Array(HMAC<SHA256>.authenticationCode(for: secret, using: current.pepper)), current.pepperName)
  }

  /// The same with the pepper of this name; nil where the ring has none.
  package func peppered(_ secret: [UInt8], by pepper: String) -> [UInt8]? {
    all.first { $0.pepperName == pepper }.map { Array(HMAC<SHA256>.authenticationCode(for: secret, using: $0.pepper)) }
  }

  /// The names of the keys whose pepper is in the hashes that stand in a provider's record.
  package func peppering(_ record: [UInt8]) -> Set<String> {
    let text = Data(record)
    return Set(all.filter { text.range(of: Data("keyid=\($0.pepperName)".utf8)) != nil }.map(\.name))
  }

  // MARK: devices

  /// Seals what a device carries.
  func sealDevice(_ bytes: [UInt8], for owner: String) throws -> [UInt8] { try current.devices.seal(bytes, for: owner) }

  /// Opens what a device carries: under any key of the ring, and under one that is retired until such marks have aged
  /// out.
  func openDevice(_ sealed: [UInt8], for owner: String, at now: Timestamp) -> [UInt8]? {
    let keys = keys.withLock { $0 }
    for key in keys.all.map(\.devices) + keys.retired.compactMap({ $0.deviceKey(at: now) }) {
      if let bytes = try? key.open(sealed, for: owner) { return bytes }
    }
    // Marks of before were sealed like records.
    return try? open(sealed, for: owner)
  }

  // MARK: sealed records

  /// Seals what a provider keeps, bound to whom it is for: moved to another account or provider it cannot be opened.
  package func seal(_ record: [UInt8], for owner: String) throws -> [UInt8] { try current.seal(record, for: owner) }

  /// Opens what `seal` closed, under whichever key of the ring.
  /// - Throws: where it was changed, moved, or sealed under another key.
  package func open(_ sealed: [UInt8], for owner: String) throws -> [UInt8] { try opening(sealed, for: owner).record }

  /// Opens what `seal` closed.
  /// - Returns: what was in it, and the name of the key that it was sealed with.
  /// - Throws: where it was changed, moved, or sealed under another key.
  package func opening(_ sealed: [UInt8], for owner: String) throws -> (record: [UInt8], key: String) {
    for keys in all {
      if let record = try? keys.open(sealed, for: owner) { return (record, keys.name) }
    }
    throw KeyRingError.notOurs
  }
}
