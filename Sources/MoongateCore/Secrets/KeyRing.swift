import Crypto
import Foundation
import MoongateSDK
import Synchronization

/// The keys of one installation, all derived from its master keys and none of them stored in the database.
///
/// New items are made with the current key. Items made with any key of the ring stay valid: codes, sealed records,
/// hashes, device tokens, assertions. What must stay the same for as long as the store exists (counters, log hashes,
/// the store's fingerprint) is derived from the oldest key, so that a key rotation neither lifts locks nor clears
/// attempts.
///
/// The ring is shared: `replace` exchanges its keys for all users at once. Operations that take several calls must
/// therefore tolerate different keys in each call.
package final class KeyRing: Sendable {
  /// The keys at one time.
  private final class Keys: Sendable {
    let current: DerivedKeys
    let counting: CountingKeys
    /// The keys that are not retired, with the current key first, because most sealed items were made with it.
    let all: [DerivedKeys]
    let retired: [RetiredKey]
    /// The fingerprints of all keys, including retired ones, oldest first.
    let fingerprints: [(name: String, fingerprint: [UInt8])]

    init(_ masters: MasterKeys) {
      let members = masters.members.filter { $0.retired == nil }
      let derived = members.map { DerivedKeys($0.master) }
      let place = members.firstIndex { $0.role == .current } ?? 0
      current = derived[place]
      all = [derived[place]] + derived[..<place].reversed() + derived[(place + 1)...]
      retired = masters.members.compactMap(\.retired)
      counting = masters.oldest.retired?.counting ?? derived[0].counting
      fingerprints =
        retired.map { ($0.name, $0.counting.fingerprint) } + derived.map { ($0.name, $0.counting.fingerprint) }
    }
  }

  private let keys: Mutex<Keys>
  private var all: [DerivedKeys] { keys.withLock { $0 }.all }
  private var current: DerivedKeys { keys.withLock { $0 }.current }
  private var counting: CountingKeys { keys.withLock { $0 }.counting }

  package init(_ masters: MasterKeys) { keys = Mutex(Keys(masters)) }

  /// A ring with one key.
  /// - Parameter master: 32 bytes or more.
  /// - Throws: `KeyRingError.tooShort`.
  package convenience init(master: [UInt8]) throws(KeyRingError) { self.init(try MasterKeys(only: master)) }

  /// Replaces the keys of the ring.
  /// - Returns: false if the oldest key differs, from which counters and the store's fingerprint are derived. The ring
  ///   then stays unchanged.
  package func replace(by masters: MasterKeys) -> Bool {
    let new = Keys(masters)
    return keys.withLock { keys in
      guard new.counting.fingerprint == keys.counting.fingerprint else { return false }
      keys = new
      return true
    }
  }

  /// The names of all keys that can open sealed items, the current one first.
  package var names: [String] { all.map(\.name) }

  /// The name of the current key.
  package var currentName: String { current.name }
  /// Identifies the current pepper in a hash that is made with it. Reveals nothing about it.
  package var pepperName: String { current.pepperName }
  /// Distinguishes stores that were created with another key. Reveals nothing about the key.
  package var fingerprint: [UInt8] { counting.fingerprint }
  /// The name of the key from which counter keys are derived.
  package var oldestName: String { counting.name }

  /// The name of the key with which a store with this fingerprint was created; nil if it is none of the ring's keys.
  package func holder(of fingerprint: [UInt8]) -> String? {
    keys.withLock { $0 }.fingerprints.first { $0.fingerprint == fingerprint }?.name
  }

  /// The fingerprint of stores that are created with the named key.
  package func fingerprint(of name: String) -> [UInt8]? {
    keys.withLock { $0 }.fingerprints.first { $0.name == name }?.fingerprint
  }

  /// The key that signs in a period. Derived only from the master key, the use and the period.
  func signer(for use: RotatingKeys.Use, period: Int64) -> JWTSigner { current.signer(for: use, period: period) }

  /// All keys that may have signed in the period, on this node or on one with another current key. The current one
  /// first.
  func signers(for use: RotatingKeys.Use, period: Int64) -> [JWTSigner] {
    all.map { $0.signer(for: use, period: period) }
  }

  // MARK: Codes

  /// The stored form of a code: HMAC-SHA-256 over the code and everything that it is bound to. It cannot be moved to
  /// another flow, provider, identifier or purpose, and a copy of the database does not reveal codes.
  package func codeMAC(_ code: String, flow: TokenHash, provider: String, identifier: String, purpose: String)
    -> [UInt8]
  {
    current.codeMAC(code, flow: flow, provider: provider, identifier: identifier, purpose: purpose)
  }

  /// More than five parameters: the MAC, and all values that it covers.
  /// Whether this is the `codeMAC` of the code under any key of the ring. The time depends only on the number of keys.
  package func isMAC(
    _ mac: [UInt8], of code: String, flow: TokenHash, provider: String, identifier: String, purpose: String
  ) -> Bool {
    all.reduce(false) { found, keys in
      let fits = constantTimeEquals(
        keys.codeMAC(code, flow: flow, provider: provider, identifier: identifier, purpose: purpose), mac)
      return found || fits
    }
  }

  // MARK: Access tokens

  /// The hash under which the secret of a new token is stored.
  package func accessTokenHash(_ secret: SecretText) -> AccessTokenHash { current.accessTokenHash(secret) }

  /// All hashes under which the secret may be stored: one per key of the ring, the current one first.
  package func accessTokenHashes(_ secret: SecretText) -> [AccessTokenHash] { all.map { $0.accessTokenHash(secret) } }

  // MARK: Tokens of apps

  /// The authentication codes of a list under all keys of the ring, the current one first.
  func appTokenCodes(of parts: [[UInt8]]) -> [[UInt8]] { all.map { $0.appTokens.code(ofParts: parts) } }

  /// A name of an account or a session for one app: 27 characters, which reveal nothing and stay the same as long as
  /// the store exists.
  func appName(_ kind: String, _ parts: String...) -> String {
    Base64URL.encode(counterKey((["app \(kind)"] + parts).map { Array($0.utf8) }))
  }

  // MARK: Backups

  /// Starts the authentication code of a store backup.
  /// - Parameter name: the key that the backup names; nil for the current one, to create a backup.
  /// - Returns: nil if the ring has no key of this name.
  package func backupCode(by name: String? = nil) -> HMAC<SHA256>? {
    guard let name else { return current.backups }
    return all.first { $0.name == name }?.backups
  }

  // MARK: Hashes that stay as long as the store

  /// The keyed hash of an identifier for logs and events: equal for the same user, and revealing nothing else.
  package func logHash(_ identifier: String) -> String {
    Base64URL.encode(counting.logs.code(of: Array(identifier.utf8), length: 9))
  }

  /// The hash of the identifier that a passed step proved.
  package func proofHash(of identifier: Identifier) -> String {
    logHash("\(identifier.kind.rawValue) \(identifier.value)")
  }

  /// What a session says of the user's session at another site.
  package func siteSessionHash(_ siteSession: String, at provider: ProviderName) -> String {
    logHash("site session \(provider) \(siteSession)")
  }

  /// The key of a counter's row: a keyed hash of what is counted.
  package func counterKey(_ parts: [[UInt8]]) -> [UInt8] { counting.counters.code(ofParts: parts, length: 20) }

  // MARK: Peppers

  /// The secret as input for Argon2: keyed with a pepper that is not in the database, so that a copy of the database
  /// does not allow guessing.
  /// - Returns: the keyed secret, and the name of the pepper that was used.
  package func peppered(_ secret: [UInt8]) -> (secret: [UInt8], pepper: String) {
    let current = current
    return (Array(HMAC<SHA256>.authenticationCode(for: secret, using: current.pepper)), current.pepperName)
  }

  /// The secret keyed with the pepper of this name; nil if the ring does not have it.
  package func peppered(_ secret: [UInt8], by pepper: String) -> [UInt8]? {
    all.first { $0.pepperName == pepper }.map { Array(HMAC<SHA256>.authenticationCode(for: secret, using: $0.pepper)) }
  }

  /// The names of the keys whose pepper the hashes in a provider's record use.
  package func peppering(_ record: [UInt8]) -> Set<String> {
    let text = Data(record)
    return Set(all.filter { text.range(of: Data("keyid=\($0.pepperName)".utf8)) != nil }.map(\.name))
  }

  // MARK: Devices

  /// Seals a device token.
  func sealDevice(_ bytes: [UInt8], for owner: String) throws -> [UInt8] { try current.devices.seal(bytes, for: owner) }

  /// Opens a device token, with any key of the ring, or with a retired key until its marks have expired.
  func openDevice(_ sealed: [UInt8], for owner: String, at now: Timestamp) -> [UInt8]? {
    let keys = keys.withLock { $0 }
    for key in keys.all.map(\.devices) + keys.retired.compactMap({ $0.deviceKey(at: now) }) {
      if let bytes = try? key.open(sealed, for: owner) { return bytes }
    }
    return nil
  }

  // MARK: Sealed records

  /// Seals a provider's record, bound to its owner: moved to another account or provider, it cannot be opened.
  package func seal(_ record: [UInt8], for owner: String) throws -> [UInt8] { try current.seal(record, for: owner) }

  /// Opens what `seal` sealed, with any key of the ring.
  /// - Throws: if it was changed, moved, or sealed under another key.
  package func open(_ sealed: [UInt8], for owner: String) throws -> [UInt8] { try opening(sealed, for: owner).record }

  /// Opens what `seal` sealed.
  /// - Returns: the record, and the name of the key with which it was sealed.
  /// - Throws: if it was changed, moved, or sealed under another key.
  package func opening(_ sealed: [UInt8], for owner: String) throws -> (record: [UInt8], key: String) {
    for keys in all {
      if let record = try? keys.open(sealed, for: owner) { return (record, keys.name) }
    }
    throw KeyRingError.notOurs
  }
}
