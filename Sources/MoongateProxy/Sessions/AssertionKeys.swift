import MoongateCore
import Synchronization

/// The keys that sign `X-Moongate-Assertion`, one after the other.
///
/// A key signs for thirty days. All of them follow from the master key and the date, so that every node, and the same
/// node after a restart, has the same ones without telling each other. The next one is published ten minutes before it
/// signs, and the last one for ten minutes after: an assertion is good for five, and key sets may be kept for five (RFC
/// 7517 has no other way to tell of a change), so no assertion is ever unknown to anybody. While the master key is
/// rotated nodes sign with different ones: the set has those of the whole ring.
package final class AssertionKeys: Sendable {
  /// How long a key signs, in seconds.
  package static let life: Int64 = 30 * 86_400
  /// How long it is published before and after, in seconds.
  package static let overlap: Int64 = 600

  private let keys: KeyRing
  private let current: Mutex<Current>

  private struct Current {
    let signer: AssertionSigner
    /// The master key that it follows from, by its name.
    let master: String

    init(_ keys: KeyRing, period: Int64) {
      // Asked before: of a ring that is exchanged in between it is the older name, and the next look makes it anew.
      master = keys.currentName
      signer = AssertionSigner(keys.assertionKey(period: period), period: period)
    }
  }

  init(_ keys: KeyRing, now: Timestamp) {
    self.keys = keys
    current = Mutex(Current(keys, period: Self.period(at: now.seconds)))
  }

  /// The one that signs at this time.
  func signer(at now: Timestamp) -> AssertionSigner {
    let period = Self.period(at: now.seconds)
    return current.withLock { current in
      if current.signer.period != period || current.master != keys.currentName {
        current = Current(keys, period: period)
      }
      return current.signer
    }
  }

  /// The public keys as a JWK set (RFC 7517 section 5), the signing one first.
  package func keySet(at now: Timestamp) -> String {
    let period = Self.period(at: now.seconds)
    let others = Set([Self.period(at: now.seconds - Self.overlap), Self.period(at: now.seconds + Self.overlap)])
      .subtracting([period]).sorted()
    let all = ([period] + others).map { period in
      keys.assertionKeys(period: period).map { AssertionSigner($0, period: period) }
    }
    // By period, so that the signing one is the first of all.
    return "{\"keys\":[\(all.joined().map(\.publicKey).joined(separator: ","))]}"
  }

  /// Which key: thirty days since 1970, counted.
  private static func period(at seconds: Int64) -> Int64 { seconds >= 0 ? seconds / life : (seconds - life + 1) / life }
}
