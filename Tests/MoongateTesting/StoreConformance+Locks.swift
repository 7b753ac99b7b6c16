import MoongateCore
import MoongateSDK
import Testing

// Locks and resend timers.

extension StoreConformance {
  static let locks: [StoreConformance] = [
    StoreConformance("the failure that fills a limit begins its lock; afterwards it starts from zero") {
      bench async throws in
      let limit = bench.limit(max: 2, lock: [.seconds(900)])
      try await bench.attempt([limit], .failure)
      let last = try await bench.reserve([limit])
      let until = bench.now + .seconds(900)
      #expect(
        try await bench.settle(last.id, [limit], .failure) == .applied(locks: [LockBegun(limit: limit, until: until)]))
      bench.clock.advance(by: .milliseconds(899_999))
      #expect(
        try await bench.reserve([limit]).result
          == .refused(ReservationRefusal(reason: .locked(until: until), limit: limit)))
      bench.clock.advance(by: .milliseconds(1))
      #expect(try await bench.reserve([limit]).result.places == [1])
    },
    StoreConformance("right on the last attempt: no lock") { bench async throws in
      let limit = bench.limit(max: 2, lock: [.seconds(900)])
      try await bench.attempt([limit], .failure)
      try await bench.attempt([limit], .success)
      #expect(try await bench.reserve([limit]).result.places == [2])
    },
    StoreConformance(
      "locks escalate, the last repeats, and they start again when the window has passed since the last ended"
    ) {
      bench async throws in
      let limit = bench.limit(max: 1, window: .seconds(100), lock: [.seconds(10), .seconds(20), .seconds(40)])
      for length in [10, 20, 40, 40] {
        try await bench.attempt([limit], .failure)
        #expect(try await bench.state(limit).lockedUntil == bench.now + .seconds(length))
        bench.clock.advance(by: .seconds(length))
      }
      bench.clock.advance(by: .milliseconds(99_999))
      try await bench.attempt([limit], .failure)
      #expect(try await bench.state(limit).lockedUntil == bench.now + .seconds(40))
      bench.clock.advance(by: .seconds(40 + 100))
      try await bench.attempt([limit], .failure)
      #expect(try await bench.state(limit).lockedUntil == bench.now + .seconds(10))
    },
    StoreConformance("attempts during a lock neither lengthen nor escalate it") { bench async throws in
      let limit = bench.limit(max: 1, lock: [.seconds(10), .seconds(20)])
      try await bench.attempt([limit], .failure)
      let locked = try await bench.state(limit)
      for _ in 0..<5 {
        bench.clock.advance(by: .seconds(1))
        try await bench.attempt([limit], .failure)
      }
      #expect(try await bench.state(limit) == locked)
    },
    StoreConformance("a limit that is full of failures without a lock begins it at the next attempt, which is refused")
    {
      bench async throws in
      let limit = bench.limit(max: 1, lock: [.seconds(900)])
      _ = try await bench.reserve([limit])
      bench.clock.advance(by: .seconds(10))
      let until = bench.now + .seconds(900)
      let other = bench.limit("other")
      #expect(
        try await bench.reserve([other, limit]).result
          == .refused(ReservationRefusal(reason: .locked(until: until), limit: limit)))
      #expect(try await bench.state(limit) == CounterState(lockedSince: bench.now, lockedUntil: until))
      #expect(try await bench.state(other) == CounterState())
      #expect(try await bench.store.locks(at: bench.now).map(\.until) == [until])
    },
    StoreConformance("an attempt that was pending when a lock began does not count after it") { bench async throws in
      let wide = bench.limit(max: 9, lock: [.seconds(5)])
      let narrow = bench.limit(max: 1, lock: [.seconds(5)])
      let slow = try await bench.reserve([wide])
      try await bench.attempt([wide], .failure)
      try await bench.attempt([narrow], .failure)
      _ = try await bench.reserve([narrow])
      bench.clock.advance(by: .seconds(5))
      try await bench.settle(slow.id, [wide], .failure)
      #expect(try await bench.state(wide).used == 0)
    },
    StoreConformance("disable: refused until an operator lifts it") { bench async throws in
      let limit = bench.limit("hard", max: 2, window: nil, counts: .consecutiveFailures, disables: true)
      try await bench.attempt([limit], .failure)
      let last = try await bench.reserve([limit])
      #expect(
        try await bench.settle(last.id, [limit], .failure) == .applied(locks: [LockBegun(limit: limit, until: nil)]))
      let since = bench.now
      bench.clock.advance(by: .seconds(400 * 86_400))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.reserve([limit]).result.reason == .disabled)
      let lock = try #require(try await bench.store.locks(at: bench.now).first)
      #expect(
        lock
          == LockRecord(
            id: Base64URL.encode(limit.counter), provider: limit.provider, limit: "hard", since: since, until: nil))
      #expect(try await bench.store.liftLock(lock.id, at: bench.now))
      #expect(try await bench.store.locks(at: bench.now).isEmpty)
      #expect(try await bench.reserve([limit]).result.places == [1])
    },
    StoreConformance("a full limit with disable disables at the next attempt") { bench async throws in
      let limit = bench.limit(max: 1, disables: true)
      _ = try await bench.reserve([limit])
      bench.clock.advance(by: .seconds(10))
      #expect(try await bench.reserve([limit]).result.reason == .disabled)
      #expect(try await bench.state(limit).isDisabled)
    },
    StoreConformance("current locks are listed, and lifted once") { bench async throws in
      let limits = ["a", "b", "c"].map { bench.limit($0, max: 1, lock: [.seconds($0 == "a" ? 10 : 900)]) }
      for limit in limits { try await bench.attempt([limit], .failure) }
      #expect(try await bench.store.locks(at: bench.now).map(\.limit).sorted() == ["a", "b", "c"])
      bench.clock.advance(by: .seconds(10))
      let locks = try await bench.store.locks(at: bench.now)
      #expect(locks.map(\.limit).sorted() == ["b", "c"])
      let lock = try #require(locks.first)
      #expect(try await bench.store.liftLock(lock.id, at: bench.now))
      #expect(try await !bench.store.liftLock(lock.id, at: bench.now))
      #expect(try await !bench.store.liftLock(Base64URL.encode(limits[0].counter), at: bench.now), "its lock has ended")
      for id in ["", "no such lock", "AAAA", String(repeating: "A", count: 100_000)] {
        #expect(try await !bench.store.liftLock(id, at: bench.now))
      }
      #expect(try await bench.store.locks(at: bench.now).count == 1)
    },
    StoreConformance("a lifted lock starts from zero and is remembered for escalation") { bench async throws in
      let limit = bench.limit(max: 1, lock: [.seconds(10), .seconds(20)])
      try await bench.attempt([limit], .failure)
      #expect(try await bench.store.liftLock(Base64URL.encode(limit.counter), at: bench.now))
      #expect(try await bench.attempt([limit], .failure).places == [1])
      #expect(try await bench.state(limit).lockedUntil == bench.now + .seconds(20))
    },
  ]

  static let timers: [StoreConformance] = [
    StoreConformance("twenty parallel sends: one") { bench async throws in
      let limits = [bench.limit("send", max: 4, counts: .all)]
      let results = try await withThrowingTaskGroup(of: ReservationResult.self) { group in
        for _ in 0..<20 { group.addTask { try await bench.reserve(limits, timer: bench.timer()).result } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      let resendAt = bench.now + .seconds(60)
      #expect(results.count { $0 == .reserved(places: [1]) } == 1)
      #expect(results.count { $0 == .refused(ReservationRefusal(reason: .timer(until: resendAt), limit: nil)) } == 19)
    },
    StoreConformance("the first interval, the second, the last again; from the start after 15 minutes without a send") {
      bench async throws in
      for wait in [60, 120, 120] {
        try await bench.attempt([], .success, timer: bench.timer())
        #expect(try await bench.resendAt(bench.timer()) == bench.now + .seconds(wait))
        bench.clock.advance(by: .milliseconds(wait * 1000 - 1))
        #expect(try await bench.resendAt(bench.timer()) == bench.now + .milliseconds(1))
        #expect(
          try await bench.reserve([], timer: bench.timer()).result.reason == .timer(until: bench.now + .milliseconds(1))
        )
        bench.clock.advance(by: .milliseconds(1))
        #expect(try await bench.resendAt(bench.timer()) == nil)
      }
      bench.clock.advance(by: .milliseconds(15 * 60_000 - 120_000 - 1))
      try await bench.attempt([], .success, timer: bench.timer())
      #expect(try await bench.resendAt(bench.timer()) == bench.now + .seconds(120))
      bench.clock.advance(by: .seconds(15 * 60))
      try await bench.attempt([], .success, timer: bench.timer())
      #expect(try await bench.resendAt(bench.timer()) == bench.now + .seconds(60))
    },
    StoreConformance("no intervals: no timer") { bench async throws in
      for _ in 0..<3 {
        #expect(try await bench.attempt([], .success, timer: bench.timer([])) == .reserved(places: []))
      }
      #expect(try await bench.resendAt(bench.timer([])) == nil)
    },
    StoreConformance("an expired code opens the next send at once, and of twenty at once one") { bench async throws in
      try await bench.attempt([], .success, timer: bench.timer([.seconds(600)]))
      bench.clock.advance(by: .seconds(30))
      let timer = bench.timer([.seconds(600)], expiredAt: bench.now)
      #expect(try await bench.resendAt(timer) == nil)
      bench.clock.advance(by: .seconds(1))
      let places = try await withThrowingTaskGroup(of: [Int]?.self) { group in
        for _ in 0..<20 { group.addTask { try await bench.attempt([], .success, timer: timer).places } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(places.count { $0 != nil } == 1)
    },
    StoreConformance("a refund restores the timer; after a success there is nothing to restore") { bench async throws in
      for outcome in [Settlement.Outcome.refund, .refundPerson] {
        try await bench.attempt([], outcome, timer: bench.timer())
        #expect(try await bench.resendAt(bench.timer()) == nil)
      }
      let sent = try await bench.reserve([], timer: bench.timer())
      try await bench.settle(sent.id, [], .success, timer: bench.timer())
      try await bench.settle(sent.id, [], .refund, timer: bench.timer())
      #expect(try await bench.resendAt(bench.timer()) == bench.now + .seconds(60))
      bench.clock.advance(by: .seconds(60))
      try await bench.attempt([], .refund, timer: bench.timer())
      #expect(try await bench.resendAt(bench.timer()) == nil)
      try await bench.attempt([], .success, timer: bench.timer())
      #expect(
        try await bench.resendAt(bench.timer()) == bench.now + .seconds(120), "the second of its sequence still")
    },
    StoreConformance("a send that a limit refuses leaves the timer as it is") { bench async throws in
      let limit = bench.limit("send", max: 1, counts: .all)
      try await bench.attempt([limit], .success)
      _ = try await bench.reserve([limit], timer: bench.timer())
      #expect(try await bench.resendAt(bench.timer()) == nil)
    },
    StoreConformance("clearing the timer restarts its sequence") { bench async throws in
      try await bench.attempt([], .success, timer: bench.timer())
      try await bench.apply(.clearTimer(bench.timer().key))
      try await bench.attempt([], .success, timer: bench.timer())
      #expect(try await bench.resendAt(bench.timer()) == bench.now + .seconds(60))
    },
  ]
}
