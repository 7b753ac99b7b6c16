import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// A signed-in user signs in again in the same browser.
@Suite struct SignInAgainTests {
  private static let phone = EngineTestBench.phone

  private func owner(_ bench: EngineTestBench) async throws -> SessionSnapshot {
    try await bench.signedIn(try await bench.pass("register", Self.phone, "911111", by: bench.client()))
  }

  private func connect(_ own: SessionSnapshot, _ bench: EngineTestBench) async throws {
    let now = bench.clock.now()
    let signIn = AppSignIn(nonce: nil, authTime: now, aal: 1, amr: [], passed: [])
    let grant = AppGrant(
      id: "ag_1", app: "grafana", account: own.account.id, session: own.session.id, sid: "sid",
      epoch: own.account.epoch, isOffline: false, scopes: ["openid"], signIn: signIn, createdAt: now, usedAt: now,
      refresh: nil, expiresAt: now + .seconds(86_400))
    let connection = AppConnection(
      account: own.account.id, app: "grafana", scopes: ["openid"], createdAt: now, usedAt: now, agreed: true)
    let changes: [Change] = [.putAppConnection(connection), .putAppGrant(grant)]
    #expect(try await bench.store.apply(changes, at: now) == .applied(locks: []))
  }

  /// Attack: session fixation by the sign-in before. The session goes on by its ID, for apps, and nothing else of it.
  @Test func theSessionGoesOnWithANewToken() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    try await connect(own, bench)
    bench.clock.advance(by: .seconds(600))
    let view = try await bench.pass("login", Self.phone, "911111", by: bench.client(session: own))
    let after = try await bench.signedIn(view).session
    #expect(after.id == own.session.id && after.token != own.session.token)
    #expect(after.createdAt == bench.clock.now() && after.passed.allSatisfy { $0.at == bench.clock.now() })
    #expect(try await bench.store.session(own.session.token) == nil)
    #expect(try await bench.store.sessions(of: own.account.id).count == 1)
    let live = try #require(try await bench.store.appGrant("ag_1", at: bench.clock.now()))
    #expect(live.grant.endedAt == nil && live.session == after)
  }

  /// The session has ended at another gateway, which this one has not heard of yet.
  @Test func anEndedSessionIsNotContinued() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    let now = bench.clock.now()
    #expect(try await bench.store.apply([.endSession(own.session.token)], at: now) == .applied(locks: []))
    let view = try await bench.pass("login", Self.phone, "911111", by: bench.client(session: own))
    #expect(try await bench.signedIn(view).session.id != own.session.id)
  }

  /// Attack: the browser of a shared computer still has the session of somebody else.
  @Test func anotherUserBeginsAnotherSession() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    try await connect(own, bench)
    let view = try await bench.pass("register", Self.phone, "922222", by: bench.client(session: own))
    #expect(try await bench.signedIn(view).session.id != own.session.id)
    #expect(try await bench.store.session(own.session.token) == nil)
    #expect(try await bench.store.appGrant("ag_1", at: bench.clock.now())?.grant.endedAt != nil)
  }

  /// Attack: a thief has tokens of an app by a copy of the session, and the owner resets the password in that browser.
  @Test func aResetBeginsAnotherSession() async throws {
    let bench = try await EngineTestBench.full()
    let client = bench.client()
    let begun = try await bench.secret(
      "register_email", ["email": "955555", "new_secret": "old"], provider: "password", by: client
    ).get()
    _ = try await bench.engine.begin(begun.id, provider: "email_code", fields: [:], client: client).get()
    await bench.engine.deliveriesEnd()
    let own = try await bench.signedIn(
      try await bench.engine.submit(begun.id, fields: ["code": .text(bench.code)], client: client).get())
    try await connect(own, bench)
    let again = bench.client(session: own)
    let id = try await bench.engine.create("password_reset", returnTo: nil, browser: nil, client: again).get().id
    _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("955555")], client: again).get()
    await bench.engine.deliveriesEnd()
    let done = try await bench.engine.submit(
      id, fields: ["code": .text(bench.code), "new_secret": .text("new")], client: again
    ).get()
    #expect(try await bench.signedIn(done).session.id != own.session.id)
    #expect(try await bench.store.appGrant("ag_1", at: bench.clock.now())?.grant.endedAt != nil)
  }
}
