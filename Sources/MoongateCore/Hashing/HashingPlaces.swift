import MoongateSDK

/// Where the engine gets a place on the hashing threads, before it charges a try.
package protocol HashingPlaces: Sendable {
  /// A place: it is held until the hasher, and what it has been given to do, is gone.
  /// - Returns: nil where all places are taken: 503 `busy`, and nothing is charged.
  func slot() -> (any SecretHasher)?
  /// A place whose hasher gives the hashes that it makes this salt.
  func slot(salt: [UInt8]?) -> (any SecretHasher)?
}

extension HashingPlaces {
  /// Where hashes cost nothing, it does not matter which of them are made together.
  package func slot(salt: [UInt8]?) -> (any SecretHasher)? { slot() }
}

/// A place for everyone, where whoever asks waits: for policy cases and the simulator, whose hashing is cheap and whose run must be the
/// same every time. Nothing that serves people may use it.
package struct HashingInPlace: HashingPlaces, SecretHasher {
  private let hashing: SecretHashing

  package init(_ hashing: SecretHashing) { self.hashing = hashing }

  package func slot() -> (any SecretHasher)? { self }

  package func hash(_ secret: [UInt8]) async throws -> String { try hashing.hash(secret) }

  package func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict { try hashing.verify(secret, against: hash) }
}

/// Why a secret was neither hashed nor compared. Each of them is a fault: the try is refunded.
package enum HashingFault: Error, Sendable, Equatable {
  /// It has waited too long for a thread.
  case busy
  /// There is no memory for it.
  case outOfMemory
  /// What is stored is no hash that can be judged.
  case unreadable(StoredHash.Problem)
}
