import MoongateCore
import MoongateSDK
import Synchronization

/// A hasher that counts its operations, to measure the cost of an attack.
final class CountedHashing: HashingPermits, SecretHasher {
  private let base: InlineHashing
  private let done = Atomic(0)

  init(_ base: InlineHashing) { self.base = base }

  /// The number of secrets that have been hashed or verified.
  var count: Int { done.load(ordering: .relaxed) }

  func acquirePermit(for address: [UInt8], salt: [UInt8]?) async -> (any SecretHasher)? { self }

  func hash(_ secret: [UInt8]) async throws -> String {
    done.add(1, ordering: .relaxed)
    return try await base.hash(secret)
  }

  func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict {
    done.add(1, ordering: .relaxed)
    return try await base.verify(secret, against: hash)
  }
}
