import MoongateSDK

/// The hasher for a provider that does not declare that it hashes: acquires a permit at each use.
struct HasherOnDemand: SecretHasher {
  let hashing: any HashingPermits
  /// The address whose permits it uses (`ClientAddress.countingKey`).
  let address: [UInt8]
  let salt: [UInt8]?

  func hash(_ secret: [UInt8]) async throws -> String { try await permitted().hash(secret) }

  func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict {
    try await permitted().verify(secret, against: hash)
  }

  private func permitted() async throws(HashingFault) -> any SecretHasher {
    guard hashing.hasRoom, let hasher = await hashing.acquirePermit(for: address, salt: salt) else { throw .busy }
    return hasher
  }
}
