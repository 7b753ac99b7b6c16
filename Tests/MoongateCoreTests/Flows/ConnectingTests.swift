import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// A federated provider that identifies users by `sub`; without `sub` it proves only an address.
private struct ToySite: FullProvider {
  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: "other_site", beginFields: [], submitFields: [InputField(name: "sub", kind: .text, isRequired: false)],
      settings: [],
      policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [.federated, .email])
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .redirect(to: "https://other.example/", state: [])
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    guard let sub = try input.optionalText("sub") else {
      return .proved(Proof(proved: [Identifier(kind: .email, value: "+944444", display: "+944444")]))
    }
    return .proved(Proof(proved: [Identifier(kind: .federated, value: "other_site \(sub)", display: sub)]))
  }
}

/// Connecting an account with a federated identity (purpose `join`).
@Suite struct ConnectingTests {
  private static func bench() async throws -> EngineTestBench {
    try await EngineTestBench(others: [ToySecret(name: EngineTestBench.pin), ToyGoogle(), ToySite()]) { generation in
      generation.flows["connect"] = .test(
        "connect", purpose: .join(.federated), account: .existing, steps: [.test(EngineTestBench.google)])
      generation.flows["connect_other"] = .test(
        "connect_other", purpose: .join(.federated), account: .existing, steps: [.test("other_site")])
      generation.flows["pin_set"] = .test("pin_set", account: .existing, steps: [.test(EngineTestBench.pin)])
      generation.flows["change_phone"] = .test(
        "change_phone", account: .existing, steps: [.test(EngineTestBench.phone)])
      generation.flows["step_up"] = .test(
        "step_up", account: .existing, steps: [.test(EngineTestBench.phone, EngineTestBench.pin)])
      for name in ["register", "login", "enter"] {
        generation.flows[name] = .test(
          name, account: name == "login" ? .existing : name == "enter" ? .any : .new,
          steps: [.test(EngineTestBench.phone, EngineTestBench.google)])
      }
      generation.policies[EngineTestBench.phone] = .test(EngineTestBench.phone, resendAfter: [])
    }
  }

