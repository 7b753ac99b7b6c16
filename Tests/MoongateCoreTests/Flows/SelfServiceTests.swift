import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Export and deletion of an account by its owner (account-security.md section 3, rule 10).
@Suite struct SelfServiceTests {
  private func own() async throws -> (TestDesk, SessionSnapshot) {
    let desk = try await TestDesk.full()
    let view = try await desk.pass("register", TestDesk.mail, "911111", by: desk.client())
    return (desk, try #require(try await desk.session(view)))
  }

  @Test func anExportHoldsWhatIsStoredAndNoSecret() async throws {
    let (desk, before) = try await own()
    let set = try await desk.secret("pin_set", ["new_secret": "1357"], by: desk.client(session: before)).get()
    let new = try #require(try await desk.session(set))
    // An account with a factor of its own proves that one.
    #expect(await desk.engine.exportAccount(client: desk.client(session: new)).refusal?.code == .stepUpRequired)
    let unlocked = try await desk.secret("pin_unlock", ["secret": "1357"], by: desk.client(session: new)).get()
    let session = try #require(try await desk.session(unlocked))
    try await desk.audit.flush()
    let export = try await desk.engine.exportAccount(client: desk.client(session: session)).get()
    #expect(export.account == session.account)
    #expect(export.factors == [StoredFactor(provider: TestDesk.pin, addedAt: desk.clock.now(), changedAt: desk.clock.now())])
    #expect(export.sessions.map(\.id) == [session.session.id])
    #expect(export.events.contains { $0.kind == .accountCreated } && export.events.contains { $0.kind == .sessionStarted })
    #expect(export.events.allSatisfy { $0.account == session.account.id || $0.identifier == desk.keys.logHash("+911111") })
  }

  @Test func deletingLeavesNothingAndFreesTheAddress() async throws {
    let (desk, session) = try await own()
    try await desk.engine.deleteAccount(client: desk.client(session: session)).get()
    try await desk.audit.flush()
    #expect(try await desk.store.account(session.account.id) == nil)
    #expect(try await desk.store.session(session.session.token) == nil)
    let events = try await desk.store.events(limit: 1000)
    #expect(events.contains { $0.kind == .accountDeleted })
    #expect(!events.contains { $0.account == session.account.id })
    let again = try await desk.pass("register", TestDesk.mail, "911111", by: desk.client())
    #expect(again.account?.id != session.account.id)
    #expect(await desk.engine.deleteAccount(client: desk.client(session: session)).refusal?.code == .unauthenticated)
  }

  /// Attack: a session that was left open takes everything out, or everything away.
  @Test func bothNeedARecentProof() async throws {
    let (desk, session) = try await own()
    desk.clock.advance(by: .seconds(601))
    let client = desk.client(session: session)
    #expect(await desk.engine.exportAccount(client: client).refusal?.code == .stepUpRequired)
    #expect(await desk.engine.deleteAccount(client: client).refusal?.code == .stepUpRequired)
    #expect(try await desk.store.account(session.account.id) != nil)
    #expect(await desk.engine.exportAccount(client: desk.client()).refusal?.code == .unauthenticated)
    #expect(await desk.engine.deleteAccount(client: desk.client()).refusal?.code == .unauthenticated)
  }

  /// Attack: somebody guesses at an address, claims it, and deletes the claim, and with it every trace of the guessing.
  @Test func whoeverDeletesAClaimLeavesTheTracesOfOthers() async throws {
    let desk = try await TestDesk.full()
    _ = try await desk.claim("911111", "ashas")
    #expect(await desk.logIn("911111", "guess").refusal != nil)
    desk.clock.advance(by: .seconds(1))
    let mallory = try #require(try await desk.session(try await desk.claim("911111", "mallorys")))
    try await desk.audit.flush()
    let hash = desk.keys.logHash("+911111")
    let before = try await desk.store.events(limit: 1000).count { $0.identifier == hash && $0.kind == .refused }
    #expect(before > 0)
    try await desk.engine.deleteAccount(client: desk.client(session: mallory)).get()
    #expect(try await desk.store.events(limit: 1000).count { $0.identifier == hash && $0.kind == .refused } == before)
    #expect(try await desk.logIn("911111", "ashas").get().status == .complete)
  }

  @Test func aChangedNameIsAnEventWithoutTheName() async throws {
    let (desk, session) = try await own()
    let client = desk.client(session: session)
    try await desk.engine.renameAccount(first: "Asha", last: "Rao", client: client).get()
    #expect(await desk.engine.renameAccount(first: " ", last: nil, client: client).refusal?.code == .invalidInput)
    #expect(await desk.engine.renameAccount(first: "Mallory", last: nil, client: desk.client()).refusal?.code == .unauthenticated)
    let found = try #require(try await desk.store.session(session.session.token))
    try await desk.engine.renameAccount(first: "Asha", last: "Rao", client: desk.client(session: found)).get()
    try await desk.audit.flush()
    let events = try await desk.store.events(limit: 1000).filter { $0.kind == .accountRenamed }
    #expect(events.map(\.account) == [session.account.id], "the same name once more changes nothing")
    let event = try #require(events.first)
    #expect(event.address != nil && event.detail.isEmpty && !String(decoding: event.json, as: UTF8.self).contains("Asha"))
    #expect(try await desk.engine.exportAccount(client: desk.client(session: found)).get().events.contains { $0.kind == .accountRenamed })
  }

  /// Attack: a session renames its account without end, to flush sign-ins and locks out of the trail or to fill the log.
  @Test func changedNamesTakeNoRoomOfSecurityEvents() {
    #expect(AuditEvent.Kind.accountRenamed.quota == .activity && !AuditEvent.Kind.accountRenamed.isSecurityEvent)
  }

  @Test func signingOutEverywhereElseKeepsThisSession() async throws {
    let (desk, session) = try await own()
    let other = try #require(try await desk.session(try await desk.pass("login", TestDesk.mail, "911111", by: desk.client())))
    let ending = SessionEnding(store: desk.store, clock: desk.clock, random: SystemRandom())
    try await ending.endAll(of: session.account.id, except: session.session, by: .unspecified)
    #expect(try await desk.store.session(session.session.token) != nil)
    #expect(try await desk.store.session(other.session.token) == nil)
    try await ending.endAll(of: session.account.id, by: .unspecified)
    #expect(try await desk.store.sessions(of: session.account.id).isEmpty)
  }
}
