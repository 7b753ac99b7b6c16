import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateStore

/// Several gateways on one database; here each is a store of its own.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) struct PostgresNodesTests {
  private let server: PostgresServer
  private let name: String
  private let nodes: [PostgresStore]
  private let now = ManualClock.start
  private let random = SeededRandom(seed: 3)

  init() throws {
    server = try #require(PostgresServer.shared)
    name = try server.makeDatabase()
    let url = server.url(name)
    nodes = try (0..<3).map { _ in try PostgresStore(url: url, keyFingerprint: [1], purpose: .working) }
  }

  private func limit(_ name: String, max: Int = 5, lock: [Duration] = []) -> ResolvedLimit {
    ResolvedLimit(
      provider: ProviderName(test: "phone_otp"), name: "verify", key: .identifier, counter: Array(name.utf8), max: max,
      window: .seconds(60),
      counts: .failures, lock: lock, disables: false)
  }

  private func session(_ id: String) -> Session {
    Session(
      id: id, token: TokenHash(of: id.utf8), account: "ac_1", createdAt: now, expiresAt: now + .seconds(60),
      idle: .seconds(60), lastSeenAt: now,
      passed: [], userAgent: nil)
  }

  @Test func fiveOfTwoHundredOverThreeNodes() async throws {
    let places = try await withThrowingTaskGroup(of: [Int]?.self) { group in
      for number in 0..<200 {
        group.addTask {
          let request = ReservationRequest(
            id: ReservationID(from: random), now: now, limits: [limit("all"), limit("more", max: 9)], timer: nil)
          if case .reserved(let places, _, _) = try await nodes[number % 3].reserve(request) { return places }
          return nil
        }
      }
      return try await group.reduce(into: [[Int]]()) { if let places = $1 { $0.append(places) } }
    }
    #expect(places.sorted { $0[0] < $1[0] } == (1...5).map { [$0, $0] })
  }

  /// Attack: attempts without end at a full limit, while a backup keeps old row versions alive: each would leave
  /// another version for the next to skip.
  @Test func refusedAttemptLeavesTheCounterUnchanged() async throws {
    let full = limit("full", max: 1)
    let requests = (0..<4).map { _ in
      ReservationRequest(id: ReservationID(from: random), now: now, limits: [full], timer: nil)
    }
    _ = try await nodes[0].reserve(requests[0])
    let before = try server.sql("SELECT ctid FROM counter", in: name)
    for request in requests.dropFirst() { #expect(try await nodes[1].reserve(request) == .filledByPending) }
    #expect(try server.sql("SELECT ctid FROM counter", in: name) == before)
  }

  /// Pruning skips locked rows instead of waiting for them with locks of its own.
  @Test func pruningSkipsLockedRows() async throws {
    for each in ["one", "two"] {
      _ = try await nodes[0].reserve(
        ReservationRequest(id: ReservationID(from: random), now: now, limits: [limit(each)], timer: nil))
    }
    let holder = PostgresDatabase(try PostgresAddress(server.url(name)), timing: .patient)
    let holds = Mutex(false)
    let mayGo = DispatchSemaphore(value: 0)
    async let holding: Void = holder.write(at: now) { one in
      _ = try one.rows("SELECT key FROM counter WHERE key = ?1 FOR UPDATE", [.bytes(Array("one".utf8))])
      holds.withLock { $0 = true }
      mayGo.wait()
    }
    // Releases the waiting transaction even if the test fails.
    defer { mayGo.signal() }
    while !holds.withLock({ $0 }) { await Task.yield() }
    _ = try await nodes[1].prune(at: now + .seconds(3600))
    #expect(try server.sql("SELECT convert_from(key, 'UTF8') FROM counter", in: name) == "one")
    mayGo.signal()
    try await holding
    _ = try await nodes[1].prune(at: now + .seconds(3600))
    #expect(try server.sql("SELECT count(*) FROM counter", in: name) == "0")
  }

  /// Limits in any order: no caller sees a deadlock, and none is counted twice.
  @Test func oppositeKeyOrdersDoNotDeadlock() async throws {
    let limits = (0..<4).map { limit("key \($0)", max: 1000) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<120 {
        group.addTask {
          let mine = number % 2 == 0 ? limits : limits.reversed()
          let id = ReservationID(from: random)
          let store = nodes[number % 3]
          guard case .reserved = try await store.reserve(ReservationRequest(id: id, now: now, limits: mine, timer: nil))
          else {
            Issue.record("there was a place")
            return
          }
          let settlement = Settlement(reservation: id, outcome: .failure, limits: mine.reversed(), timer: nil, now: now)
          let result = try await nodes[(number + 1) % 3].apply([.settle(settlement)], at: now)
          #expect(result == .applied(locks: []))
        }
      }
      try await group.waitForAll()
    }
    #expect(try await nodes[0].counters(limits, at: now).map(\.settled) == [120, 120, 120, 120])
  }

  @Test func oneOfManyClaimantsGetsTheNumber() async throws {
    let phone = Identifier(kind: .phone, value: "+919999999999", display: "+91 99999 99999", attributes: [:])
    let results = try await withThrowingTaskGroup(of: ApplyResult.self) { group in
      for number in 0..<30 {
        group.addTask {
          let held = HeldIdentifier(identifier: phone, verifiedAt: now)
          let account = Account(id: "ac_\(number)", createdAt: now, lastSeenAt: now, identifiers: [held])
          return try await nodes[number % 3].apply([.createAccount(account)], at: now)
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(results.count { $0 == .applied(locks: []) } == 1)
    #expect(results.count { $0 == .conflict(.identifierTaken) } == 29)
  }

  /// Attack: two people register names that look alike at the same moment, at two gateways.
  @Test func oneOfManyLookAlikesGetsTheName() async throws {
    let results = try await withThrowingTaskGroup(of: ApplyResult.self) { group in
      for number in 0..<30 {
        group.addTask {
          let text = number % 2 == 0 ? "paypal" : "paypa1"
          let name = HeldIdentifier(
            identifier: Identifier(kind: .name, value: text, display: text), verifiedAt: nil)
          let account = Account(id: "ac_\(number)", createdAt: now, lastSeenAt: now, identifiers: [name])
          return try await nodes[number % 3].apply([.createAccount(account)], at: now)
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(results.count { $0 == .applied(locks: []) } == 1)
    #expect(results.count { $0 == .conflict(.identifierTaken) } == 29)
  }

  /// Numbers of changes become visible in order: a reader of one number has missed no earlier one.
  @Test func noChangeOfASessionIsMissed() async throws {
    let account = Account(id: "ac_1", createdAt: now, lastSeenAt: now)
    let sessions = (0..<60).map { session("se_\($0)") }
    #expect(
      try await nodes[0].apply([.createAccount(account)] + sessions.map(Change.putSession), at: now)
        == .applied(locks: []))
    let start = try await nodes[2].sessionChanges(after: .max).latest
    let isOver = Mutex(false)
    async let seen = {
      var latest = start
      var seen: [TokenHash] = []
      while true {
        let isLast = isOver.withLock { $0 }
        let changes = try await nodes[2].sessionChanges(after: latest)
        #expect(!changes.isIncomplete)
        seen += changes.tokens
        latest = changes.latest
        if isLast { return seen }
      }
    }()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, session) in sessions.enumerated() {
        group.addTask {
          let result = try await nodes[number % 2].apply([.endSession(session.token)], at: now)
          #expect(result == .applied(locks: []))
        }
      }
      try await group.waitForAll()
    }
    isOver.withLock { $0 = true }
    let found = try await seen
    #expect(found.count == sessions.count && Set(found) == Set(sessions.map(\.token)))
  }

  @Test func endedSessionIsAnnouncedToOtherNodes() async throws {
    let account = Account(id: "ac_1", createdAt: now, lastSeenAt: now)
    _ = try await nodes[0].apply([.createAccount(account), .putSession(session("se_1"))], at: now)
    let (calls, call) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    nodes[1].listen { call.yield() }
    var told = calls.makeAsyncIterator()
    // The first event is sent when it begins to listen.
    await told.next()
    _ = try await nodes[0].apply([.endSession(session("se_1").token)], at: now)
    await told.next()
    #expect(nodes[1].database.metrics.count.notifications == 1)
    // A listener that lost its connection subscribes again.
    try server.sql(
      """
      SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
      WHERE datname = '\(name)' AND (query LIKE '%clock_timestamp%' OR query LIKE 'LISTEN%')
      """)
    await told.next()
    _ = try await nodes[0].apply([.setLocked(account: "ac_1", true)], at: now)
    await told.next()
    try nodes[1].close()
  }

  @Test func parallelStartsCreateOneStore() async throws {
    let url = server.url(try server.makeDatabase())
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<10 { group.addTask { try PostgresStore(url: url, keyFingerprint: [1]).close() } }
      try await group.waitForAll()
    }
  }

  /// The number of round trips of a sign-in's operations.
  @Test func roundTrips() async throws {
    let node = nodes[0]
    let limits = [limit("one"), limit("two", max: 9)]
    func trips(_ body: () async throws -> Void) async throws -> Int {
      let before = node.database.metrics.count.roundTrips
      try await body()
      return node.database.metrics.count.roundTrips - before
    }
    // The latest time is recorded once a second.
    _ = try await node.reserve(
      ReservationRequest(id: ReservationID(from: random), now: now, limits: limits, timer: nil))
    let id = ReservationID(from: random)
    let reserved = try await trips {
      _ = try await node.reserve(ReservationRequest(id: id, now: now, limits: limits, timer: nil))
    }
    #expect(reserved == 2)
    let settled = try await trips {
      let settlement = Settlement(reservation: id, outcome: .success, limits: limits, timer: nil, now: now)
      _ = try await node.apply([.settle(settlement)], at: now)
    }
    #expect(settled == 1, "a success of limits on failures reads nothing")
    let other = ReservationID(from: random)
    _ = try await node.reserve(ReservationRequest(id: other, now: now, limits: limits, timer: nil))
    let failed = try await trips {
      let settlement = Settlement(reservation: other, outcome: .failure, limits: limits, timer: nil, now: now)
      let result = try await node.apply([.settle(settlement)], reading: LedgerQuery(limits), at: now)
      guard case .applied(_, let ledgerState?) = result else { throw StoreFault("no ledgerState") }
      #expect(ledgerState.counters.map(\.settled) == [1, 1])
    }
    #expect(failed == 2, "the state at the end comes with COMMIT")
    let looked = try await trips { _ = try await node.session(TokenHash(of: [1])) }
    #expect(looked == 1)
    let changes = try await trips { _ = try await node.sessionChanges(after: .max) }
    #expect(changes == 1)
    let grant = try await trips { _ = try await node.appGrant("ag_1", at: now) }
    #expect(grant == 1, "a token of an app is judged by one")
    let nothingDue = try await trips { _ = try await node.claimAppNotices(limit: 10, until: now, at: now) }
    #expect(nothingDue == 1)
  }
}
