import MoongateCore
import MoongateSDK
import Testing

// The failed attempts that are stored for the details of locks.

extension StoreConformance {
  static let attempts: [StoreConformance] = [
    StoreConformance("a lock stores the failed attempts that led to it, and whom they were about") {
      bench async throws in
      let limit = bench.limit(lock: [.seconds(900)])
      let other = bench.limit(of: "ravi", lock: [.seconds(900)])
      for number in 0..<3 {
        try await bench.fail(limit, about: "person", sealed: UInt8(number))
        bench.clock.advance(by: .seconds(1))
      }
      try await bench.fail(other, about: "another", sealed: 9)
      let lock = try #require(try await bench.store.locks(at: bench.now).first)
      #expect(
        try await bench.store.failedAttempts(at: [lock.counter]).map(\.sealed) == [[2], [1], [0]], "newest first")
      #expect(try await bench.store.failedAttempts(at: [[1, 2, 3]]).isEmpty)
      #expect(try await bench.store.failedAttempts(at: []).isEmpty)
      for trace in ["person", "identifier of person"] {
        #expect(try await bench.store.locks(about: [trace, trace], at: bench.now) == [lock], "\(trace)")
      }
      #expect(try await bench.store.locks(about: ["another", "nobody"], at: bench.now).isEmpty, "there is no lock")
      #expect(try await bench.store.locks(about: [], at: bench.now).isEmpty)
      bench.clock.advance(by: .seconds(900))
      #expect(try await bench.store.locks(about: ["person"], at: bench.now).isEmpty, "the lock has ended")
    },
    StoreConformance("failures before a lock, or before a success, are not part of the next lock") {
      bench async throws in
      let limit = bench.limit(max: 2, window: .seconds(60), counts: .consecutiveFailures, lock: [.seconds(10)])
      for number in 0..<2 { try await bench.fail(limit, about: "person", sealed: UInt8(number)) }
      bench.clock.advance(by: .seconds(11))
      try await bench.fail(limit, about: "person", sealed: 7)
      #expect(try await bench.store.failedAttempts(at: [limit.counter]).map(\.sealed) == [[7]])
      try await bench.attempt([limit], .success)
      #expect(try await bench.store.failedAttempts(at: [limit.counter]).isEmpty)
      try await bench.fail(limit, about: "person", sealed: 8)
      try await bench.apply(.clearCounters([limit]))
      #expect(try await bench.store.failedAttempts(at: [limit.counter]).isEmpty)
    },
    StoreConformance("of many failed attempts the newest are stored, and none for a lifted lock") {
      bench async throws in
      let limit = bench.limit(max: 50, lock: [.seconds(900)])
      for number in 0..<50 {
        try await bench.fail(limit, about: "person", sealed: UInt8(number))
        bench.clock.advance(by: .milliseconds(1))
      }
      let found = try await bench.store.failedAttempts(at: [limit.counter])
      #expect(found.map(\.sealed) == (0..<UInt8(FailedAttempt.most)).map { [49 - $0] })
      let lock = try #require(try await bench.store.locks(at: bench.now).first)
      #expect(try await bench.store.liftLock(lock.id, at: bench.now))
      #expect(try await bench.store.failedAttempts(at: [limit.counter]).isEmpty)
    },
    // Attack: a user is deleted, and a copy of the store still reveals from where someone tried to sign in as that
    // user.
    StoreConformance("deleting a person deletes their failed attempts and keeps the lock") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [bench.phone()])))
      let limit = bench.limit(max: 1, lock: [.seconds(900)])
      let other = bench.limit(of: "ravi", max: 1, lock: [.seconds(900)])
      try await bench.fail(limit, about: "person", sealed: 1)
      try await bench.fail(other, about: "another", sealed: 2)
      #expect(try await bench.apply(.deleteAccount("ac_1", traces: ["person"])) == .applied(locks: []))
      #expect(try await bench.store.failedAttempts(at: [limit.counter, other.counter]).map(\.sealed) == [[2]])
      #expect(try await bench.store.locks(at: bench.now).count == 2)
    },
    StoreConformance("failed attempts are deleted after seven days, except for those of a current lock") {
      bench async throws in
      let limit = bench.limit(max: 5, window: .seconds(20 * 86_400))
      let off = bench.limit(of: "ravi", max: 1, window: .seconds(20 * 86_400), disables: true)
      try await bench.fail(limit, about: "person", sealed: 1)
      try await bench.fail(off, about: "another", sealed: 2)
      bench.clock.advance(by: FailedAttempt.retention - .milliseconds(1))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.failedAttempts(at: [limit.counter, off.counter]).count == 2)
      bench.clock.advance(by: .milliseconds(1))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.failedAttempts(at: [limit.counter, off.counter]).map(\.sealed) == [[2]])
    },
  ]
}

extension StoreBench {
  /// Charges an attempt and settles it as a failure at a user's account.
  func fail(_ limit: ResolvedLimit, about person: String, sealed: UInt8) async throws {
    let (id, result) = try await reserve([limit])
    guard case .reserved = result else { return }
    let attempt = FailedAttempt(
      counter: limit.counter, at: now, account: person, identifier: "identifier of \(person)", sealed: [sealed])
    try await apply(
      .settle(
        Settlement(reservation: id, outcome: .failure, limits: [limit], timer: nil, now: now, attempts: [attempt])))
  }
}
