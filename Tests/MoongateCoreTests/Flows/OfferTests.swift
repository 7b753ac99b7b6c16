import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// What `offer` in accounts.lua offers users who have just signed in.
@Suite struct OfferTests {
  private static let when = FunctionName("accounts.offer[1].when")
  private static let every = Duration.seconds(30 * 86_400)

  private static func offer(when: FunctionName? = nil) -> FactorOffer {
    FactorOffer(
      provider: EngineTestBench.pin, every: every, when: when, location: SourceLocation(file: "accounts.lua", line: 2))
  }

  /// A bench with an account for 911111 to which the PIN is offered.
  private func bench(when: FunctionName? = nil, _ change: (inout TestGeneration) -> Void = { _ in }) async throws
    -> EngineTestBench
  {
    let bench = try await EngineTestBench.full { generation in
      generation.accounts.offers = [Self.offer(when: when)]
      change(&generation)
    }
    _ = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    return bench
  }

  private func signIn(_ bench: EngineTestBench) async throws -> FlowView {
    try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())
  }

  private func offered(_ bench: EngineTestBench, _ view: FlowView, canShow: Bool = true) async -> OfferedFactor? {
    await bench.engine.offer(after: view, client: bench.client()) { _ in canShow }
  }

  @Test func offerFollowsASignInAndRespectsItsInterval() async throws {
    let bench = try await bench()
    let pin = OfferedFactor(provider: EngineTestBench.pin, flow: "pin_set")
    #expect(await offered(bench, try await signIn(bench)) == pin)
    #expect(await offered(bench, try await signIn(bench)) == nil)
    bench.clock.advance(by: Self.every - .seconds(1))
    #expect(await offered(bench, try await signIn(bench)) == nil)
    bench.clock.advance(by: .seconds(1))
    #expect(await offered(bench, try await signIn(bench)) == pin)
  }

  @Test func parallelSignInsShowTheOfferOnce() async throws {
    let bench = try await bench()
    var views: [FlowView] = []
    for _ in 0..<8 { views.append(try await signIn(bench)) }
    let made = await withTaskGroup(of: OfferedFactor?.self) { group in
      for view in views { group.addTask { await offered(bench, view) } }
      return await group.reduce(into: 0) { count, offer in count += offer == nil ? 0 : 1 }
    }
    #expect(made == 1)
  }

  @Test func newAccountsAndAccountsWithTheFactorGetNoOffer() async throws {
    let bench = try await bench()
    let new = try await bench.pass("register", EngineTestBench.phone, "922222", by: bench.client())
    #expect(await offered(bench, new) == nil)
    let own = try #require(try await bench.session(try await signIn(bench)))
    _ = try await bench.secret("pin_set", ["new_secret": "1357"], by: bench.client(session: own)).get()
    #expect(await offered(bench, try await signIn(bench)) == nil)
  }

  /// Attack: another request marks the offer as shown, so that the owner never sees it. Only a completed sign-in does
  /// so.
  @Test func onlyASignInMarksTheOfferAsShown() async throws {
    let bench = try await bench()
    var view = try await signIn(bench)
    let own = try #require(try await bench.session(view))
    let raised = try await bench.pass("step_up", EngineTestBench.phone, nil, by: bench.client(session: own))
    #expect(await offered(bench, raised) == nil, "a session that was there before")
    let looked = try await bench.engine.view(view.id, client: bench.client()).get()
    #expect(await offered(bench, looked) == nil, "a flow that completed before")
    let pending = try await bench.engine.view(try await bench.flow(), client: bench.client()).get()
    #expect(await offered(bench, pending) == nil, "a flow under way")
    view.session?.token = nil
    #expect(await offered(bench, view) == nil)
    #expect(await offered(bench, try await signIn(bench)) != nil)
  }

  @Test func unshownOfferIsNotCounted() async throws {
    let bench = try await bench()
    #expect(await offered(bench, try await signIn(bench), canShow: false) == nil)
    #expect(await offered(bench, try await signIn(bench)) != nil)
  }

  @Test(arguments: [(EngineTestBench.phone, true), (EngineTestBench.mail, false)])
  func theConditionReadsTheFactsOfTheSignIn(_ passed: ProviderName, _ isOffered: Bool) async throws {
    let bench = try await bench(when: Self.when) { generation in
      generation.conditions[Self.when] = { $0.flow?.passed == [passed] && $0.account.exists }
    }
    #expect((await offered(bench, try await signIn(bench)) != nil) == isOffered)
  }

  /// A condition that throws suppresses the offer; the sign-in succeeds.
  @Test func failingConditionOffersNothing() async throws {
    @Sendable func failing(facts: Facts) throws(PolicyFault) -> Bool {
      throw PolicyFault(
        kind: .error, location: SourceLocation(file: "accounts.lua", line: 2), message: "attempt to index a nil value")
    }
    let bench = try await bench(when: Self.when) { $0.conditions[Self.when] = failing }
    let view = try await signIn(bench)
    #expect(view.session?.token != nil)
    #expect(await offered(bench, view) == nil)
  }

  @Test func impossibleSetupIsNotOffered() async throws {
    let withoutFlow = try await bench { $0.flows["pin_set"] = nil }
    #expect(await offered(withoutFlow, try await signIn(withoutFlow)) == nil)
    let withoutPolicy = try await bench { $0.policies["pin"] = nil }
    #expect(await offered(withoutPolicy, try await signIn(withoutPolicy)) == nil)
  }

  /// Attack: the offer bypasses the requirements of a change. It creates nothing: the flow that sets the factor up
  /// still requires a recent proof.
  @Test func setupAfterAnOfferStillRequiresARecentProof() async throws {
    let bench = try await bench()
    let view = try await signIn(bench)
    let own = try #require(try await bench.session(view))
    #expect(await offered(bench, view) != nil)
    bench.clock.advance(by: .seconds(601))
    let refused = await bench.engine.create("pin_set", returnTo: nil, browser: nil, client: bench.client(session: own))
      .refusal
    #expect(refused?.code == .stepUpRequired)
  }

  /// Nothing is offered whose flow would be refused at once, because all that the account could prove is too new. Nor
  /// is it counted.
  @Test func offerRequiresASufficientlyOldProof() async throws {
    let bench = try await bench {
      $0.flows["step_up"] = .test("step_up", account: .existing, steps: [.test(EngineTestBench.mail)])
    }
    bench.clock.advance(by: .seconds(2 * 86_400))
    let own = try #require(try await bench.session(try await signIn(bench)))
    _ = try await bench.pass("change_email", EngineTestBench.mail, "922222", by: bench.client(session: own))
    #expect(
      await offered(bench, try await bench.pass("login", EngineTestBench.mail, "922222", by: bench.client())) == nil)
    bench.clock.advance(by: .seconds(86_400))
    #expect(
      await offered(bench, try await bench.pass("login", EngineTestBench.mail, "922222", by: bench.client())) != nil)
  }

  // MARK: what is forgotten with a factor

  /// Attack: a session that has passed a factor still enters routes that require it after the factor is removed.
  @Test func aSessionForgetsTheFactorThatItHasRemoved() async throws {
    let bench = try await bench()
    var own = try #require(try await bench.session(try await signIn(bench)))
    own = try #require(
      try await bench.session(
        try await bench.secret("pin_set", ["new_secret": "1357"], by: bench.client(session: own)).get()))
    own = try #require(
      try await bench.session(
        try await bench.secret("pin_unlock", ["secret": "1357"], by: bench.client(session: own)).get()))
    #expect(
      own.session.passed.map(\.provider) == [EngineTestBench.phone, EngineTestBench.pin]
        && own.session.assuranceLevel == 2)
    let token = own.session.token
    own = try #require(
      try await bench.session(
        try await bench.secret("pin_disable", ["secret": "1357"], by: bench.client(session: own)).get()))
    #expect(own.session.passed.map(\.provider) == [EngineTestBench.phone] && own.session.assuranceLevel == 1)
    #expect(own.session.token != token)
  }
}
