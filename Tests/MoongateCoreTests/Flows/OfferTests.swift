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

  /// A desk with an account for 911111 to which the PIN is offered.
  private func desk(when: FunctionName? = nil, _ change: (inout TestGeneration) -> Void = { _ in }) async throws
    -> EngineTestBench
  {
    let desk = try await EngineTestBench.full { generation in
      generation.accounts.offers = [Self.offer(when: when)]
      change(&generation)
    }
    _ = try await desk.pass("register", EngineTestBench.phone, "911111", by: desk.client())
    return desk
  }

  private func signIn(_ desk: EngineTestBench) async throws -> FlowView {
    try await desk.pass("login", EngineTestBench.phone, "911111", by: desk.client())
  }

  private func offered(_ desk: EngineTestBench, _ view: FlowView, canShow: Bool = true) async -> OfferedFactor? {
    await desk.engine.offer(after: view, client: desk.client()) { _ in canShow }
  }

  @Test func offerFollowsASignInAndRespectsItsInterval() async throws {
    let desk = try await desk()
    let pin = OfferedFactor(provider: EngineTestBench.pin, flow: "pin_set")
    #expect(await offered(desk, try await signIn(desk)) == pin)
    #expect(await offered(desk, try await signIn(desk)) == nil)
    desk.clock.advance(by: Self.every - .seconds(1))
    #expect(await offered(desk, try await signIn(desk)) == nil)
    desk.clock.advance(by: .seconds(1))
    #expect(await offered(desk, try await signIn(desk)) == pin)
  }

  @Test func ofManySignInsAtOnceOneIsOfferedIt() async throws {
    let desk = try await desk()
    var views: [FlowView] = []
    for _ in 0..<8 { views.append(try await signIn(desk)) }
    let made = await withTaskGroup(of: OfferedFactor?.self) { group in
      for view in views { group.addTask { await offered(desk, view) } }
      return await group.reduce(into: 0) { count, offer in count += offer == nil ? 0 : 1 }
    }
    #expect(made == 1)
  }

  @Test func aNewAccountAndOneThatHasTheFactorAreNotOfferedIt() async throws {
    let desk = try await desk()
    let new = try await desk.pass("register", EngineTestBench.phone, "922222", by: desk.client())
    #expect(await offered(desk, new) == nil)
    let own = try #require(try await desk.session(try await signIn(desk)))
    _ = try await desk.secret("pin_set", ["new_secret": "1357"], by: desk.client(session: own)).get()
    #expect(await offered(desk, try await signIn(desk)) == nil)
  }

  /// Attack: another request marks the offer as shown, so that the owner never sees it. Only a completed sign-in does
  /// so.
  @Test func onlyASignInMarksIt() async throws {
    let desk = try await desk()
    var view = try await signIn(desk)
    let own = try #require(try await desk.session(view))
    let raised = try await desk.pass("step_up", EngineTestBench.phone, nil, by: desk.client(session: own))
    #expect(await offered(desk, raised) == nil, "a session that was there before")
    let looked = try await desk.engine.view(view.id, client: desk.client()).get()
    #expect(await offered(desk, looked) == nil, "a flow that completed before")
    let pending = try await desk.engine.view(try await desk.flow(), client: desk.client()).get()
    #expect(await offered(desk, pending) == nil, "a flow under way")
    view.session?.token = nil
    #expect(await offered(desk, view) == nil)
    #expect(await offered(desk, try await signIn(desk)) != nil)
  }

  @Test func unshownOfferIsNotCounted() async throws {
    let desk = try await desk()
    #expect(await offered(desk, try await signIn(desk), canShow: false) == nil)
    #expect(await offered(desk, try await signIn(desk)) != nil)
  }

  @Test(arguments: [(EngineTestBench.phone, true), (EngineTestBench.mail, false)])
  func theConditionReadsTheFactsOfTheSignIn(_ passed: ProviderName, _ isOffered: Bool) async throws {
    let desk = try await desk(when: Self.when) { generation in
      generation.conditions[Self.when] = { $0.flow?.passed == [passed] && $0.account.exists }
    }
    #expect((await offered(desk, try await signIn(desk)) != nil) == isOffered)
  }

  /// A condition that throws suppresses the offer; the sign-in succeeds.
  @Test func failingConditionOffersNothing() async throws {
    @Sendable func failing(facts: Facts) throws(PolicyFault) -> Bool {
      throw PolicyFault(
        kind: .error, location: SourceLocation(file: "accounts.lua", line: 2), message: "attempt to index a nil value")
    }
    let desk = try await desk(when: Self.when) { $0.conditions[Self.when] = failing }
    let view = try await signIn(desk)
    #expect(view.session?.token != nil)
    #expect(await offered(desk, view) == nil)
  }

  @Test func impossibleSetupIsNotOffered() async throws {
    let withoutFlow = try await desk { $0.flows["pin_set"] = nil }
    #expect(await offered(withoutFlow, try await signIn(withoutFlow)) == nil)
    let withoutPolicy = try await desk { $0.policies["pin"] = nil }
    #expect(await offered(withoutPolicy, try await signIn(withoutPolicy)) == nil)
  }

  /// Attack: the offer bypasses the requirements of a change. It creates nothing: the flow that sets the factor up
  /// still requires a recent proof.
  @Test func theFlowThatSetsItUpDemandsWhatItAlwaysDemands() async throws {
    let desk = try await desk()
    let view = try await signIn(desk)
    let own = try #require(try await desk.session(view))
    #expect(await offered(desk, view) != nil)
    desk.clock.advance(by: .seconds(601))
    let refused = await desk.engine.create("pin_set", returnTo: nil, browser: nil, client: desk.client(session: own))
      .refusal
    #expect(refused?.code == .stepUpRequired)
  }

  /// Nothing is offered whose flow would be refused at once, because all that the account could prove is too new. Nor
  /// is it counted.
  @Test func offerRequiresASufficientlyOldProof() async throws {
    let desk = try await desk {
      $0.flows["step_up"] = .test("step_up", account: .existing, steps: [.test(EngineTestBench.mail)])
    }
    desk.clock.advance(by: .seconds(2 * 86_400))
    let own = try #require(try await desk.session(try await signIn(desk)))
    _ = try await desk.pass("change_email", EngineTestBench.mail, "922222", by: desk.client(session: own))
    #expect(await offered(desk, try await desk.pass("login", EngineTestBench.mail, "922222", by: desk.client())) == nil)
    desk.clock.advance(by: .seconds(86_400))
    #expect(await offered(desk, try await desk.pass("login", EngineTestBench.mail, "922222", by: desk.client())) != nil)
  }

  // MARK: what is forgotten with a factor

  /// Attack: a session that has passed a factor still enters routes that require it after the factor is removed.
  @Test func aSessionForgetsTheFactorThatItHasRemoved() async throws {
    let desk = try await desk()
    var own = try #require(try await desk.session(try await signIn(desk)))
    own = try #require(
      try await desk.session(
        try await desk.secret("pin_set", ["new_secret": "1357"], by: desk.client(session: own)).get()))
    own = try #require(
      try await desk.session(
        try await desk.secret("pin_unlock", ["secret": "1357"], by: desk.client(session: own)).get()))
    #expect(
      own.session.passed.map(\.provider) == [EngineTestBench.phone, EngineTestBench.pin]
        && own.session.assuranceLevel == 2)
    let token = own.session.token
    own = try #require(
      try await desk.session(
        try await desk.secret("pin_disable", ["secret": "1357"], by: desk.client(session: own)).get()))
    #expect(own.session.passed.map(\.provider) == [EngineTestBench.phone] && own.session.assuranceLevel == 1)
    #expect(own.session.token != token)
  }
}
