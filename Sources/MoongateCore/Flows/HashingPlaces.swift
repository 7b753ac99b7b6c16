import MoongateSDK

/// Where secrets are hashed: a bounded number of places on threads of their own.
package protocol HashingPlaces: Sendable {
  /// A place, which is given back when the hasher goes; nil where all are taken: the step is then refused as `busy` before anything is
  /// charged.
  func slot() -> (any SecretHasher)?
}

/// For gateways without a provider that hashes secrets.
package struct NoHashingPlaces: HashingPlaces {
  package init() {}

  package func slot() -> (any SecretHasher)? { nil }
}
