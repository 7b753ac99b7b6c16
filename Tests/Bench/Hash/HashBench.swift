import CArgon2
import Foundation
import MoongateCore
import MoongateSDK
import Synchronization

/// PIN checks by the hashing threads at the cost that ships, beside bare libargon2 on the same number of threads:
/// `make bench-hash`. Both are measured in turn, several times, and the better round of each counts.
@main enum HashBench {
  static let seconds: Double = 4
  static let rounds = 5
  /// What must be reached of the bare library.
  static let least = 0.9

  static func main() async throws {
    let threads = HashingPool.usualThreads
    let keys = try KeyRing(master: [UInt8](repeating: 7, count: 32))
    let pool = HashingPool(keys: keys, random: SystemRandom())
    let pin = Array("739154".utf8)
    guard let hash = try await pool.acquirePermit(for: [])?.hash(pin) else { return print("no place") }
    var (bare, ours) = (0.0, 0.0)
    for _ in 0..<rounds {
      bare = max(bare, Self.bare(threads: threads))
      ours = max(ours, try await Self.checks(of: pin, against: hash, by: pool, threads: threads))
    }
    let share = ours / bare
    print("threads                 \(threads)")
    print("bare libargon2          \(String(format: "%.1f", bare)) hashes a second")
    print(
      "PIN checks              \(String(format: "%.1f", ours)) a second, \(String(format: "%.3f", share)) of it (\(least) is due)"
    )
    if share < least { exit(1) }
  }

  /// Hashes a second without anything of ours.
  private static func bare(threads: Int) -> Double {
    let count = Atomic(0)
    let started = ContinuousClock.now
    let group = DispatchGroup()
    for _ in 0..<threads {
      group.enter()
      Thread.detachNewThread {
        let cost = HashCost.shipped
        let (secret, salt) = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 16))
        var digest = [UInt8](repeating: 0, count: 32)
        while ContinuousClock.now - started < .seconds(Self.seconds) {
          _ = argon2id_hash_raw(
            cost.passes, cost.memory, cost.lanes, secret, secret.count, salt, salt.count, &digest, digest.count)
          count.add(1, ordering: .relaxed)
        }
        group.leave()
      }
    }
    group.wait()
    return Double(count.load(ordering: .relaxed)) / ((ContinuousClock.now - started) / .seconds(1))
  }

  /// Right PINs a second, with two asking for each thread.
  private static func checks(of pin: [UInt8], against hash: String, by pool: HashingPool, threads: Int) async throws
    -> Double
  {
    let started = ContinuousClock.now
    let count = try await withThrowingTaskGroup(of: Int.self) { group in
      for client in 0..<threads * 2 {
        group.addTask {
          var count = 0
          while ContinuousClock.now - started < .seconds(Self.seconds) {
            guard let slot = await pool.acquirePermit(for: [UInt8(truncatingIfNeeded: client)]) else { continue }
            if case .right = try await slot.verify(pin, against: hash) { count += 1 }
          }
          return count
        }
      }
      return try await group.reduce(0, +)
    }
    return Double(count) / ((ContinuousClock.now - started) / .seconds(1))
  }
}
