import MoongateSDK

/// For gateways without a provider that hashes secrets.
package struct NoHashingPlaces: HashingPlaces {
  package init() {}

  package func slot() -> (any SecretHasher)? { nil }
}
