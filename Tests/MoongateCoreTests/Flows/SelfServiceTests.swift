import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Export and deletion of an account by its owner.
@Suite struct SelfServiceTests {
  private func own() async throws -> (EngineTestBench, SessionSnapshot) {
    let bench = try await EngineTestBench.full()
    let view = try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client())
    return (bench, try #require(try await bench.session(view)))
  }

  @Test func exportContainsStoredDataWithoutSecrets() async throws {
    let (bench, before) = try await own()
    let set = try await bench.secret("pin_set", ["new_secret": "1357"], by: bench.client(session: before)).get()
    let new = try #require(try await bench.session(set))
    // An account with a factor of its own has to prove that factor.
    #expect(await bench.engine.exportAccount(client: bench.client(session: new)).refusal?.code == .stepUpRequired)
    let unlocked = try await bench.secret("pin_unlock", ["secret": "1357"], by: bench.client(session: new)).get()
    let session = try #require(try await bench.session(unlocked))
    try await bench.audit.flush()
    let export = try await bench.engine.exportAccount(client: bench.client(session: session)).get()
    #expect(export.account == session.account)
    #expect(
      export.factors == [
        StoredFactor(provider: EngineTestBench.pin, addedAt: bench.clock.now(), changedAt: bench.clock.now())
      ])
    #expect(export.sessions.map(\.id) == [session.session.id])
    #expect(
      export.events.contains { $0.kind == .accountCreated } && export.events.contains { $0.kind == .sessionStarted })
    #expect(
      export.events.allSatisfy { $0.account == session.account.id || $0.identifier == bench.keys.logHash("+911111") })
  }

  @Test func deletionRemovesTheAccountAndFreesTheAddress() async throws {
    let (bench, session) = try await own()
    try await bench.engine.deleteAccount(client: bench.client(session: session)).get()
    try await bench.audit.flush()
    #expect(try await bench.store.account(session.account.id) == nil)
    #expect(try await bench.store.session(session.session.token) == nil)
    let events = try await bench.store.events(limit: 1000)
    #expect(events.contains { $0.kind == .accountDeleted })
    #expect(!events.contains { $0.account == session.account.id })
    let again = try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client())
    #expect(again.account?.id != session.account.id)
    #expect(await bench.engine.deleteAccount(client: bench.client(session: session)).refusal?.code == .unauthenticated)
  }

  /// Attack: a session that was left open exports the account, or deletes it.
  @Test func exportAndDeletionNeedARecentProof() async throws {
    let (bench, session) = try await own()
    bench.clock.advance(by: .seconds(601))
    let client = bench.client(session: session)
    #expect(await bench.engine.exportAccount(client: client).refusal?.code == .stepUpRequired)
    #expect(await bench.engine.deleteAccount(client: client).refusal?.code == .stepUpRequired)
    #expect(try await bench.store.account(session.account.id) != nil)
    #expect(await bench.engine.exportAccount(client: bench.client()).refusal?.code == .unauthenticated)
    #expect(await bench.engine.deleteAccount(client: bench.client()).refusal?.code == .unauthenticated)
  }

  /// Attack: somebody guesses at an address, claims it, and deletes the claim to erase every trace of the guessing.
  @Test func deletingAClaimKeepsFailedAttempts() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.claim("911111", "ashas")
    #expect(await bench.logIn("911111", "guess").refusal != nil)
    bench.clock.advance(by: .seconds(1))
    let mallory = try #require(try await bench.session(try await bench.claim("911111", "mallorys")))
    try await bench.audit.flush()
    let hash = bench.keys.logHash("+911111")
    let before = try await bench.store.events(limit: 1000).count { $0.identifier == hash && $0.kind == .refused }
    #expect(before > 0)
    try await bench.engine.deleteAccount(client: bench.client(session: mallory)).get()
    #expect(try await bench.store.events(limit: 1000).count { $0.identifier == hash && $0.kind == .refused } == before)
    #expect(try await bench.logIn("911111", "ashas").get().status == .complete)
  }

  @Test func aChangedNameIsAnEventWithoutTheName() async throws {
    let (bench, session) = try await own()
    let client = bench.client(session: session)
    try await bench.engine.renameAccount(first: "Asha", last: "Rao", client: client).get()
    #expect(await bench.engine.renameAccount(first: " ", last: nil, client: client).refusal?.code == .invalidInput)
    #expect(
      await bench.engine.renameAccount(first: "Mallory", last: nil, client: bench.client()).refusal?.code
        == .unauthenticated)
    let found = try #require(try await bench.store.session(session.session.token))
    try await bench.engine.renameAccount(first: "Asha", last: "Rao", client: bench.client(session: found)).get()
    try await bench.audit.flush()
    let events = try await bench.store.events(limit: 1000).filter { $0.kind == .accountRenamed }
    #expect(events.map(\.account) == [session.account.id], "the same name once more changes nothing")
    let event = try #require(events.first)
    #expect(event.address != nil && event.detail == ["request": client.decision.text])
    #expect(!String(decoding: event.json, as: UTF8.self).contains("Asha"))
    #expect(
      try await bench.engine.exportAccount(client: bench.client(session: found)).get().events.contains {
        $0.kind == .accountRenamed
      })
  }

  /// Attack: a session renames its account without end. Each change is a write and an event in the trail.
  @Test func anAccountIsRenamedTwentyTimesAnHour() async throws {
    let (bench, session) = try await own()
    var token = session.session.token
    func rename(_ name: String) async throws -> Refusal? {
      let found = try #require(try await bench.store.session(token))
      return await bench.engine.renameAccount(first: name, last: nil, client: bench.client(session: found)).refusal
    }
    for number in 0..<20 { #expect(try await rename("Asha \(number)") == nil) }
    let refused = try #require(try await rename("Mallory"))
    #expect(refused.code == .rateLimited && refused.retryAfter == .seconds(3600))
    #expect(try await bench.store.account(session.account.id)?.firstName == "Asha 19")
    #expect(try await rename("Asha 19") == nil, "what changes nothing is not counted")
    bench.clock.advance(by: .seconds(3600))
    let again = try await bench.session(
      try await bench.pass("login", EngineTestBench.mail, "911111", by: bench.client()))
    token = try #require(again).session.token
    #expect(try await rename("Asha") == nil)
  }

  // MARK: a site is disconnected

  /// Attack: a session that has passed a site, or a copy of its token, still enters routes that require it after the
  /// account was disconnected from the site.
  @Test func aDisconnectedSiteIsForgottenAndTheTokenIsNew() async throws {
    let bench = try await EngineTestBench.full()
    let first = try #require(
      try await bench.session(try await bench.google(sub: "asha", email: "911111", by: bench.client()).get()))
    let other = try #require(try await bench.session(try await bench.google(sub: "asha", by: bench.client()).get()))
    let own = try #require(
      try await bench.session(
        try await bench.pass("step_up", EngineTestBench.mail, nil, by: bench.client(session: other)))
    )
    #expect(
      own.session.passed.map(\.provider) == ["google_oauth", EngineTestBench.mail] && own.session.assuranceLevel == 2)
    let client = bench.client(session: own)
    let token = try #require(try await bench.engine.disconnect("google_oauth", client: client).get()?.token)
    #expect(try await bench.store.session(own.session.token) == nil)
    #expect(try await bench.store.session(first.session.token) == nil)
    let left = try #require(try await bench.store.session(TokenHash(of: token.reveal().utf8)))
    #expect(left.session.id == own.session.id && left.session.expiresAt == own.session.expiresAt)
    #expect(left.session.passed.map(\.provider) == [EngineTestBench.mail] && left.session.assuranceLevel == 1)
    #expect(left.account.identifiers.map(\.identifier.kind) == [.email])
    // The second time there is nothing to remove, and the token stays.
    #expect(try await bench.engine.disconnect("google_oauth", client: bench.client(session: left)).get() == nil)
    #expect(try await bench.store.session(left.session.token) != nil)
    try await bench.audit.flush()
    let event = try #require(try await bench.store.events(limit: 100).first { $0.kind == .identifierRemoved })
    #expect(event.detail["request"] == client.decision.text && event.provider == "google_oauth")
  }

  /// Attack: a stolen session removes the sign-in method that the owner uses, and the owner is not notified.
  @Test func ownerReceivesANoticeOfADisconnectedSite() async throws {
    let bench = try await EngineTestBench.full()
    let own = try #require(
      try await bench.session(try await bench.google(sub: "asha", email: "911111", by: bench.client()).get()))
    await bench.engine.deliveriesEnd()
    let before = bench.delivery.notices.count
    _ = try await bench.engine.disconnect("google_oauth", client: bench.client(session: own)).get()
    await bench.engine.deliveriesEnd()
    let notices = bench.delivery.notices.dropFirst(before)
    #expect(notices.map(\.to) == ["+911111"])
    #expect(notices.first?.text.contains("\"google_oauth\" was disconnected from your account") == true)
  }

  /// Attack, or mistake: the only sign-in method is removed. Attack: a session that was left open removes one.
  @Test func aSiteIsDisconnectedOnlyAfterAProofAndBesideAnotherWay() async throws {
    let bench = try await EngineTestBench.full()
    let only = try #require(
      try await bench.session(
        try await bench.google(sub: "asha", email: "911111", verified: false, by: bench.client()).get()))
    #expect(await bench.engine.disconnect("google_oauth", client: bench.client(session: only)).refusal?.code == .denied)
    let ravi = try #require(
      try await bench.session(try await bench.google(sub: "ravi", email: "922222", by: bench.client()).get()))
    bench.clock.advance(by: .seconds(601))
    #expect(
      await bench.engine.disconnect("google_oauth", client: bench.client(session: ravi)).refusal?.code
        == .stepUpRequired)
    #expect(try await bench.store.session(ravi.session.token) != nil)
  }

  /// Attack: a session renames its account without end, to push sign-ins and locks out of the trail or to fill the log.
  @Test func changedNamesTakeNoRoomOfSecurityEvents() {
    #expect(AuditEvent.Kind.accountRenamed.quota == .activity && !AuditEvent.Kind.accountRenamed.isSecurityEvent)
  }

  @Test func signingOutEverywhereElseKeepsThisSession() async throws {
    let (bench, session) = try await own()
    let other = try #require(
      try await bench.session(try await bench.pass("login", EngineTestBench.mail, "911111", by: bench.client())))
    let client = bench.client(session: session)
    try await bench.engine.signOutEverywhere(keepsOwn: true, client: client).get()
    #expect(try await bench.store.session(session.session.token) != nil)
    #expect(try await bench.store.session(other.session.token) == nil)
    try await bench.engine.signOutEverywhere(keepsOwn: false, client: client).get()
    #expect(try await bench.store.sessions(of: session.account.id).isEmpty)
  }
}
