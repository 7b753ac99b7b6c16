import MoongateCore
import MoongateSDK
import Testing

// Leases for tasks that run on one gateway at a time.

extension StoreConformance {
  static let leases: [StoreConformance] = [
    StoreConformance("a lease has one holder until it expires, and can then be taken over") { bench async throws in
      let first = try #require(try await bench.lease("one"))
      #expect(first.heldUntil == bench.now + .seconds(90))
      #expect(try await bench.acquire("two") == .notBefore(first.heldUntil))
      #expect(try await bench.acquire("one") == .notBefore(first.heldUntil), "nor again by the same holder")
      bench.clock.advance(by: .milliseconds(89_999))
      #expect(try await bench.acquire("two") == .notBefore(first.heldUntil))
      bench.clock.advance(by: .milliseconds(1))
      let second = try #require(try await bench.lease("two"))
      #expect(second.fence > first.fence)
      // The first holder continues after its lease has ended. It must not affect the second.
      try await bench.store.releaseLease(first, dueAt: bench.now, at: bench.now)
      #expect(try await bench.acquire("three") == .notBefore(second.heldUntil))
    },
    StoreConformance("a released lease is not taken before it is due") { bench async throws in
      let first = try #require(try await bench.lease("one"))
      let due = bench.now + .seconds(600)
      try await bench.store.releaseLease(first, dueAt: due, at: bench.now)
      #expect(try await bench.acquire("two") == .notBefore(due))
      bench.clock.set(due)
      #expect(try await bench.lease("two") != nil)
      #expect(try await bench.lease("one", name: "another") != nil, "another one is free")
    },
    StoreConformance("of fifty concurrent requests for a lease, one gets it") { bench async throws in
      let answers = try await withThrowingTaskGroup(of: LeaseAnswer.self) { group in
        for number in 0..<50 { group.addTask { try await bench.acquire("node \(number)") } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(answers.count { if case .held = $0 { true } else { false } } == 1)
    },
    // Attack on ourselves: a gateway that was suspended in the middle of its run, and continues when another one has
    // begun.
    StoreConformance("nothing is stored or taken under a lost lease") { bench async throws in
      let first = try #require(try await bench.lease("one"))
      _ = try await bench.put("mine", [1], under: first)
      #expect(try await bench.value("mine") == [1])
      bench.clock.advance(by: .seconds(90))
      #expect(try await bench.put("late", [1], under: first) == .leaseLost, "its end is enough")
      let second = try #require(try await bench.lease("two"))
      #expect(try await bench.put("late", [1], under: first) == .leaseLost)
      #expect(try await bench.put("theirs", [2], under: second) == .stored)
      let place = bench.place("theirs")
      #expect(try await bench.store.takeProviderValue(at: place, under: first, at: bench.now) == .leaseLost)
      #expect(try await bench.store.takeProviderValue(at: place, under: second, at: bench.now) == .value([2]))
      #expect(try await bench.store.takeProviderValue(at: place, under: second, at: bench.now) == .nothing)
    },
  ]
}

extension StoreBench {
  func acquire(_ holder: String, name: String = "maintain push") async throws -> LeaseAnswer {
    try await store.acquireLease(name, by: holder, for: .seconds(90), at: now)
  }

  func lease(_ holder: String, name: String = "maintain push") async throws -> Lease? {
    if case .held(let lease) = try await acquire(holder, name: name) { lease } else { nil }
  }
}
