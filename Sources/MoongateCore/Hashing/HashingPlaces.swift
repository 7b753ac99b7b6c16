import MoongateSDK

/// Where the engine gets a place on the hashing threads, before it charges a try.
package protocol HashingPlaces: Sendable {
  /// A place: it is held until the hasher, and what it has been given to do, is gone.
  /// - Returns: nil where all places are taken: 503 `busy`, and nothing is charged.
  func slot() -> (any SecretHasher)?
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
