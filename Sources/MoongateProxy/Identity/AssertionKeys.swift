import MoongateCore
import Synchronization

/// The rotating keys that sign `X-Moongate-Assertion`.
///
/// A key signs for thirty days. All keys are derived from the master key and the date, so every node has the same keys,
/// also after a restart. Each key is published from ten minutes before until ten minutes after its period: an assertion
/// is valid for five minutes, and key sets may be cached for five. RFC 7517 has no other way to announce a change, so
/// every assertion can be verified. While the master key is rotated, nodes may sign with different keys: the set
/// contains those of the whole ring.
package final class AssertionKeys: Sendable {
  /// How long a key signs, in seconds.
  package static let life: Int64 = 30 * 86_400
  /// How long it is published before and after its period, in seconds.
  package static let overlap: Int64 = 600

  private let keys: KeyRing
  private let current: Mutex<Current>

  private struct Current {
    let signer: AssertionSigner
    /// The name of the master key that it is derived from.
    let master: String

    init(_ keys: KeyRing, period: Int64) {
      // Read the name first: if the ring changes in between, the older name is stored, and the next call derives the
      // key again.
      master = keys.currentName
      signer = AssertionSigner(keys.assertionKey(period: period), period: period)
    }
  }

  init(_ keys: KeyRing, now: Timestamp) {
    self.keys = keys
    current = Mutex(Current(keys, period: Self.period(at: now.seconds)))
  }

  /// The key that signs at this time.
  func signer(at now: Timestamp) -> AssertionSigner {
    let period = Self.period(at: now.seconds)
    return current.withLock { current in
      if current.signer.period != period || current.master != keys.currentName {
        current = Current(keys, period: period)
      }
      return current.signer
    }
  }

  /// The public keys as a JWK set (RFC 7517 section 5), the signing key first.
  package func keySet(at now: Timestamp) -> String {
    let period = Self.period(at: now.seconds)
    let others = Set([Self.period(at: now.seconds - Self.overlap), Self.period(at: now.seconds + Self.overlap)])
      .subtracting([period]).sorted()
    let all = ([period] + others).map { period in
      keys.assertionKeys(period: period).map { AssertionSigner($0, period: period) }
    }
    // Ordered by period, so that the signing key is first.
    return "{\"keys\":[\(all.joined().map(\.publicKey).joined(separator: ","))]}"
  }

  /// The index of the key: periods of thirty days since 1970.
  private static func period(at seconds: Int64) -> Int64 { seconds >= 0 ? seconds / life : (seconds - life + 1) / life }
}
