import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// A link by which the owner of an account sets a new password, made by an operator.
@Suite struct ResetLinkTests {
  /// An account with a name and a password, and the link for it.
  private func link(_ bench: EngineTestBench, lasting lifetime: Duration = .seconds(3600)) async throws -> (
    account: String, flow: FlowID
  ) {
    let begun = try await bench.secret(
      "register_email", ["name": "asha", "new_secret": "old"], provider: "password", by: bench.client()
    ).get()
    let account = try #require(try await bench.engine.skip(begun.id, client: bench.client()).get().account?.id)
    return (account, try await another(bench, account, lasting: lifetime))
  }

  private func another(_ bench: EngineTestBench, _ account: String, lasting lifetime: Duration = .seconds(3600))
    async throws -> FlowID
  {
    let made = try #require(
      try await bench.engine.makeResetLink(
        "password", of: account, lasting: lifetime, by: OperatorIdentity(name: "ravi", tool: "test"),
        client: bench.client()))
    await bench.engine.deliveriesEnd()
    return FlowID(text: String(try #require(made.address.split(separator: "id=").last)))
  }

  private func set(_ bench: EngineTestBench, _ flow: FlowID, _ secret: String, by client: ClientContext? = nil) async
    -> Result<FlowView, Refusal>
  {
    await bench.engine.begin(
      flow, provider: "password", fields: ["new_secret": .text(secret)], client: client ?? bench.client())
  }

  private func signIn(_ bench: EngineTestBench, _ secret: String) async -> Result<FlowView, Refusal> {
    await bench.secret("login_password", ["name": "asha", "secret": secret], provider: "password", by: bench.client())
  }

  @Test func linkSetsAPasswordOnceAndOpensNoSession() async throws {
    let bench = try await EngineTestBench.full(takesNames: true)
    let (account, flow) = try await link(bench)
    #expect(await signIn(bench, "old").refusal?.code == .invalidPIN, "the old one is gone at once")
    let page = bench.client(browser: TokenHash(of: [1]), at: .page)
    #expect(try await bench.engine.view(flow, client: page).get().choices == ["password"])
    let done = try await set(bench, flow, "new", by: page).get()
    #expect(done.status == .complete && done.session == nil && done.account == nil && done.next == PagePath.signIn)
    #expect(try await bench.store.sessions(of: account).isEmpty)
    #expect(try await bench.store.account(account)?.devices == [])
    #expect(try await signIn(bench, "new").get().account?.id == account)
    // Attack: somebody finds the link later, in a mailbox or a log.
    #expect(await set(bench, flow, "mallorys").refusal?.code == .stepNotOpen)
    #expect(try await signIn(bench, "new").get().status == .complete)
  }

  /// Attack: an old link. It works no longer than its time, and not after another one was made.
  @Test func linkEndsWithItsTimeAndWithTheNextOne() async throws {
    let bench = try await EngineTestBench.full(takesNames: true)
    let (account, first) = try await link(bench)
    let second = try await another(bench, account, lasting: .seconds(600))
    #expect(await set(bench, first, "mallorys").refusal?.code == .flowExpired)
    bench.clock.advance(by: .seconds(600))
    #expect(await set(bench, second, "ashas").refusal?.code == .flowExpired)
    #expect(await signIn(bench, "ashas").refusal?.code == .invalidPIN)
  }

  /// Attack: an operator locks an account whose link has been stolen.
  @Test func linkEndsWithALock() async throws {
    let bench = try await EngineTestBench.full(takesNames: true)
    let (account, flow) = try await link(bench)
    _ = try await bench.store.apply(
      [.setLocked(account: account, true), .raiseEpoch(account: account)], at: bench.clock.now())
    #expect(await set(bench, flow, "mallorys").refusal != nil)
    _ = try await bench.store.apply([.setLocked(account: account, false)], at: bench.clock.now())
    #expect(await set(bench, flow, "mallorys").refusal?.code == .flowExpired)
  }

  /// Attack: the store's owner reads the link there, or an operator makes one without a trace.
  @Test func linkIsNotStoredAndItsMakingIsAnEvent() async throws {
    let bench = try await EngineTestBench.full(takesNames: true)
    let (account, flow) = try await link(bench)
    let record = try #require(try await bench.store.flow(flow.hash))
    #expect(!String(decoding: record.json, as: UTF8.self).contains(flow.secret.reveal()))
    let event = try #require(try await bench.store.events(limit: 20).first { $0.kind == .factorRemoved })
    #expect(event.account == account && event.detail["operator"] == "ravi")
    #expect(event.detail["reason"]?.hasPrefix("reset by an operator, with a link until ") ?? false)
    #expect(!event.detail.values.contains { $0.contains(flow.secret.reveal()) })
  }

  /// Attack: the holder of a link takes another step than the one that it is for, or skips it.
  @Test func linkIsForItsOneStep() async throws {
    let bench = try await EngineTestBench.full(takesNames: true)
    let (_, flow) = try await link(bench)
    #expect(await bench.engine.skip(flow, client: bench.client()).refusal != nil)
    let other = await bench.engine.begin(
      flow, provider: "email_code", fields: ["phone": .text("911111")], client: bench.client())
    #expect(other.refusal != nil)
    let name = await bench.engine.begin(
      flow, provider: "password", fields: ["name": .text("bina"), "new_secret": .text("x")], client: bench.client())
    #expect(name.refusal?.code == .denied)
  }

  /// Attack: wrong passwords at a name lock its owner out, also after an operator has reset the password.
  @Test func resetEndsTheLocksOfTheName() async throws {
    let bench = try await EngineTestBench.full(takesNames: true)
    let (account, _) = try await link(bench)
    for _ in 0..<3 { _ = await signIn(bench, "wrong") }
    #expect(await signIn(bench, "wrong").refusal?.code == .tooManyAttempts)
    #expect(try await set(bench, try await another(bench, account), "new").get().status == .complete)
    #expect(try await signIn(bench, "new").get().account?.id == account)
  }

  /// An operator helps a user who must replace the password, and who can pass nothing else that the account holds.
  @Test func linkEndsADemandedChange() async throws {
    let bench = try await EngineTestBench.full(takesNames: true)
    let (account, flow) = try await link(bench)
    #expect(try await set(bench, flow, "old").get().status == .complete)
    _ = try await bench.store.apply(
      [.setDueChange(account: account, "password", .weak)], at: bench.clock.now())
    #expect(try await signIn(bench, "old").get().status == .pending)
    let next = try await another(bench, account)
    #expect(try await bench.store.account(account)?.dueChanges == [:])
    #expect(try await set(bench, next, "new").get().status == .complete)
    #expect(try await signIn(bench, "new").get().status == .complete)
  }

  /// Attack: wrong passwords at the name, between the making of a link and its use, lock the new password.
  @Test func useOfALinkEndsTheLocksOfTheName() async throws {
    let bench = try await EngineTestBench.full(takesNames: true)
    let (account, flow) = try await link(bench)
    for _ in 0..<3 { _ = await signIn(bench, "wrong") }
    #expect(await signIn(bench, "wrong").refusal?.code == .tooManyAttempts)
    #expect(try await set(bench, flow, "new").get().status == .complete)
    #expect(try await signIn(bench, "new").get().account?.id == account)
  }

  /// Attack: the thief of a link is signed in to an account of their own and has just proved a PIN there. The owner has
  /// one too, so the new password would count for more than the link that set it.
  @Test func proofOfAnotherAccountMakesNoNewPasswordCount() async throws {
    let bench = try await EngineTestBench.full(takesNames: true)
    let (account, _) = try await link(bench)
    _ = try await bench.store.apply(
      [.putProviderRecord(account: account, EngineTestBench.pin, sealed: [1])], at: bench.clock.now())
    let flow = try await another(bench, account)
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "922222", by: bench.client()))
    let made = try await bench.signedIn(
      try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: own)).get())
    let thief = try await bench.signedIn(
      try await bench.secret("step_up", ["secret": "1"], by: bench.client(session: made)).get())
    #expect(thief.session.assuranceLevel == 2)
    let done = try await set(bench, flow, "mallorys", by: bench.client(session: thief)).get()
    #expect(done.status == .complete)
    #expect(try await bench.store.account(account)?.resets["password"] == bench.clock.now())
  }

  /// A link of an operator belongs to no network, so its user has not changed the network.
  @Test func linkHasNoChangeOfNetwork() async throws {
    let bench = try await EngineTestBench.full(takesNames: true)
    let (_, flow) = try await link(bench)
    let request = RequestContext(client: bench.client(), now: bench.clock.now(), generation: bench.generations.current)
    let loaded = try await bench.engine.storage.load(flow, request)
    let facts = bench.engine.parts.policies.facts(loaded, subject: nil, account: nil)
    #expect(!facts.client.networkChanged)
  }

  @Test func linkWorksForAnAccountWithoutAPassword() async throws {
    let bench = try await EngineTestBench.full(takesNames: true)
    let account = Account(
      id: "ac_1", createdAt: bench.clock.now(), lastSeenAt: bench.clock.now(),
      identifiers: [
        HeldIdentifier(identifier: Identifier(kind: .name, value: "asha", display: "asha"), verifiedAt: nil)
      ])
    _ = try await bench.store.apply([.createAccount(account)], at: bench.clock.now())
    #expect(try await set(bench, try await another(bench, "ac_1"), "new").get().status == .complete)
    #expect(try await signIn(bench, "new").get().account?.id == "ac_1")
    let unknown = try await bench.engine.makeResetLink(
      "password", of: "ac_2", lasting: .seconds(60), by: OperatorIdentity(name: "ravi", tool: "test"),
      client: bench.client())
    #expect(unknown == nil)
  }
}
