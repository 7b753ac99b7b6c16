import MoongateSDK

/// The hasher of a provider that does not say beforehand that it hashes: asks for a permit at each use.
struct HasherOnDemand: SecretHasher {
  let hashing: any HashingPermits
  /// Whose permits it takes (`ClientAddress.countingKey`).
  let address: [UInt8]
  let salt: [UInt8]?

  func hash(_ secret: [UInt8]) async throws -> String { try await permitted().hash(secret) }

  func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict {
    try await permitted().verify(secret, against: hash)
  }

  private func permitted() async throws(HashingFault) -> any SecretHasher {
    guard hashing.hasRoom, let hasher = await hashing.slot(for: address, salt: salt) else { throw .busy }
    return hasher
  }
}
