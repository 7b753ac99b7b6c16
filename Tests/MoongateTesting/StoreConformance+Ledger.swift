import MoongateCore
import MoongateSDK
import Testing

// Attempts: what is charged, what stays charged, what leaves the window.

extension StoreConformance {
  static let ledger: [StoreConformance] = [
    StoreConformance("of 200 parallel attempts under a limit of 5, five are charged, with different places") {
      bench async throws in
      let limits = [bench.limit(max: 5)]
      let results = try await withThrowingTaskGroup(of: ReservationResult.self) { group in
        for _ in 0..<200 { group.addTask { try await bench.reserve(limits).result } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(results.compactMap(\.places).flatMap { $0 }.sorted() == [1, 2, 3, 4, 5])
      #expect(results.count { $0 == .filledByPending } == 195)
    },
    StoreConformance("places are in the order of the request, not of the counters") {
      bench async throws in
      let limits = ["c", "a", "b"].map { bench.limit($0, max: 9) }
      try await bench.attempt([limits[1]], .failure)
      try await bench.attempt([limits[2]], .failure)
      try await bench.attempt([limits[2]], .failure)
      #expect(try await bench.reserve(limits).result == .reserved(places: [1, 2, 3]))
    },
    StoreConformance("all limits are charged, or none") { bench async throws in
      let wide = bench.limit("wide", max: 9)
      let narrow = bench.limit("narrow", max: 1)
      try await bench.attempt([narrow], .failure)
      #expect(try await bench.reserve([wide, narrow]).result.reason == .full(until: bench.now + .seconds(60)))
      #expect(try await bench.state(wide).used == 0)
    },
    StoreConformance("an event counts in [t, t + window)") { bench async throws in
      let limit = bench.limit(max: 1)
      try await bench.attempt([limit], .failure)
      let begun = bench.now
      bench.clock.advance(by: .milliseconds(59_999))
      #expect(try await bench.reserve([limit]).result.reason == .full(until: begun + .seconds(60)))
      #expect(try await bench.state(limit).oldest == begun)
      bench.clock.advance(by: .milliseconds(1))
      #expect(try await bench.state(limit) == CounterState())
      #expect(try await bench.reserve([limit]).result.places == [1])
    },
    StoreConformance("a refused attempt is not charged") { bench async throws in
      let limit = bench.limit(max: 1)
      try await bench.attempt([limit], .failure)
      for _ in 0..<5 { try await bench.attempt([limit], .failure) }
      #expect(try await bench.state(limit).used == 1)
    },
    StoreConformance("pending attempts make others wait; a refusal by another limit refuses") { bench async throws in
      let filling = bench.limit("filling", max: 1)
      let full = bench.limit("full", max: 1)
      let reserved = try await bench.reserve([filling])
      #expect(try await bench.reserve([filling]).result == .filledByPending)
      try await bench.attempt([full], .failure)
      #expect(try await bench.reserve([filling, full]).result.reason == .full(until: bench.now + .seconds(60)))
      try await bench.settle(reserved.id, [filling], .refund)
      #expect(try await bench.reserve([filling]).result.places == [1])
    },
    StoreConformance("the gravest refusal is reported: disabled, then the longest lock") { bench async throws in
      let short = bench.limit("short", max: 1, window: .seconds(30))
      let long = bench.limit("long", max: 1, window: .seconds(300))
      let off = bench.limit("off", max: 1, disables: true)
      try await bench.attempt([short], .failure)
      try await bench.attempt([long], .failure)
      #expect(
        try await bench.reserve([long, short]).result
          == .refused(ReservationRefusal(reason: .full(until: bench.now + .seconds(300)), limit: long)))
      try await bench.attempt([off], .failure)
      for order in [[short, long, off], [off, long, short]] {
        #expect(try await bench.reserve(order).result == .refused(ReservationRefusal(reason: .disabled, limit: off)))
      }
      #expect(
        try await bench.reserve([short], timer: bench.timer()).result.reason == .full(until: bench.now + .seconds(30)))
    },
    StoreConformance("counts = all: successes stay counted too") { bench async throws in
      let limit = bench.limit(counts: .all)
      try await bench.attempt([limit], .success)
      try await bench.attempt([limit], .failure)
      try await bench.attempt([limit], .refund)
      #expect(try await bench.state(limit).settled == 2)
    },
    StoreConformance("counts = failures: a success refunds its own attempt and no other") { bench async throws in
      let limit = bench.limit(counts: .failures)
      try await bench.attempt([limit], .failure)
      try await bench.attempt([limit], .failure)
      #expect(try await bench.attempt([limit], .success).places == [3])
      #expect(try await bench.state(limit).settled == 2)
    },
    StoreConformance("counts = consecutive_failures: a success refunds all, and no window is needed") {
      bench async throws in
      let limit = bench.limit(window: nil, counts: .consecutiveFailures, disables: true)
      try await bench.attempt([limit], .failure)
      bench.clock.advance(by: .seconds(400 * 86_400))
      try await bench.attempt([limit], .failure)
      #expect(try await bench.state(limit).settled == 2)
      try await bench.attempt([limit], .success)
      #expect(try await bench.state(limit) == CounterState())
    },
    StoreConformance("a success of one limit's subject leaves others as they are") { bench async throws in
      let one = bench.limit(of: "asha", window: nil, counts: .consecutiveFailures, disables: true)
      let other = bench.limit(of: "ravi", window: nil, counts: .consecutiveFailures, disables: true)
      try await bench.attempt([one], .failure)
      try await bench.attempt([other], .failure)
      try await bench.attempt([one], .success)
      #expect(try await bench.state(other).settled == 1)
    },
    StoreConformance("a failed delivery costs the address, not the person") { bench async throws in
      let person = bench.limit("send", per: .phone, counts: .all)
      let address = bench.limit("send_ip", per: .ip, counts: .all)
      let everyone = bench.limit("send_all", per: .global, counts: .all)
      try await bench.attempt([person, address, everyone], .refundPerson)
      #expect(try await bench.store.counters([person, address, everyone], at: bench.now).map(\.settled) == [0, 1, 1])
    },
    StoreConformance("an attempt unsettled for 10 s counts as a failure at its own time, however it is settled later") {
      bench async throws in
      let limit = bench.limit(max: 1, counts: .failures)
      let begun = bench.now
      let lost = try await bench.reserve([limit])
      bench.clock.advance(by: .milliseconds(9999))
      #expect(try await bench.state(limit).pending == 1)
      bench.clock.advance(by: .milliseconds(1))
      let dead = CounterState(pending: 0, settled: 1, oldest: begun)
      #expect(try await bench.state(limit) == dead)
      try await bench.settle(lost.id, [limit], .success)
      #expect(try await bench.state(limit) == dead)
      #expect(try await bench.reserve([limit]).result.reason == .full(until: begun + .seconds(60)))
      try await bench.settle(lost.id, [limit], .refund)
      #expect(try await bench.state(limit) == dead)
      bench.clock.set(begun + .seconds(60))
      #expect(try await bench.reserve([limit]).result.places == [1])
    },
    StoreConformance("the state at the end of a transaction includes its changes") { bench async throws in
      let (limit, timer) = (bench.limit(max: 9), bench.timer())
      let id = try await bench.reserve([limit], timer: timer).id
      let failure = Settlement(reservation: id, outcome: .failure, limits: [limit], timer: timer, now: bench.now)
      let query = LedgerQuery([limit], timer)
      let applied = try await bench.store.apply([.settle(failure)], reading: query, at: bench.now)
      let ledgerState = LedgerState(
        counters: [CounterState(pending: 0, settled: 1, oldest: bench.now)], resendAt: bench.now + .seconds(60))
      #expect(applied == .applied(locks: [], ledgerState: ledgerState))
      #expect(try await bench.store.ledgerState(query, at: bench.now) == ledgerState)
      // Once the failure has left the window, counting takes another read.
      bench.clock.advance(by: .seconds(60))
      #expect(
        try await bench.store.apply([.clearTimer([7])], reading: LedgerQuery([limit]), at: bench.now)
          == .applied(locks: []))
    },
    StoreConformance("an account is read with a charge, as it is then") { bench async throws in
      let limit = bench.limit(max: 1, counts: .all)
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [bench.phone()])))
      func charge(_ account: String) async throws -> ReservationResult {
        try await bench.store.reserve(
          ReservationRequest(
            id: ReservationID(from: bench.random), now: bench.now, limits: [limit], timer: nil, reading: account))
      }
      try await bench.apply(.raiseEpoch(account: "ac_1"))
      guard case .reserved([1], let account?, false) = try await charge("ac_1") else {
        Issue.record("not charged, or no account")
        return
      }
      #expect(account == (try await bench.store.account("ac_1")) && account.epoch == 1)
      #expect(try await charge("ac_1") == .filledByPending)
      bench.clock.advance(by: .seconds(60))
      #expect(try await charge("ac_2") == .reserved(places: [1]))
    },
    StoreConformance("nothing is charged while another limit is locked or has disabled something") {
      bench async throws in
      let send = bench.limit("send", max: 9, counts: .all)
      let locking = bench.limit("locking", max: 1, lock: [.seconds(300)])
      let disabling = bench.limit("disabling", max: 1, window: nil, counts: .consecutiveFailures, disables: true)
      let timer = ResendTimer(key: [7], intervals: [.seconds(60)], expiredAt: nil)
      func charge(hidesDisabled: Bool = false) async throws -> ReservationResult {
        try await bench.store.reserve(
          ReservationRequest(
            id: ReservationID(from: bench.random), now: bench.now, limits: [send], timer: timer,
            unlessLocked: [locking, disabling], hidesDisabled: hidesDisabled))
      }
      #expect(try await charge() == .reserved(places: [1]))
      #expect(try await bench.resendAt(timer) == bench.now + .seconds(60))
      try await bench.attempt([locking], .failure)
      bench.clock.advance(by: .seconds(60))
      #expect(try await charge() == .barred)
      #expect(try await bench.resendAt(timer) == nil, "the timer does not run again")
      bench.clock.advance(by: .seconds(240))
      #expect((try await charge()).places?.count == 1)
      try await bench.attempt([disabling], .failure)
      bench.clock.advance(by: .seconds(1_000))
      #expect(try await charge() == .barred)
      guard case .reserved(_, _, isDisabled: true) = try await charge(hidesDisabled: true) else {
        Issue.record("not charged, or not told that a limit has disabled something")
        return
      }
    },
    StoreConformance("nothing is charged in a flow that is stored in another version") { bench async throws in
      let limit = bench.limit(max: 9, counts: .all)
      var flow = bench.flow("a")
      try await bench.apply(.putFlow(flow))
      func charge() async throws -> ReservationResult {
        try await bench.store.reserve(
          ReservationRequest(
            id: ReservationID(from: bench.random), now: bench.now, limits: [limit], timer: nil, in: FlowVersion(flow),
            reading: "ac_1"))
      }
      #expect(try await charge() == .flowChanged)
      flow.version = 1
      #expect(try await charge() == .reserved(places: [1]))
      try await bench.apply(.putFlow(flow))
      #expect(try await charge() == .flowChanged)
      try await bench.apply(.deleteFlow(flow.id))
      #expect(try await charge() == .flowChanged)
      #expect(try await bench.state(limit).used == 1)
    },
    StoreConformance("a repeated settlement, or one of no reservation, changes nothing") { bench async throws in
      let limit = bench.limit(max: 9)
      let reserved = try await bench.reserve([limit])
      try await bench.settle(reserved.id, [limit], .failure)
      for outcome in [Settlement.Outcome.failure, .success, .refund, .refundPerson] {
        #expect(try await bench.settle(reserved.id, [limit], outcome) == .applied(locks: []))
        #expect(try await bench.settle(ReservationID(from: bench.random), [limit], outcome) == .applied(locks: []))
      }
      #expect(try await bench.state(limit) == CounterState(settled: 1, oldest: bench.now))
    },
    StoreConformance("counters are read without a charge") { bench async throws in
      let limit = bench.limit(max: 1)
      for _ in 0..<3 { #expect(try await bench.state(limit) == CounterState()) }
      #expect(try await bench.reserve([limit]).result.places == [1])
    },
  ]
}
