import CryptoExtras
import Foundation
import MoongateSDK
import Synchronization

extension ProviderName {
  /// The name under which the keys of apps are stored. No provider can have it (`ProviderDescriptor.mistakes`).
  package static let apps: ProviderName = "apps"
}

/// The keys that sign tokens of apps, and verify them.
///
/// ES256 and EdDSA keys are derived (`RotatingKeys`). An RSA key cannot be: the first gateway that needs it makes it,
/// usually a day before its period, and stores it sealed, so that all gateways have the same one.
package final class SigningKeys: Sendable {
  /// Why a key is not available.
  package struct Fault: Error, CustomStringConvertible {
    package let description: String
  }

  private struct StoredKeys {
    var keys: [Int64: JWTSigner] = [:]
    /// The keys that are being made.
    var making: [Int64: Task<JWTSigner, any Error>] = [:]
    /// When a key was not found last, by its period.
    var absent: [Int64: Timestamp] = [:]
  }

  private static let bits = _RSA.Signing.KeySize.bits2048
  /// How long a key that was not found is not looked for again.
  private static let pause: Duration = .seconds(10)

  private let keys: KeyRing
  private let store: any ProviderValueStore
  private let derived: [SigningAlgorithm: RotatingKeys]
  private let rsa = Mutex(StoredKeys())
  // Making a key takes up to a second of a processor, so it has a thread of its own.
  private let threads = BlockingCalls(threads: 1, waiting: 16)

  package init(_ keys: KeyRing, store: any ProviderValueStore, at now: Timestamp) {
    self.keys = keys
    self.store = store
    derived = [
      .es256: RotatingKeys(keys, for: .appsES256, at: now), .edDSA: RotatingKeys(keys, for: .appsEdDSA, at: now),
    ]
  }

  /// The key that signs at this time.
  /// - Throws: if the key is not stored yet and cannot be made.
  package func signer(_ algorithm: SigningAlgorithm, at now: Timestamp) async throws -> JWTSigner {
    if let signer = derived[algorithm]?.signer(at: now) { return signer }
    return try await storedKey(SigningPeriod.index(at: now.seconds), at: now)
  }

  /// The public keys as JWKs (RFC 7517 section 4), for verifiers of all tokens that are valid now.
  package func publicKeys(_ algorithms: Set<SigningAlgorithm>, at now: Timestamp) async throws -> [String] {
    var found: [String] = []
    for algorithm in SigningAlgorithm.allCases where algorithms.contains(algorithm) {
      if let keys = derived[algorithm] {
        found += keys.published(at: now).map(\.publicKey)
        continue
      }
      found.append(try await signer(algorithm, at: now).publicKey)
      let current = SigningPeriod.index(at: now.seconds)
      for period in SigningPeriod.published(at: now, overlap: SigningPeriod.overlapOfApps).dropFirst() {
        // A set without the key before would have valid tokens refused, so it is not published then. Verifiers keep
        // theirs. The key of the next period is not needed yet.
        let key = period < current ? try await existingKey(period, at: now) : try? await existingKey(period, at: now)
        if let key { found.append(key.publicKey) }
      }
    }
    return found
  }

  /// Makes the RSA keys that will be needed within a day. Called at intervals while an app signs by RS256.
  ///
  /// Only stored keys count: a failover of the database may have lost the one that this gateway knows, and another
  /// gateway may have made another one since.
  package func prepare(at now: Timestamp) async throws {
    for period in Set([now.seconds, now.seconds + SigningPeriod.overlapOfApps].map(SigningPeriod.index)) {
      if try await readKey(period, at: now) == nil { rsa.withLock { $0.keys[period] = nil } }
      _ = try await storedKey(period, at: now)
    }
  }

  /// The claims of a token that the gateway has signed in this period or the last one, expired or not.
  ///
  /// Attack: a logout token or an access token shown as an ID token. Only the given `typ` is accepted.
  /// - Returns: nil if another has signed it.
  package func verify(_ token: String, type: String, at now: Timestamp) async -> [String: JSONClaim]? {
    guard token.utf8.count <= 65_536, let unverified = UnverifiedJWT(token), unverified.type == type else { return nil }
    if let keys = derived[unverified.algorithm] { return unverified.verified(by: keys.recent(at: now)) }
    let period = SigningPeriod.index(at: now.seconds)
    var signers: [JWTSigner] = []
    for period in [period, period - 1] {
      if let key = try? await existingKey(period, at: now) { signers.append(key) }
    }
    return unverified.verified(by: signers)
  }

  // MARK: RSA

  private func place(_ period: Int64) -> ProviderValuePlace {
    SealedProviderValue.place(of: Self.name(period), for: .apps, by: keys)
  }

  private static func name(_ period: Int64) -> String { "RS256 \(period)" }

  /// The key of a period if it is stored.
  private func existingKey(_ period: Int64, at now: Timestamp) async throws -> JWTSigner? {
    let (known, isAbsent) = rsa.withLock { rsa in
      (rsa.keys[period], rsa.absent[period].map { now < $0 + Self.pause } ?? false)
    }
    if let known { return known }
    // Attack: a flood of requests for the key set, each of which reads the store.
    return isAbsent ? nil : try await readKey(period, at: now)
  }

  /// Reads the key of a period from the store, in place of the one that was known.
  private func readKey(_ period: Int64, at now: Timestamp) async throws -> JWTSigner? {
    let place = place(period)
    guard let sealed = try await store.providerValue(at: place, at: now) else {
      rsa.withLock { $0.absent[period] = now }
      return nil
    }
    let opened = try SealedProviderValue(opening: sealed, at: place, by: keys)
    let signer = try JWTSigner(_RSA.Signing.PrivateKey(derRepresentation: Data(opened.value)))
    rsa.withLock { rsa in
      // Keys of long ago are forgotten.
      rsa.keys = rsa.keys.filter { abs($0.key - period) <= 2 }
      rsa.absent[period] = nil
      rsa.keys[period] = signer
    }
    return signer
  }

  /// The key of a period, which is made if it is not stored. Only one call makes it.
  private func storedKey(_ period: Int64, at now: Timestamp) async throws -> JWTSigner {
    if let known = rsa.withLock({ $0.keys[period] }) { return known }
    let task = rsa.withLock { rsa in
      if let running = rsa.making[period] { return running }
      let task = Task { try await self.made(period, at: now) }
      rsa.making[period] = task
      return task
    }
    defer { rsa.withLock { $0.making[period] = nil } }
    return try await task.value
  }

  private func made(_ period: Int64, at now: Timestamp) async throws -> JWTSigner {
    rsa.withLock { $0.absent[period] = nil }
    if let stored = try await existingKey(period, at: now) { return stored }
    let key = try await threads.run(at: "RS256") { try _RSA.Signing.PrivateKey(keySize: Self.bits) }
    let place = place(period)
    let value = SealedProviderValue(key: Self.name(period), value: Array(key.derRepresentation))
    // Until tokens of its period are no longer accepted as hints.
    let end = Timestamp(milliseconds: (period + 2) * SigningPeriod.length * 1000) + .seconds(86_400)
    let outcome = try await store.putProviderValue(
      ProviderValue(place: place, sealed: try value.sealed(for: place, by: keys), expiresAt: end),
      ProviderValueRule(isOnce: true), at: now)
    // Another gateway may have stored one meanwhile. Only the stored one counts.
    rsa.withLock { $0.absent[period] = nil }
    guard outcome != .full, let stored = try await existingKey(period, at: now) else {
      throw Fault(description: "the RSA key of the apps could not be stored")
    }
    return stored
  }
}
