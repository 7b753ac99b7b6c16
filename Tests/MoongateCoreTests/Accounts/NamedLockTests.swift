import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// The view of a lock for an operator, and for someone with only the database.
@Suite struct NamedLockTests {
  private func locked(_ bench: EngineTestBench) async throws -> (operators: AccountAdministration, account: String) {
    let account = try await bench.registered().id
    let id = try await bench.begun()
    for _ in 0..<5 { _ = await bench.submit(id, bench.wrong) }
    let operators = AccountAdministration(
      store: bench.store, providers: try ProviderRegistry([ToyCode(name: EngineTestBench.phone)]), keys: bench.keys,
      clock: bench.clock, random: SystemRandom())
    return (operators, account)
  }

  @Test func aLockNamesThePersonTheAddressAndThePolicy() async throws {
    let bench = try await EngineTestBench()
    let (operators, account) = try await locked(bench)
    let generation = bench.generations.current
    let lock = try #require(try await operators.namedLocks(in: generation).first)
    #expect(lock.identifier?.value == "+919999999999" && lock.account == account)
    #expect(lock.failures == 5 && lock.sources.map(\.count) == [5])
    #expect(lock.key == .identifier && lock.location != nil)
    for name in [lock.lock.id, account, "919999999999", "+91 99999-99999"] {
      #expect(try await operators.locks(named: name, region: "IN", in: generation) == [lock], "\(name)")
    }
    for name in ["912222222222", "ac_nobody", "a@example.com"] {
      #expect(try await operators.locks(named: name, region: "IN", in: generation).isEmpty, "\(name)")
    }
  }

  @Test func lockOfAnUnregisteredNumberIsFoundByTheNumber() async throws {
    let bench = try await EngineTestBench()
    let (operators, _) = try await locked(bench)
    let limit = ResolvedLimit(
      provider: EngineTestBench.phone, name: "verify", key: .identifier, counter: [1, 2, 3], max: 1,
      window: .seconds(60),
      counts: .failures,
      lock: [.seconds(900)], disables: false)
    let guessed = Identifier(kind: .phone, value: "+913333333333", display: "+91 33333 33333", attributes: [:])
    try await fail(limit, AttemptOrigin(identifier: guessed, account: nil, address: "203.0.113.9"), bench)
    let found = try await operators.locks(named: "913333333333", region: "IN", in: bench.generations.current)
    #expect(found.map(\.identifier) == [guessed] && found.map(\.account) == [nil])
    #expect(found.first?.sources == [NamedLock.Source(address: "203.0.113.9", count: 1)])
  }

  /// A gateway appends its events in batches, after those that a command has appended meanwhile.
  @Test func theHistoryIsSortedByTime() async throws {
    let bench = try await EngineTestBench()
    let (operators, account) = try await locked(bench)
    let start = bench.clock.now()
    for seconds in [30, 10, 20] {
      let event = AuditEvent(
        id: DecisionID(text: "dc_\(seconds)"), at: start + .seconds(seconds), kind: .refused, account: account)
      try await bench.store.append([event])
    }
    let events = try await operators.events(matching: AuditFilter(people: .init(accounts: [account])), limit: 3)
    #expect(events.map(\.id.text) == ["dc_30", "dc_20", "dc_10"])
  }

  @Test func theOverviewTellsWhoLockedTheAccount() async throws {
    let bench = try await EngineTestBench()
    let (desks, id) = try await locked(bench)
    let operators = desks.acting(as: OperatorIdentity(name: "ravi", tool: "test"))
    let generation = bench.generations.current
    let open = try #require(try await bench.store.account(id))
    #expect(try await operators.overview(of: open, in: generation).operatorLock == nil)
    _ = try await operators.lock(id, because: "reported stolen")
    let account = try #require(try await bench.store.account(id))
    let lock = try #require(try await operators.overview(of: account, in: generation).operatorLock)
    #expect(lock.actor == "ravi (test)" && lock.detail["reason"] == "reported stolen")
  }

