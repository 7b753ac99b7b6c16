import MoongateCore
import MoongateSDK
import Testing

// Bounds that keep a flood from filling the store.

extension StoreConformance {
  static let bounds: [StoreConformance] = [
    StoreConformance("an event without an outcome counts at once and is never settled") { bench async throws in
      let limit = bench.limit("register", per: .ip, max: 2, window: .seconds(60), counts: .all)
      func count() async throws -> ReservationResult {
        try await bench.store.reserve(
          ReservationRequest(
            id: ReservationID(from: bench.random), now: bench.now, limits: [limit], timer: nil, countsAtOnce: true))
      }
      #expect(try await count().places == [1])
      #expect(try await count().places == [2])
      #expect(try await bench.state(limit).settled == 2)
      #expect(try await bench.state(limit).pending == 0)
      #expect(try await count().reason == .full(until: bench.now + .seconds(60)), "none of them waits for another")
      bench.clock.advance(by: .seconds(60))
      #expect(try await count().places == [1])
    },
    StoreConformance("of two hundred parallel events without an outcome, exactly as many count as the limit allows") {
      bench async throws in
      let limit = bench.limit("register", per: .ip, max: 10, window: .seconds(60), counts: .all)
      let counted = try await withThrowingTaskGroup(of: Bool.self) { group in
        for _ in 0..<200 {
          group.addTask {
            try await bench.store.reserve(
              ReservationRequest(
                id: ReservationID(from: bench.random), now: bench.now, limits: [limit], timer: nil, countsAtOnce: true)
            ).places != nil
          }
        }
        return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }
      #expect(counted == 10)
    },
    StoreConformance("a success after the last lock of consecutive failures resets the escalation") {
      bench async throws in
      let hard = bench.limit(
        "hard", max: 1, window: nil, counts: .consecutiveFailures, lock: [.seconds(10), .seconds(100)])
      try await bench.attempt([hard], .failure)
      bench.clock.advance(by: .seconds(10))
      try await bench.attempt([hard], .failure)
      #expect(try await bench.state(hard).lockedUntil == bench.now + .seconds(100), "the second lock is longer")
      bench.clock.advance(by: .seconds(100))
      try await bench.attempt([hard], .success)
      try await bench.attempt([hard], .failure)
      #expect(try await bench.state(hard).lockedUntil == bench.now + .seconds(10))
    },
    StoreConformance("an address keeps its newest flows without a proof, begun or not") {
      bench async throws in
      func flow(_ number: Int, of origin: String) -> FlowRecord {
        var flow = bench.flow("\(origin) \(number)")
        flow.origin = origin
        return flow
      }
      try await bench.apply(.putFlow(flow(0, of: "other")))
      // Begun: this is its second version.
      try await bench.apply(.putFlow(flow(0, of: "flood")))
      var begun = flow(0, of: "flood")
      begun.version = 1
      try await bench.apply(.putFlow(begun))
      var proved = flow(1, of: "flood")
      try await bench.apply(.putFlow(proved))
      proved.version = 1
      proved.passed = [PassedStep(provider: ProviderName(test: "phone_otp"), at: bench.now)]
      try await bench.apply(.putFlow(proved))
      for number in 2..<(FlowBound.perAddress + 600) { try await bench.apply(.putFlow(flow(number, of: "flood"))) }
      #expect(try await bench.store.flow(begun.id) == nil, "the oldest is gone")
      #expect(try await bench.store.flow(proved.id) != nil, "a proved flow stays")
      #expect(try await bench.store.flow(flow(FlowBound.perAddress - 1, of: "flood").id) != nil, "the newest are not")
      #expect(try await bench.store.flow(flow(0, of: "other").id) != nil)
    },
    StoreConformance("a flood of flows evicts itself, and proved flows stay") { bench async throws in
      func put(_ name: String, of origin: String?, passed: Bool = false) async throws -> TokenHash {
        var flow = bench.flow(name)
        flow.origin = origin
        if passed { flow.passed = [PassedStep(provider: ProviderName(test: "phone_otp"), at: bench.now)] }
        try await bench.apply(.putFlow(flow))
        return flow.id
      }
      let quiet = try await put("quiet", of: "quiet")
      let proved = try await put("proved", of: "flood", passed: true)
      let old = try await put("old", of: nil)
      var flood: [TokenHash] = []
      for number in 0..<50 { flood.append(try await put("flood \(number)", of: "flood")) }
      #expect(try await bench.store.evictFlows(beyond: FlowBound(count: 51), at: bench.now) == 0)
      #expect(try await bench.store.evictFlows(beyond: FlowBound(count: 11), at: bench.now) == 40)
      #expect(try await bench.store.flow(flood[39]) == nil)
      #expect(try await bench.store.flow(flood[40]) != nil)
      for id in [quiet, proved, old] { #expect(try await bench.store.flow(id) != nil) }
      let bytes = try await bench.store.evictFlows(beyond: FlowBound(count: 500, bytes: 3_000), at: bench.now)
      #expect(bytes > 0 && bytes < 10)
      #expect(try await bench.store.flow(quiet) != nil)
    },
    StoreConformance("a flood of refusals is one event, whose count grows") { bench async throws in
      var fold = AuditEvent(id: DecisionID(text: "dc_1"), at: bench.now, kind: .refused, code: "not_found")
      fold.count = 1
      try await bench.store.append([fold])
      fold.count = 990
      try await bench.store.append([fold])
      #expect(try await bench.store.events(limit: 10) == [fold])
    },
  ]
}
