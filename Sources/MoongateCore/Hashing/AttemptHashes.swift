import Synchronization

/// The hashes that the comparisons of one attempt have computed: what each secret has cost, and the digests, so that
/// comparing it with several stored hashes of the same cost and salt takes one hash.
///
/// Attack: a large number of accounts that claim one address. A password is compared with those of several claimants;
/// each would take a separate hash, and the response time would reveal how many there are. Passwords of one address
/// therefore share a salt (`ProviderStep.salt`).
package final class AttemptHashes: Sendable {
  private struct CachedHash {
    let parameters: Argon2Hash
    let digest: [UInt8]
  }

  private struct State {
    /// By the input of Argon2, of which a secret has one for each pepper.
    var cached: [[UInt8]: CachedHash] = [:]
    /// By secret.
    var works: [[UInt8]: [HashWork]] = [:]
  }

  private let state = Mutex(State())

  package init() {}

  /// All work that was done, in ascending order.
  package var works: [HashWork] { state.withLock { $0.works.values.flatMap(\.self) }.sorted() }

  /// Records that a hash of the secret was computed.
  func record(_ work: HashWork, of secret: [UInt8]) { state.withLock { $0.works[secret, default: []].append(work) } }

  /// The work of these kinds that was not done, for each secret.
  func missing(_ kinds: Set<HashWork>) -> [(secret: [UInt8], work: HashWork)] {
    state.withLock { state in
      state.works.flatMap { secret, done in HashWork.missing(kinds, after: done).map { (secret, $0) } }
    }
  }

  /// The digest of the input with all parameters of the stored hash.
  /// - Parameter secret: what the input was made of.
  func digest(of input: [UInt8], from secret: [UInt8], like stored: Argon2Hash) throws(HashingFault) -> [UInt8] {
    if let cached = state.withLock({ $0.cached[input] }), cached.parameters.hasParameters(of: stored) {
      return cached.digest
    }
    let hash = try Argon2Hash(
      input, kind: stored.kind, version: stored.version, cost: stored.cost, pepper: stored.pepper, salt: stored.salt,
      length: stored.digest.count)
    state.withLock { $0.cached[input] = CachedHash(parameters: stored, digest: hash.digest) }
    record(stored.work, of: secret)
    return hash.digest
  }
}

extension Argon2Hash {
  /// The work of computing the hash.
  var work: HashWork { .argon2(kind, version: version, cost) }

  fileprivate func hasParameters(of other: Argon2Hash) -> Bool {
    kind == other.kind && version == other.version && cost == other.cost && pepper == other.pepper && salt == other.salt
      && digest.count == other.digest.count
  }
}