  /// A session that has just registered by a number.
  private static func owner(_ bench: EngineTestBench, _ phone: String = "911111") async throws -> SessionSnapshot {
    try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.phone, phone, by: bench.client())))
  }

  /// Begins a flow that waits for the return from the site.
  private static func begun(_ bench: EngineTestBench, _ flow: String = "connect", by client: ClientContext) async throws
    -> FlowID
  {
    let id = try await bench.engine.create(flow, returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(
      id, provider: flow == "connect" ? "google_oauth" : "other_site", fields: [:], client: client
    ).get()
    return id
  }

  private static func identities(of account: String, _ bench: EngineTestBench) async throws -> [String] {
    try #require(try await bench.store.account(account)).identifiers.filter { $0.identifier.kind == .federated }.map(
      \.identifier.value)
  }

  /// Attack: the address of the identity is added too, and codes to it open the account from then on.
  @Test(arguments: ["verified", "attested", "claimed"]) func connectingAddsOnlyTheIdentity(address: String) async throws
  {
    let bench = try await Self.bench()
    let own = try await Self.owner(bench)
    let done = try await bench.google(
      "connect", sub: "asha", email: "922222", verified: address != "claimed", attested: address == "attested",
      by: bench.client(session: own)
    ).get()
    #expect(done.status == .complete)
    let account = try #require(try await bench.store.account(own.account.id))
    #expect(account.identifiers.map(\.identifier.value) == ["+911111", "https://google.example asha"])
    #expect(account.firstName == nil && account.lastName == nil, "nor does the name")
    #expect(
      try await bench.google(sub: "asha", by: bench.client()).get().account?.id == own.account.id,
      "from then on it signs in")
  }

  @Test func sessionGetsANewTokenWithoutAFactor() async throws {
    let bench = try await Self.bench()
    let own = try await Self.owner(bench)
    let done = try await bench.google("connect", sub: "asha", by: bench.client(session: own)).get()
    let after = try #require(try await bench.session(done))
    #expect(after.session.id == own.session.id && after.session.token != own.session.token)
    #expect(
      after.session.passed.map(\.provider) == [EngineTestBench.phone],
      "an identity that is new to the account proves nothing of it")
    #expect(after.account.epoch == own.account.epoch, "what is added ends no other session")
  }

  @Test func ownerReceivesANotice() async throws {
    let bench = try await Self.bench()
    let own = try await Self.owner(bench)
    _ = try await bench.google("connect", sub: "asha", by: bench.client(session: own)).get()
    await bench.engine.deliveriesEnd()
    #expect(bench.delivery.notices.map(\.to) == ["+911111"])
    #expect(bench.delivery.notices.first?.text.contains("\"google_oauth\" was connected to your account") == true)
    let events = try await bench.store.events(about: own.account.id, traces: [], limit: 50).filter {
      $0.kind == .identifierAdded
    }
    #expect(
      events.map(\.provider) == [EngineTestBench.google] && events.map { $0.detail["identifier_kind"] } == ["federated"]
    )
  }

  /// Attack: the thief connects an identity that belongs to another account, to take over that identity or that
  /// account.
  @Test func identityOfAnotherAccountIsRefused() async throws {
    let bench = try await Self.bench()
    let victim = try #require(
      try await bench.google("register", sub: "asha", email: "922222", by: bench.client()).get().account)
    let thief = try await Self.owner(bench)
    let refusal = try await bench.google("connect", sub: "asha", email: "922222", by: bench.client(session: thief))
      .refusal
    #expect(
      refusal?.code == .alreadyRegistered
        && refusal?.detail == "This identity belongs to another account here. Nothing was changed.")
    #expect(try await Self.identities(of: thief.account.id, bench).isEmpty)
    let kept = try await Self.identities(of: victim.id, bench)
    #expect(kept == ["https://google.example asha"], "neither moved nor absorbed")
    #expect(try await bench.google(sub: "asha", by: bench.client()).get().account?.id == victim.id)
  }

  /// Attack: a session that was left open, or stolen, gets a sign-in method of the thief's own.
  @Test func connectingNeedsARecentProof() async throws {
    let bench = try await Self.bench()
    let own = try await Self.owner(bench)
    let id = try await bench.engine.create("connect", returnTo: nil, browser: nil, client: bench.client(session: own))
      .get().id
    bench.clock.advance(by: .seconds(601))
    let late = bench.client(session: own)
    #expect(
      await bench.engine.create("connect", returnTo: nil, browser: nil, client: late).refusal?.code == .stepUpRequired)
    #expect(
      await bench.engine.begin(id, provider: "google_oauth", fields: [:], client: late).refusal?.code == .stepUpRequired
    )
    #expect(
      await bench.engine.create("connect", returnTo: nil, browser: nil, client: bench.client()).refusal?.code
        == .unauthenticated)
  }

  /// Attack: the thief's flow waits until the owner has protected the account with a PIN.
  @Test func aFactorThatIsSetMeanwhileIsAskedFor() async throws {
    let bench = try await Self.bench()
    let own = try await Self.owner(bench)
    let id = try await Self.begun(bench, by: bench.client(session: own))
    let other = try #require(
      try await bench.session(try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())))
    _ = try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: other)).get()
    let now = try #require(try await SessionDirectory(store: bench.store, clock: bench.clock).find(own.session.token))
    let refusal = await bench.engine.submit(id, fields: ["sub": .text("mallory")], client: bench.client(session: now))
      .refusal
    #expect(refusal?.code == .stepUpRequired && refusal?.provider == EngineTestBench.pin)
    #expect(try await Self.identities(of: own.account.id, bench).isEmpty)
  }

  /// Attack: the owner is tricked into finishing a flow of the thief's session, with an identity of either of them.
  @Test func onlyTheSessionThatBeganItFinishesIt() async throws {
    let bench = try await Self.bench()
    let own = try await Self.owner(bench)
    let stranger = try await Self.owner(bench, "922222")
    let again = try #require(
      try await bench.session(try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())))
    let id = try await Self.begun(bench, by: bench.client(session: own))
    for client in [bench.client(), bench.client(session: stranger), bench.client(session: again)] {
      #expect(
        await bench.engine.submit(id, fields: ["sub": .text("asha")], client: client).refusal?.code == .unauthenticated)
    }
    for account in [own, stranger] { #expect(try await Self.identities(of: account.account.id, bench).isEmpty) }
    #expect(
      try await bench.engine.submit(id, fields: ["sub": .text("asha")], client: bench.client(session: own)).get().status
        == .complete)
  }

  /// Attack: the owner changes the number because of the thief, whose flow is still open.
  @Test func accountChangeEndsAPendingConnection() async throws {
    let bench = try await Self.bench()
    let own = try await Self.owner(bench)
    let id = try await Self.begun(bench, by: bench.client(session: own))
    let changed = try #require(
      try await bench.session(
        try await bench.pass("change_phone", EngineTestBench.phone, "933333", by: bench.client(session: own))))
    let refusal = await bench.engine.submit(id, fields: ["sub": .text("asha")], client: bench.client(session: changed))
      .refusal
    #expect(refusal?.code == .flowExpired)
    #expect(try await Self.identities(of: own.account.id, bench).isEmpty)
  }

  /// Attack: a second identity of the site lets somebody else in while the owner sees only one.
  @Test func anAccountHasOneIdentityOfASite() async throws {
    let bench = try await Self.bench()
    let own = try await Self.owner(bench)
    let late = try await Self.begun(bench, by: bench.client(session: own))
    let done = try await bench.google("connect", sub: "asha", by: bench.client(session: own)).get()
    let client = bench.client(session: try await bench.session(done))
    let id = try await bench.engine.create("connect", returnTo: nil, browser: nil, client: client).get().id
    #expect(
      await bench.engine.begin(id, provider: "google_oauth", fields: [:], client: client).refusal?.code == .alreadySet)
    #expect(
      await bench.engine.submit(late, fields: ["sub": .text("mallory")], client: client).refusal?.code == .alreadySet)
    #expect(try await Self.identities(of: own.account.id, bench) == ["https://google.example asha"])
  }

  @Test func accountCanHaveIdentitiesOfTwoSites() async throws {
    let bench = try await Self.bench()
    let own = try await Self.owner(bench)
    let done = try await bench.google("connect", sub: "asha", by: bench.client(session: own)).get()
    let client = bench.client(session: try await bench.session(done))
    let id = try await Self.begun(bench, "connect_other", by: client)
    #expect(try await bench.engine.submit(id, fields: ["sub": .text("asha")], client: client).get().status == .complete)
    #expect(try await Self.identities(of: own.account.id, bench) == ["https://google.example asha", "other_site asha"])
  }

  /// Attack: a federated provider proves only an address; without an identity its step would pass as a factor of the
  /// account.
  @Test func providerWithoutAnIdentityConnectsNothing() async throws {
    let bench = try await Self.bench()
    let own = try await Self.owner(bench)
    let client = bench.client(session: own)
    let id = try await Self.begun(bench, "connect_other", by: client)
    #expect(await bench.engine.submit(id, fields: [:], client: client).refusal?.code == .denied)
    #expect(try await bench.store.account(own.account.id)?.identifiers.map(\.identifier.value) == ["+911111"])
  }
}
