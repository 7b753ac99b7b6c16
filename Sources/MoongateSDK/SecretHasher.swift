/// Hashes PINs and passwords with Argon2id (RFC 9106) on threads of the core's own, so that proxied requests do not
/// feel it.
///
/// For a provider that declares `hashesSecrets` the core has taken a permit before the step was charged. A client
/// address has a quarter of the permits at most, and a secret waits five seconds for a thread at most; beyond that a
/// call throws.
public protocol SecretHasher: Sendable {
  /// Hashes with a fresh salt, the gateway's pepper and today's cost.
  /// - Returns: a PHC string, `$argon2id$v=19$m=…,t=…,p=…$salt$hash`.
  /// - Throws: where there is no memory for it.
  func hash(_ secret: [UInt8]) async throws -> String

  /// Compares in constant time.
  /// - Parameter hash: what `hash` gave, perhaps at an older cost, or an imported Argon2 or bcrypt hash; nil does the
  ///   same work for nothing, so that an unknown account takes as long as a known one.
  /// - Throws: where the text is no hash that can be judged.
  func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict
}

/// What came of a comparison.
public enum HashVerdict: Sendable, Equatable {
  case wrong
  /// - Parameter rehashed: to be stored in its place, where the stored one was made at another cost, without a pepper,
  ///   or with a former one.
  case right(rehashed: String?)
}
