import Foundation
import GRDB
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

/// Several processes on one file, each with its own connections; here each is a store of its own.
@Suite struct SharedFileTests {
  let folder: ScratchFolder
  let one: SQLiteStore
  let two: SQLiteStore
  let now = ManualClock.start
  let random = SeededRandom(seed: 3)

  init() throws {
    folder = try ScratchFolder()
    one = try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1])
    two = try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1])
  }

  @Test func fiveOfTwoHundredOverBoth() async throws {
    let limit = ResolvedLimit(
      provider: ProviderName(test: "phone_otp"), name: "verify", key: .identifier, counter: [1], max: 5,
      window: .seconds(60), counts: .failures,
      lock: [], disables: false)
    let reserved = try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<200 {
        group.addTask {
          let request = ReservationRequest(id: ReservationID(from: random), now: now, limits: [limit], timer: nil)
          if case .reserved = try await (number % 2 == 0 ? one : two).reserve(request) { return true }
          return false
        }
      }
      return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(reserved == 5)
  }

  @Test func endedSessionIsSeenByTheOtherProcess() async throws {
    let account = Account(id: "ac_1", createdAt: now, lastSeenAt: now)
    let session = Session(
      id: "se_1", token: TokenHash(of: "t".utf8), account: "ac_1", createdAt: now, expiresAt: now + .seconds(60),
      idle: .seconds(60), lastSeenAt: now,
      passed: [], userAgent: nil)
    _ = try await one.apply([.createAccount(account), .putSession(session)], at: now)
    #expect(try await two.session(session.token) == SessionSnapshot(session: session, account: account))
    let start = try await two.sessionChanges(after: .max).latest
    _ = try await one.apply([.endSession(session.token)], at: now)
    #expect(try await two.sessionChanges(after: start).tokens == [session.token])
    #expect(try await two.session(session.token) == nil)
  }

  @Test func parallelStartsCreateOneStore() async throws {
    let path = folder.path("fresh.db")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 { group.addTask { try SQLiteStore(path: path, keyFingerprint: [1]).close() } }
      try await group.waitForAll()
    }
  }

  @Test func aTransactionOfAnotherProcessIsWaitedFor() async throws {
    let other = try DatabaseQueue(path: folder.path("moongate.db"))
    let (begun, announce) = AsyncStream.makeStream(of: Void.self)
    async let holding: Void = other.writeWithoutTransaction { db in
      try db.execute(sql: "BEGIN IMMEDIATE")
      announce.yield()
      // Far less than the time for which a writer waits, also on a busy machine.
      usleep(50_000)
      try db.execute(sql: "COMMIT")
    }
    for await _ in begun { break }
    #expect(try await one.apply([.clearTimer([1])], at: now) == .applied(locks: []))
    try await holding
  }
}
