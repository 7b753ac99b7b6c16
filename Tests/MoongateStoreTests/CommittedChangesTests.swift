import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

/// A process drops from its caches what it ended itself, before the caller is answered.
@Suite struct CommittedChangesTests {
  private static let address = Identifier(kind: .email, value: "asha@example.com", display: "asha@example.com")
  private static let now = Timestamp(milliseconds: 1_000_000)

  /// Every change that ends a session.
  private static let endings: [(name: String, change: Change)] = [
    ("signing out", .endSession(session("old").token)),
    ("signing out elsewhere", .endSessions(account: "ac_1", except: nil)),
    ("an operator's lock", .setLocked(account: "ac_1", true)),
    ("a new token", .replaceSession(session("old").token, by: session("new"))),
    ("deletion", .deleteAccount("ac_1", traces: [])),
    ("a changed passcode", .putProviderRecord(account: "ac_1", "pin", sealed: [2])),
    ("somebody else's proof of the address", .verifyIdentifier(account: "ac_2", address)),
    ("joining another account", .absorbAccount("ac_1", into: "ac_2")),
  ]

  private static func session(_ token: String) -> Session {
    Session(
      id: "se_1", token: TokenHash(of: token.utf8), account: "ac_1", createdAt: now, expiresAt: now + .seconds(3600),
      idle: .seconds(3600),
      lastSeenAt: now, passed: [], userAgent: nil)
  }

  @Test(arguments: endings.indices) func everySessionEndIsReportedBeforeApplyReturns(_ index: Int) async throws {
    let ending = Self.endings[index]
    let store = try SQLiteStore(path: ":memory:", keyFingerprint: [1])
    let accounts = ["ac_1", "ac_2"].map { id in
      Account(
        id: id, createdAt: Self.now, lastSeenAt: Self.now,
        identifiers: id == "ac_1" ? [HeldIdentifier(identifier: Self.address, verifiedAt: nil)] : [])
    }
    let before = try await store.apply(
      accounts.map { Change.createAccount($0) } + [.putSession(Self.session("old"))], at: Self.now)
    #expect(before == .applied(locks: []))
    let told = Mutex<[SessionChanges]>([])
    store.memory.committed.subscribe { changes in
      // A slow subscriber is waited for.
      for _ in 0..<100 { await Task.yield() }
      told.withLock { $0.append(changes) }
    }
    #expect(try await store.apply([ending.change], at: Self.now) == .applied(locks: []), "\(ending.name)")
    let changes = told.withLock { $0 }
    #expect(changes.count == 1, "\(ending.name)")
    #expect(
      changes.allSatisfy { $0.tokens.contains(Self.session("old").token) || $0.accounts.contains("ac_1") },
      "\(ending.name)")
    try store.close()
  }

  @Test func failedTransactionNotifiesNoListener() async throws {
    let store = try SQLiteStore(path: ":memory:", keyFingerprint: [1])
    let told = Mutex(0)
    store.memory.committed.subscribe { _ in told.withLock { $0 += 1 } }
    let result = try await store.apply(
      [.endSessions(account: "ac_1", except: nil), .setLocked(account: "ac_1", true)], at: Self.now)
    #expect(result == .conflict(.accountUnavailable))
    #expect(told.withLock { $0 } == 0)
    try store.close()
  }
}
