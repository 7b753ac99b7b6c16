import MoongateSDK

/// Grants permits for the hashing threads, before an attempt is charged.
package protocol HashingPermits: Sendable {
  /// Whether any permit is free at the moment.
  var hasRoom: Bool { get }
  /// Acquires a permit. It is held until the hasher and all its jobs are released. If only this client has too many
  /// permits, waits briefly.
  /// - Parameters:
  ///   - address: the address that the permit is counted for (`ClientAddress.countingKey`).
  ///   - salt: the salt of its hashes; nil for a random one each.
  /// - Returns: nil if all permits are taken, or the client's share for too long. The caller answers 503 `busy` and
  ///   charges nothing.
  func acquirePermit(for address: [UInt8], salt: [UInt8]?) async -> (any SecretHasher)?
}

extension HashingPermits {
  package var hasRoom: Bool { true }
  package func acquirePermit(for address: [UInt8]) async -> (any SecretHasher)? {
    await acquirePermit(for: address, salt: nil)
  }
}

/// Hashes in the calling task without permits. For policy cases and the simulator, whose hashing is cheap and must be
/// deterministic. Must not be used to serve clients.
package struct InlineHashing: HashingPermits, SecretHasher {
  private let hashing: SecretHashing

  package init(_ hashing: SecretHashing) { self.hashing = hashing }

  package func acquirePermit(for address: [UInt8], salt: [UInt8]?) async -> (any SecretHasher)? { self }

  package func hash(_ secret: [UInt8]) async throws -> String { try hashing.hash(secret) }

  package func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict {
    try hashing.verify(secret, against: hash)
  }
}

/// Why a secret was neither hashed nor compared. Each case is a fault, so the attempt is refunded.
package enum HashingFault: Error, Sendable, Equatable {
  /// The job waited too long for a thread.
  case busy
  /// Not enough memory.
  case outOfMemory
  /// The stored hash cannot be read.
  case unreadable(StoredHash.Problem)
}
