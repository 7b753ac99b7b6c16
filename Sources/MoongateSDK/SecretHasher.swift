/// Hashes PINs and passwords with Argon2id (RFC 9106) on the core's own threads, so that proxied requests are not
/// slowed down.
///
/// For a provider that declares `hashesSecrets`, the core acquires a permit before the step is charged. A client
/// address gets at most a quarter of the permits, and a secret waits at most five seconds for a thread; beyond that a
/// call throws.
public protocol SecretHasher: Sendable {
  /// Hashes with a fresh salt, the gateway's pepper and the current cost.
  /// - Returns: a PHC string, `$argon2id$v=19$m=…,t=…,p=…$salt$hash`.
  /// - Throws: if there is not enough memory.
  func hash(_ secret: [UInt8]) async throws -> String

  /// Compares in constant time. bcrypt judges the first 72 bytes.
  /// - Parameter hash: the result of `hash`, perhaps at an older cost, or an imported hash (``SecretHashKind``). nil
  ///   does the same work without comparing, so that an unknown account takes as long as a known one. The gateway makes
  ///   up for the different cost of imported hashes after the refusal.
  /// - Throws: if the text is not a usable hash.
  func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict
}

/// The result of a comparison.
public enum HashVerdict: Sendable, Equatable {
  case wrong
  /// - Parameter rehashed: a new hash to store, if the stored one was made at another cost, without a pepper, or with a
  ///   former pepper. nil too if only a part of the secret was judged: it must not become the secret.
  case right(rehashed: String?)
}
