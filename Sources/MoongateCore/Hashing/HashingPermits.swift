import MoongateSDK

/// Where the engine gets a place on the hashing threads, before it charges a try.
package protocol HashingPermits: Sendable {
  /// Whether any place is free at the moment.
  var hasRoom: Bool { get }
  /// A place: it is held until the hasher, and what it has been given to do, is gone. Waits a moment where only this
  /// client has too many of them.
  /// - Parameters:
  ///   - address: whose place it is (`ClientAddress.countingKey`).
  ///   - salt: of the hashes that it makes; nil: a random one for each.
  /// - Returns: nil where all places are taken, or the client's own share for too long: 503 `busy`, and nothing is
  ///   charged.
  func slot(for address: [UInt8], salt: [UInt8]?) async -> (any SecretHasher)?
}

extension HashingPermits {
  package var hasRoom: Bool { true }
  package func slot(for address: [UInt8]) async -> (any SecretHasher)? { await slot(for: address, salt: nil) }
}

/// A place for everyone, where whoever asks waits: for policy cases and the simulator, whose hashing is cheap and whose
/// run must be the same every time. Nothing that serves people may use it.
package struct HashingInPlace: HashingPermits, SecretHasher {
  private let hashing: SecretHashing

  package init(_ hashing: SecretHashing) { self.hashing = hashing }

  package func slot(for address: [UInt8], salt: [UInt8]?) async -> (any SecretHasher)? { self }

  package func hash(_ secret: [UInt8]) async throws -> String { try hashing.hash(secret) }

  package func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict {
    try hashing.verify(secret, against: hash)
  }
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
