import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

/// Concurrent attacks on 100,000 identifiers: memory stays bounded, no lock is lost, and no other user is locked out.
@Suite struct ConcurrentAttackTests {
  @Test(arguments: TestedStore.here) func aHundredThousandAtOnce(_ tested: TestedStore) async throws {
    let folder = try ScratchFolder()
    let address = try tested.address(in: folder)
    let writer = Process()
    writer.executableURL = storeWriter
    writer.arguments = [address, "attack"]
    // How many heaps the C library makes for threads depends on their timing.
    writer.environment = ProcessInfo.processInfo.environment.merging(["MALLOC_ARENA_MAX": "2"]) { $1 }
    let pipe = Pipe()
    writer.standardOutput = pipe
    try writer.run()
    let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    writer.waitUntilExit()
    #expect(writer.terminationStatus == 0)
    let taken = try #require(Int(output.trimmingCharacters(in: .whitespacesAndNewlines)))
    #expect(taken < 40 * 1024, "the attack took \(taken / 1024) MiB at most")

    let store = try TestedStore.open(address)
    #expect(try await store.locks(at: ConcurrentAttack.now).count == ConcurrentAttack.size / 10)
    let random = SeededRandom()
    for number in stride(from: 0, through: ConcurrentAttack.size + 1, by: 997) + [ConcurrentAttack.size + 1] {
      let limit = ConcurrentAttack.limit(number)
      let request = ReservationRequest(
        id: ReservationID(from: random), now: ConcurrentAttack.now, limits: [limit], timer: nil)
      let locked = ReservationResult.refused(
        ReservationRefusal(reason: .locked(until: ConcurrentAttack.now + .seconds(900)), limit: limit))
      let place = number < ConcurrentAttack.size ? 2 : 1
      #expect(
        try await store.reserve(request)
          == (ConcurrentAttack.isLocked(number) ? locked : .reserved(places: [place])))
    }
  }

  /// A thousand concurrent guesses at one account, over several gateways: five are compared, the fifth starts the lock,
  /// and none gets past it.
  @Test(arguments: TestedStore.here) func aThousandGuessesAtOnce(_ tested: TestedStore) async throws {
    let store = try TestedStore.open(try tested.address(in: ScratchFolder()))
    let now = ConcurrentAttack.now
    let person = ResolvedLimit(
      provider: ProviderName(test: "phone_otp"), name: "verify", key: .identifier, counter: [1], max: 5,
      window: .seconds(900), counts: .failures,
      lock: [.seconds(900)], disables: false)
    let network = ResolvedLimit(
      provider: ProviderName(test: "phone_otp"), name: "ip", key: .ip, counter: [2], max: 2000, window: .seconds(900),
      counts: .all, lock: [],
      disables: false)
    let random = SeededRandom()
    let compared = try await withThrowingTaskGroup(of: (place: Int, locks: Int)?.self) { group in
      for number in 0..<1000 {
        group.addTask {
          let limits = number % 2 == 0 ? [person, network] : [network, person]
          let id = ReservationID(from: random)
          let request = ReservationRequest(id: id, now: now, limits: limits, timer: nil)
          guard case .reserved(let places, _, _) = try await store.reserve(request) else { return nil }
          let settlement = Settlement(reservation: id, outcome: .failure, limits: limits, timer: nil, now: now)
          guard case .applied(let locks, _) = try await store.apply([.settle(settlement)], at: now) else { return nil }
          return (places[number % 2], locks.count)
        }
      }
      return try await group.reduce(into: [(place: Int, locks: Int)]()) { if let one = $1 { $0.append(one) } }
    }
    #expect(compared.map(\.place).sorted() == [1, 2, 3, 4, 5] && compared.map(\.locks).reduce(0, +) == 1)
    let states = try await store.counters([person, network], at: now)
    #expect(states[0].lockedUntil == now + .seconds(900))
    #expect(states[1].settled == 5, "who was turned away was charged nothing")
    #expect(try await store.locks(at: now).count == 1)
  }
}

/// The program `store-writer`, which is built beside the tests.
let storeWriter = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent(
  "store-writer")