  @Test func unlockingEndsAndListsEveryLock() async throws {
    let bench = try await EngineTestBench()
    let (desks, account) = try await locked(bench)
    let operators = desks.acting(as: OperatorIdentity(name: "ravi", tool: "test"))
    let generation = bench.generations.current
    _ = try await operators.lock(account)
    let ended = try #require(try await operators.unlock(account, in: generation))
    #expect(ended.wasLocked && ended.locks.map(\.lock.limit) == ["verify"] && !ended.isNothing)
    #expect(try await bench.store.locks(at: bench.clock.now()).isEmpty)
    #expect(try await bench.store.account(account)?.isLocked == false)
    #expect(try await operators.unlock(account, in: generation)?.isNothing == true)
    #expect(try await operators.unlock("ac_nobody", in: generation) == nil)
    // The audit trail names the operator and the account.
    let lines = try await bench.store.events(limit: 50).filter { $0.kind == .lockLifted || $0.kind == .accountUnlocked }
    #expect(
      lines.count == 2
        && lines.allSatisfy { $0.account == account && $0.detail["operator"] == "ravi" && $0.detail["by"] == "test" })
  }

  /// Attack: an operator unlocks an account that its import is going to delete, and is told that it is open.
  @Test func unlockingChangesNoAccountOfAnImport() async throws {
    let bench = try await EngineTestBench()
    let (operators, _) = try await locked(bench)
    let now = bench.clock.now()
    let lease = try #require(try await bench.store.beginImport(at: now))
    let account = Account(id: "ac_pending", createdAt: now, lastSeenAt: now, isLocked: true)
    _ = try await bench.store.apply(
      [.requireLease(lease), .importAccount(StoredImport(account: account, records: []))], at: now)
    let ended = try #require(try await operators.unlock("ac_pending", in: bench.generations.current))
    #expect(ended.isPending && ended.isNothing)
    #expect(try await bench.store.events(limit: 50).allSatisfy { $0.kind != .accountUnlocked })
    _ = try await bench.store.apply([.requireLease(lease), .completeImport(lease, forgetting: [])], at: now)
    while try await bench.store.settleImport(at: now) {}
    #expect(try await bench.store.account("ac_pending")?.isLocked == true, "as it was imported")
  }

  /// Attack: an account claims the number of a victim, guesses at its code or secret until the number is locked, and
  /// asks an operator to unlock the account.
  @Test func unlockingKeepsTheLocksOfClaimedIdentifiers() async throws {
    let bench = try await EngineTestBench()
    let (operators, victim) = try await locked(bench)
    let generation = bench.generations.current
    let number = Identifier(kind: .phone, value: "+919999999999", display: "")
    let thief = Account(
      id: "ac_thief", createdAt: bench.clock.now(), lastSeenAt: bench.clock.now(),
      identifiers: [HeldIdentifier(identifier: number, verifiedAt: nil)])
    _ = try await bench.store.apply([.createAccount(thief)], at: bench.clock.now())
    // A lock at the thief's own counters, and one at the victim's address with an attempt about the thief's account.
    func limit(_ key: LimitKey, _ counter: [UInt8]) -> ResolvedLimit {
      ResolvedLimit(
        provider: EngineTestBench.phone, name: "verify", key: key, counter: counter, max: 1, window: .seconds(60),
        counts: .failures, lock: [.seconds(900)], disables: false)
    }
    try await fail(limit(.identifier, [1]), AttemptOrigin(identifier: nil, account: "ac_thief", address: "x"), bench)
    try await fail(limit(.identifier, [2]), AttemptOrigin(identifier: number, account: "ac_thief", address: "x"), bench)
    let ended = try #require(try await operators.unlock("ac_thief", in: generation))
    #expect(ended.locks.map(\.lock.counter) == [[1]])
    #expect(ended.kept.count == 2 && ended.kept.allSatisfy { $0.identifier == number })
    #expect(try await bench.store.locks(at: bench.clock.now()).count == 2)
    // The victim has verified the number.
    #expect(try await operators.unlock(victim, in: generation)?.locks.count == 2)
    #expect(try await bench.store.locks(at: bench.clock.now()).isEmpty)
  }

  /// A lock that began by an attempt whose gateway died has no failed attempts stored with it.
  @Test func unnamedLockIsAssignedByItsCounter() async throws {
    let bench = try await EngineTestBench()
    let (operators, account) = try await locked(bench)
    let traces = [bench.keys.accountTrace(account), bench.keys.logHash("+919999999999")]
    for lock in try await bench.store.locks(at: bench.clock.now()) {
      #expect(try await bench.store.liftLock(lock.id, at: bench.clock.now()))
    }
    bench.clock.advance(by: .seconds(1))
    let person = try #require(try await bench.store.account(account))
    let limits = PersonalLimits(
      keys: bench.keys, providers: try ProviderRegistry([ToyCode(name: EngineTestBench.phone)])
    )
    .limits([.verify], of: person, at: EngineTestBench.phone, in: bench.generations.current)
    let limit = try #require(limits.first)
    let same = ResolvedLimit(
      provider: limit.provider, name: limit.name, key: limit.key, counter: limit.counter, max: 1, window: .seconds(60),
      counts: .failures,
      lock: [.seconds(900)], disables: false)
    try await fail(same, nil, bench)
    #expect(try await bench.store.locks(about: traces, at: bench.clock.now()).isEmpty)
    let found = try await operators.locks(of: person, in: bench.generations.current)
    #expect(found.map(\.lock.limit) == [limit.name] && found.first?.identifier == nil)
  }

  /// Attack: a copy of the database. It reveals neither whose lock it is nor where the attempts came from.
  @Test func databaseAloneRevealsNoUser() async throws {
    let bench = try await EngineTestBench()
    let (_, account) = try await locked(bench)
    let lock = try #require(try await bench.store.locks(at: bench.clock.now()).first)
    let attempts = try await bench.store.failedAttempts(at: [lock.counter])
    #expect(attempts.count == 5)
    for attempt in attempts {
      let texts = [attempt.account ?? "", attempt.identifier ?? "", String(decoding: attempt.sealed, as: UTF8.self)]
      for secret in [account, "9999999999", "192.0.2", "phone"] {
        #expect(!texts.contains { $0.contains(secret) }, "\(secret)")
      }
    }
    #expect(Set(attempts.map(\.sealed.count)).count == 1, "nor by its length")
    let others = try KeyRing(master: Array(repeating: 9, count: 32))
    #expect(throws: (any Error).self) { try AttemptOrigin(opening: attempts[0], by: others) }
    // The lock is still listed.
    let nameless = NamedLock(lock, attempts, by: others, in: bench.generations.current)
    #expect(nameless.identifier == nil && nameless.account == nil && nameless.failures == 5 && nameless.sources.isEmpty)
  }

  /// Attack: somebody who can write to the database attaches the name of one lock to another, so that the operator
  /// lifts the wrong one.
  @Test func sealedNameOfAnotherCounterIsRefused() throws {
    let keys = try KeyRing(master: Array(repeating: 7, count: 32))
    let origin = AttemptOrigin(identifier: nil, account: "ac_1", address: "192.0.2.1")
    let attempt = try origin.attempt(at: [1], Timestamp(milliseconds: 5), by: keys)
    #expect(try AttemptOrigin(opening: attempt, by: keys) == origin)
    let moved = FailedAttempt(
      counter: [2], at: attempt.at, account: attempt.account, identifier: nil, sealed: attempt.sealed)
    #expect(throws: (any Error).self) { try AttemptOrigin(opening: moved, by: keys) }
  }

  @Test func sealedNamesStayReadableAfterAKeyRotation() throws {
    let old = [UInt8](repeating: 7, count: 32)
    let before = try KeyRing(master: old)
    let attempt = try AttemptOrigin(identifier: nil, account: "ac_1", address: "192.0.2.1").attempt(
      at: [1], Timestamp(milliseconds: 5), by: before)
    let rotated = try MasterKeys(only: old).adding([UInt8](repeating: 8, count: 32)).rotated()
    let after = KeyRing(try #require(rotated))
    #expect(try AttemptOrigin(opening: attempt, by: after).account == "ac_1")
    #expect(after.accountTrace("ac_1") == attempt.account, "and is found")
  }

  private func fail(_ limit: ResolvedLimit, _ origin: AttemptOrigin?, _ bench: EngineTestBench) async throws {
    let id = ReservationID(from: SystemRandom())
    let now = bench.clock.now()
    _ = try await bench.store.reserve(ReservationRequest(id: id, now: now, limits: [limit], timer: nil))
    let attempts = try origin.map { [try $0.attempt(at: limit.counter, now, by: bench.keys)] } ?? []
    _ = try await bench.store.apply(
      [
        .settle(
          Settlement(reservation: id, outcome: .failure, limits: [limit], timer: nil, now: now, attempts: attempts))
      ], at: now)
  }
}
