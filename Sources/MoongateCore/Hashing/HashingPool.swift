import Foundation
import MoongateSDK
import Synchronization

/// A fixed number of low-priority hashing threads with a bounded queue. A flood of PINs can only delay other PINs, and
/// cannot take memory or processor time from other work.
package final class HashingPool: HashingPermits {
  /// Half of the processors, at least one.
  package static var usualThreads: Int { max(1, ProcessInfo.processInfo.activeProcessorCount / 2) }
  /// The queue length per thread. At the default cost, the last job waits about a second.
  package static let usualQueue = 32
  /// The maximum wait for a (low-priority) thread before `busy` is returned. Well below the ten seconds after which the
  /// ledger counts a charged attempt as a failure.
  package static let longestWait: Duration = .seconds(5)

  private let hashing: SecretHashing
  /// How long a request waits for a permit of its address's share.
  static let longestWaitForShare: Duration = .seconds(2)
  private static let pause: Duration = .milliseconds(10)

  let shares: HashingShares
  private let steady: @Sendable () -> ContinuousClock.Instant
  private let jobs: HashingQueue

  /// Creates a pool. Threads are started when needed. More than five parameters: its services, and its size.
  /// - Parameters:
  ///   - threads: 1 or more.
  ///   - queue: how many jobs may wait per thread, 0 or more.
  ///   - steady: the monotonic clock that measures waiting times.
  package init(
    keys: KeyRing, random: any RandomSource, cost: HashCost = .shipped, threads: Int = HashingPool.usualThreads,
    queue: Int = HashingPool.usualQueue, steady: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    hashing = SecretHashing(keys: keys, random: random, cost: cost)
    shares = HashingShares(most: max(1, threads) * (1 + max(0, queue)))
    self.steady = steady
    jobs = HashingQueue(threads: max(1, threads), steady: steady)
  }

  deinit { jobs.close() }

  /// The metrics for Prometheus.
  package var families: [MetricFamily] {
    let use = shares.use
    return [
      MetricFamily(.hashingWaiting, jobs.waiting),
      MetricFamily(.hashingPermits, use.taken),
      MetricFamily(.hashingPermitsLimit, use.most),
      MetricFamily(.hashesTotal, jobs.served),
    ]
  }

  package var hasRoom: Bool { shares.hasRoom }

  package func acquirePermit(for address: [UInt8], salt: [UInt8]?) async -> (any SecretHasher)? {
    var since: ContinuousClock.Instant?
    defer { if since != nil { shares.stopWaiting(address) } }
    while true {
      switch shares.enter(address) {
      case .entered:
        return HashingSlot(hashing: hashing, permit: HashingPermit(self, of: address), jobs: jobs, salt: salt)
      case .full: return nil
      case .overShare:
        if since == nil {
          guard shares.startWaiting(address) else { return nil }
          since = steady()
        }
        guard let since, steady() - since < Self.longestWaitForShare, !Task.isCancelled else { return nil }
        try? await Task.sleep(for: Self.pause)
      }
    }
  }

  fileprivate func leave(_ address: [UInt8]) { shares.leave(address) }
}

/// A permit that is returned when its last holder is released: the slot and all its jobs. The pool lives as long.
final class HashingPermit: Sendable {
  private let pool: HashingPool
  /// The address that the permit is counted for.
  let address: [UInt8]

  /// - Parameter pool: the pool in which the permit was already taken.
  init(_ pool: HashingPool, of address: [UInt8]) {
    self.pool = pool
    self.address = address
  }

  deinit { pool.leave(address) }
}

/// A hasher with its own permit.
private struct HashingSlot: BalancingHasher {
  let hashing: SecretHashing
  let permit: HashingPermit
  let jobs: HashingQueue
  let salt: [UInt8]?
  let done = AttemptHashes()

  func hash(_ secret: [UInt8]) async throws -> String {
    try await jobs.run(permit) { [hashing, salt] () throws(HashingFault) in try hashing.hash(secret, salt: salt) }
  }

  func verify(_ secret: [UInt8], against hash: String?) async throws -> HashVerdict {
    try await jobs.run(permit) { [hashing, salt, done] () throws(HashingFault) in
      try hashing.verify(secret, against: hash, salt: salt, remembering: done)
    }
  }

  func balance(_ kinds: Set<HashWork>) async {
    guard !kinds.isEmpty else { return }
    // Attack: if a failure were reported, a wrong password would be refunded while the threads are busy. An attacker
    // could then tell it from a right one at no cost.
    try? await jobs.run(permit) { [hashing, done] () throws(HashingFault) in try hashing.balance(kinds, done) }
  }
}
