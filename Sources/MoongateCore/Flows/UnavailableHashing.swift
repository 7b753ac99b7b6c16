import MoongateSDK

/// Hashing permits for gateways without a provider that hashes secrets. Grants none.
package struct UnavailableHashing: HashingPermits {
  package init() {}

  package func acquirePermit(for address: [UInt8], salt: [UInt8]?) async -> (any SecretHasher)? { nil }
}
