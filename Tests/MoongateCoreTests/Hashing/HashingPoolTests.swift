import Foundation
import MoongateCore
import MoongateSDK
import Synchronization
import Testing

@Suite("The hashing threads") struct HashingPoolTests {
  private static func pool(
    threads: Int = 1, queue: Int = 2, cost: HashCost = .cheap,
    steady: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) throws -> HashingPool {
    HashingPool(
      keys: try KeyRing(master: [UInt8](repeating: 7, count: 32)), random: SeededRandom(), cost: cost, threads: threads,
      queue: queue,
      steady: steady)
  }

  /// Takes all permits of the pool; waits while a thread is releasing one.
  private static func all(_ count: Int, of pool: HashingPool) async -> [any SecretHasher] {
    let end = ContinuousClock.now + .seconds(10)
    var slots: [any SecretHasher] = []
    while slots.count < count, ContinuousClock.now < end {
      if let slot = await pool.slot() { slots.append(slot) } else { await Task.yield() }
    }
    return slots
  }

  /// Keeps a thread busy for about a second.
  private static let slow = HashCost(memory: 65_536, passes: 8, lanes: 1)

  @Test("a place is taken and given back; beyond the last there is none") func places() async throws {
    let pool = try Self.pool()
    var slots = [await pool.slot(), await pool.slot(), await pool.slot()]
    #expect(slots.allSatisfy { $0 != nil })
    #expect(await pool.slot() == nil, "one thread and two who wait")
    let hash = try await #require(slots[0]).hash([1, 2, 3])
    #expect(await pool.slot() == nil, "a place is held for as long as its slot")
    slots.removeFirst()
    let again = try #require(await pool.slot())
    #expect(try await again.verify([1, 2, 3], against: hash) == .right(rehashed: nil))
    #expect(try await again.verify([1, 2, 4], against: hash) == .wrong)
    #expect(try await again.verify([1, 2, 3], against: nil) == .wrong)
  }

  @Test("a flood gets what there is, and all of it ends") func flood() async throws {
    let pool = try Self.pool(threads: 2, queue: 4)
    let outcomes = await withTaskGroup(of: Bool.self) { group in
      for index in 0..<500 {
        group.addTask {
          guard let slot = await pool.slot() else { return false }
          return (try? await slot.verify([UInt8(index % 256)], against: nil)) == .wrong
        }
      }
      return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(outcomes > 0)
    #expect(await Self.all(10, of: pool).count == 10, "every place is back")
  }

  @Test("who is cancelled while waiting leaves the line and gives the place back; what has begun is told")
  func cancelled() async throws {
    // The clock is read by a caller that joins the queue, and by the thread that dequeues it.
    let asked = Atomic(0)
    let pool = try Self.pool(queue: 1, cost: Self.slow) {
      asked.add(1, ordering: .relaxed)
      return .now
    }
    var slots = [try #require(await pool.slot()), try #require(await pool.slot())]
    let first = Task { [slot = slots[0]] in try await slot.verify([1], against: nil) }
    while asked.load(ordering: .relaxed) < 2 { await Task.yield() }
    let second = Task { [slot = slots[1]] in try await slot.verify([2], against: nil) }
    slots = []
    first.cancel()
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    #expect(try await first.value == .wrong)
    #expect(await Self.all(2, of: pool).count == 2)
  }

  @Test("who has waited too long is told busy") func late() async throws {
    let moments = Mutex(ContinuousClock.now)
    let pool = try Self.pool(steady: {
      moments.withLock { moment in
        moment += .seconds(6)
        return moment
      }
    })
    await #expect(throws: HashingFault.busy) { try await pool.slot()?.hash([1]) }
  }

  @Test("a pool that is let go of ends what it was given") func end() async throws {
    var pool: HashingPool? = try Self.pool()
    let slot = try #require(await pool?.slot())
    pool = nil
    #expect(try await slot.verify([1], against: nil) == .wrong)
  }
}

extension HashingPool {
  /// A permit for a client with an address of its own.
  fileprivate func slot() async -> (any SecretHasher)? { await acquirePermit(for: SystemRandom().bytes(4)) }
}
