import MoongateSDK
import Synchronization

/// Signing keys that are derived from the master key and the date.
///
/// A key signs for thirty days. Every node has the same keys, also after a restart. Each key is published for a while
/// before and after its period, because RFC 7517 has no other way to announce a change: whoever has cached a key set
/// can verify every token. While the master key is rotated, nodes may sign with different keys: the set contains those
/// of the whole ring.
package final class RotatingKeys: Sendable {
  /// What the keys sign. Each use has keys of its own.
  ///
  /// Attack: a service that receives `X-Moongate-Assertion` shows it as an ID token.
  package enum Use: String, Sendable {
    /// `X-Moongate-Assertion`, by ES256. An assertion is valid for five minutes, and key sets may be cached for five.
    case assertions
    /// Tokens of apps, by ES256.
    case appsES256
    /// Tokens of apps, by EdDSA with Ed25519.
    case appsEdDSA

    /// How long a key is published before and after its period, in seconds.
    package var overlap: Int64 { self == .assertions ? 600 : SigningPeriod.overlapOfApps }
  }

  private struct Current {
    let signer: JWTSigner
    let period: Int64
    /// The name of the master key that it is derived from.
    let master: String

    init(_ keys: KeyRing, _ use: Use, _ period: Int64) {
      // Read the name first: if the ring changes in between, the older name is stored, and the next call derives the
      // key again.
      master = keys.currentName
      signer = keys.signer(for: use, period: period)
      self.period = period
    }
  }

  private let keys: KeyRing
  private let use: Use
  private let current: Mutex<Current>

  package init(_ keys: KeyRing, for use: Use, at now: Timestamp) {
    self.keys = keys
    self.use = use
    current = Mutex(Current(keys, use, SigningPeriod.index(at: now.seconds)))
  }

  /// The key that signs at this time.
  package func signer(at now: Timestamp) -> JWTSigner {
    let period = SigningPeriod.index(at: now.seconds)
    return current.withLock { current in
      if current.period != period || current.master != keys.currentName { current = Current(keys, use, period) }
      return current.signer
    }
  }

  /// The published keys, the signing key first.
  package func published(at now: Timestamp) -> [JWTSigner] {
    SigningPeriod.published(at: now, overlap: use.overlap).flatMap { keys.signers(for: use, period: $0) }
  }

  /// All keys that may have signed in this period and the last one.
  func recent(at now: Timestamp) -> [JWTSigner] {
    let period = SigningPeriod.index(at: now.seconds)
    return [period, period - 1].flatMap { keys.signers(for: use, period: $0) }
  }

  /// The published keys as a JWK set (RFC 7517 section 5), the signing key first.
  package func keySet(at now: Timestamp) -> String {
    "{\"keys\":[\(published(at: now).map(\.publicKey).joined(separator: ","))]}"
  }
}

/// The periods of thirty days since 1970, each of which has signing keys of its own.
package enum SigningPeriod {
  /// Its length in seconds.
  package static let length: Int64 = 30 * 86_400
  /// How long a key of apps is published before and after its period, in seconds. Their tokens live for a day at most.
  static let overlapOfApps: Int64 = 86_400

  static func index(at seconds: Int64) -> Int64 {
    seconds >= 0 ? seconds / length : (seconds - length + 1) / length
  }

  /// The current period, followed by the last and the next one while their keys are published.
  static func published(at now: Timestamp, overlap: Int64) -> [Int64] {
    let period = index(at: now.seconds)
    let others = Set([index(at: now.seconds - overlap), index(at: now.seconds + overlap)]).subtracting([period])
    return [period] + others.sorted()
  }
}
