import Foundation
import MoongateSDK
import Synchronization
import Testing

@testable import MoongateCore

/// One client address that requests hashes without end.
@Suite struct HashingShareTests {
  private static func pool(threads: Int = 1, queue: Int = 15) throws -> HashingPool {
    HashingPool(
      keys: try KeyRing(master: [UInt8](repeating: 7, count: 32)), random: SeededRandom(), cost: .cheap,
      threads: threads, queue: queue)
  }

  @Test func anAddressHasAQuarterOfThePlaces() {
    let shares = HashingShares(most: 16)
    #expect((0..<6).map { _ in shares.enter([1]) } == Array(repeating: .entered, count: 4) + [.overShare, .overShare])
    #expect((0..<4).map { _ in shares.enter([2]) } == Array(repeating: .entered, count: 4), "others have theirs")
    shares.leave([1])
    #expect(shares.enter([1]) == .entered)
    #expect(shares.enter([1]) == .overShare)
  }

  @Test(arguments: [(1, 1), (3, 1), (4, 1), (33, 8), (264, 66)]) func theShareIsAtLeastOnePlace(most: Int, share: Int) {
    #expect(HashingShares(most: most).share == share)
  }

  @Test func totalPermitsAreBounded() {
    let shares = HashingShares(most: 4)
    for address in 1...4 { #expect(shares.enter([UInt8(address)]) == .entered) }
    #expect(!shares.hasRoom)
    #expect(shares.enter([5]) == .full)
    #expect(shares.enter([1]) == .full)
  }

  @Test func waitersAreBoundedToFourTimesTheShare() {
    let shares = HashingShares(most: 4)
    #expect((0..<5).map { _ in shares.startWaiting([1]) } == [true, true, true, true, false])
    #expect(shares.startWaiting([2]))
    shares.stopWaiting([1])
    #expect(shares.startWaiting([1]))
  }

  @Test func callerAtItsShareWaitsForItsPermit() async throws {
    let pool = try Self.pool()
    var held: [any SecretHasher] = []
    for _ in 0..<4 { held.append(try #require(await pool.acquirePermit(for: [1]))) }
    let fifth = Task { await pool.acquirePermit(for: [1]) }
    #expect(await pool.acquirePermit(for: [2]) != nil, "others do not wait")
    held.removeLast()
    #expect(await fifth.value != nil)
  }

  /// Attack: an address always has as many secrets in the queue as it may. Another client waits for one of them, not
  /// for all.
  @Test func addressesTakeTurns() async throws {
    let pool = try Self.pool(queue: 63)
    let line = HashingQueue(threads: 1, steady: { .now })
    let order = Mutex<[String]>([])
    let gate = DispatchSemaphore(value: 0)
    let first = try Self.job("flood 0", of: [1], pool, line) { gate.wait() }
    // The thread that it keeps busy has dequeued it.
    while line.waiting > 0 || !Self.isServed(line) { await Task.yield() }
    var jobs = [first]
    for number in 1...4 {
      jobs.append(
        try Self.job("flood \(number)", of: [1], pool, line) { order.withLock { $0.append("flood \(number)") } })
      while line.waiting < number { await Task.yield() }
    }
    jobs.append(try Self.job("other", of: [2], pool, line) { order.withLock { $0.append("other") } })
    while line.waiting < 5 { await Task.yield() }
    gate.signal()
    for job in jobs { try await job.value }
    #expect(order.withLock { $0 } == ["other", "flood 1", "flood 2", "flood 3", "flood 4"])
    line.close()
  }

  private static func isServed(_ line: HashingQueue) -> Bool { line.served > 0 }

  private static func job(
    _ name: String, of address: [UInt8], _ pool: HashingPool, _ line: HashingQueue,
    _ body: @escaping @Sendable () -> Void
  ) throws -> Task<Void, any Error> {
    try #require(pool.shares.enter(address) == .entered)
    let permit = HashingPermit(pool, of: address)
    return Task { try await line.run(permit) { () throws(HashingFault) in body() } }
  }
}
