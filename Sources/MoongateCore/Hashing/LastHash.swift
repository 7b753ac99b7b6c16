import Synchronization

/// Caches the last Argon2 hash that was made to compare one secret, so that comparing it with several stored hashes of
/// the same cost and salt takes one hash.
///
/// Attack: a large number of accounts that claim one address. A password is compared with those of several claimants;
/// each would take a separate hash, and the response time would reveal how many there are. Passwords of one address
/// therefore share a salt (`ProviderStep.salt`).
package final class LastHash: Sendable {
  private struct CachedHash {
    let input: [UInt8]
    let parameters: Argon2Hash
    let digest: [UInt8]
  }

  private struct State {
    var cached: CachedHash?
    var count = 0
  }

  private let state = Mutex(State())

  package init() {}

  /// How many hashes were made.
  var count: Int { state.withLock { $0.count } }

  /// The digest of the input with all parameters of the stored hash.
  func hash(of input: [UInt8], like stored: Argon2Hash) throws(HashingFault) -> [UInt8] {
    if let cached = state.withLock({ $0.cached }), cached.input == input, cached.parameters.hasParameters(of: stored) {
      return cached.digest
    }
    let hash = try Argon2Hash(
      input, kind: stored.kind, version: stored.version, cost: stored.cost, pepper: stored.pepper, salt: stored.salt,
      length: stored.digest.count)
    state.withLock { state in
      state.cached = CachedHash(input: input, parameters: stored, digest: hash.digest)
      state.count += 1
    }
    return hash.digest
  }
}

extension Argon2Hash {
  fileprivate func hasParameters(of other: Argon2Hash) -> Bool {
    kind == other.kind && version == other.version && cost == other.cost && pepper == other.pepper && salt == other.salt
      && digest.count == other.digest.count
  }
}
