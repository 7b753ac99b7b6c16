import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// "Keep me signed in": the longer times of a session whose user chose it.
@Suite struct RememberingTests {
  private static let times = RememberedTimes(lifetime: .seconds(90 * 86_400), idle: .seconds(30 * 86_400))
  private let browser = TokenHash(of: "browser".utf8)

  /// A bench whose sign-in flows offer to stay signed in, with an account for 911111.
  private func bench(offers: Bool = true) async throws -> EngineTestBench {
    let bench = try await EngineTestBench.full { generation in
      guard offers else { return }
      for (name, rule) in [
        ("login", AccountRule.existing), ("register", .new), ("enter", .any), ("step_up", .existing),
      ] {
        generation.flows[name] = .test(
          name, account: rule, steps: [.test(EngineTestBench.phone, EngineTestBench.pin)], remember: Self.times)
      }
    }
    _ = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    return bench
  }

  /// Signs in with what each of the three calls says.
  private func signIn(_ bench: EngineTestBench, _ create: Bool?, _ begin: Bool?, _ submit: Bool?) async throws
    -> SessionSnapshot
  {
    let client = bench.client()
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: client.remembering(create))
      .get().id
    _ = try await bench.engine.begin(
      id, provider: EngineTestBench.phone.rawValue, fields: ["phone": .text("911111")],
      client: client.remembering(begin)
    ).get()
    let view = try await bench.engine.submit(
      id, fields: ["code": .text(bench.code)], client: client.remembering(submit)
    ).get()
    return try await bench.signedIn(view)
  }

  private func lifetime(_ session: Session) -> Duration { session.expiresAt - session.createdAt }

  @Test(
    arguments: [
      (nil, nil, nil, false), (true, nil, nil, true), (nil, true, nil, true), (nil, nil, true, true),
      (true, false, nil, false), (true, true, false, false), (false, nil, true, true), (true, nil, false, false),
    ] as [(Bool?, Bool?, Bool?, Bool)])
  func theLastChoiceCounts(_ create: Bool?, _ begin: Bool?, _ submit: Bool?, _ isRemembered: Bool) async throws {
    let bench = try await bench()
    let session = try await signIn(bench, create, begin, submit).session
    #expect(session.isRemembered == isRemembered)
    #expect(lifetime(session) == (isRemembered ? Self.times.lifetime : .seconds(43_200)))
    #expect(session.idle == (isRemembered ? Self.times.idle : .seconds(3600)))
    #expect(session.cookieLifetime(at: session.createdAt) == (isRemembered ? Self.times.lifetime : nil))
  }

  @Test func aFlowWithoutTheOfferIgnoresTheChoice() async throws {
    let bench = try await bench(offers: false)
    let view = try await bench.engine.create(
      "login", returnTo: nil, browser: nil, client: bench.client().remembering(true)
    ).get()
    #expect(view.isRemembered == nil)
    let session = try await signIn(bench, true, true, true).session
    #expect(!session.isRemembered && lifetime(session) == .seconds(43_200))
  }

  @Test func theViewStatesTheChoiceAndARefusedRequestChangesNothing() async throws {
    let bench = try await bench()
    let client = bench.client()
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: client).get().id
    let fields: [String: InputValue] = ["phone": .text("911111")]
    let begun = try await bench.engine.begin(id, provider: nil, fields: fields, client: client.remembering(true)).get()
    #expect(begun.isRemembered == true)
    let wrong = await bench.engine.submit(
      id, fields: ["code": .text(bench.wrong)], client: client.remembering(false))
    #expect(wrong.refusal?.code == .invalidCode)
    #expect(try await bench.engine.view(id, client: client).get().isRemembered == true)
  }

  @Test func aRememberedSessionEndsByItsTimes() async throws {
    let bench = try await bench()
    let view = try await signIn(bench, true, nil, nil)
    let sessions = SessionDirectory(store: bench.store, clock: bench.clock)
    bench.clock.advance(by: .seconds(29 * 86_400))
    #expect(try await sessions.find(view.session.token) != nil)
    bench.clock.advance(by: .seconds(86_400))
    #expect(try await sessions.find(view.session.token) == nil, "30 days without a request")
  }

  /// Attack: somebody at an unlocked device makes the session last for months by a step-up that says `remember`. A
  /// step-up neither extends a session nor changes whether it is remembered.
  @Test(arguments: [false, true]) func aRenewedSessionKeepsTheChoice(_ isRemembered: Bool) async throws {
    let bench = try await bench()
    let own = try await signIn(bench, isRemembered, nil, nil)
    bench.clock.advance(by: .seconds(600))
    let client = bench.client(session: own).remembering(!isRemembered)
    let view = try await bench.pass("step_up", EngineTestBench.phone, nil, by: client)
    #expect(view.isRemembered == nil)
    let grown = try await bench.signedIn(view).session
    #expect(grown.token != own.session.token && grown.expiresAt == own.session.expiresAt)
    #expect(grown.isRemembered == isRemembered && grown.idle == own.session.idle)
    #expect(view.session?.cookieLifetime == (isRemembered ? Self.times.lifetime - .seconds(600) : nil))
  }

  /// Attack: the user of a remembered session signs in again at a shared computer without the tick.
  @Test func anotherSignInForgetsTheChoiceOfTheSessionBefore() async throws {
    let bench = try await bench()
    let own = try await signIn(bench, true, nil, nil)
    let view = try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client(session: own))
    let fresh = try await bench.signedIn(view).session
    #expect(fresh.token != own.session.token && !fresh.isRemembered && lifetime(fresh) == .seconds(43_200))
    #expect(try await bench.store.session(own.session.token) == nil)
  }

  /// Attack: an app creates its flow with `remember`, or says so when it redeems its code, for a user who did not tick.
  @Test func anAppDoesNotChooseForTheUser() async throws {
    let bench = try await bench()
    let refused = await bench.engine.create(
      "enter", returnTo: nil, browser: nil, grant: try .test(), client: bench.client().remembering(true)
    ).refusal
    #expect(refused?.code == .invalidInput && refused?.field == "remember")
    let page = bench.client(browser: browser, at: .page)
    let (view, code) = try await bench.completedForApp(in: page)
    let redeemed = try await bench.engine.submit(
      view.id, fields: ["code": .text(code), "code_verifier": .text(Grant.testVerifier)],
      client: bench.client().remembering(true)
    ).get()
    #expect(try await !bench.signedIn(redeemed).session.isRemembered)
  }

  @Test func theUserOfAnAppsFlowChoosesOnThePage() async throws {
    let bench = try await bench()
    let page = bench.client(browser: browser, at: .page)
    let (view, code) = try await bench.completedForApp(in: page.remembering(true))
    let session = try await bench.signedIn(try await bench.redeem(view.id, code).get()).session
    #expect(session.isRemembered && lifetime(session) == Self.times.lifetime)
  }

  /// Attack: a remembered session keeps access to routes that require a recent proof.
  @Test func passedStepsAgeAsInAnySession() async throws {
    let bench = try await bench()
    let own = try await signIn(bench, true, nil, nil)
    bench.clock.advance(by: .seconds(86_400))
    let found = try #require(
      try await SessionDirectory(store: bench.store, clock: bench.clock).find(own.session.token)?.session)
    #expect(found.passed.map(\.at) == own.session.passed.map(\.at))
  }

  // MARK: - Ends

  enum End: CaseIterable { case lock, disable, change, reset }

  /// Attack: a thief has kept themselves signed in for months, and the owner or an operator acts.
  @Test(arguments: End.allCases) func everyEndReachesARememberedSession(_ end: End) async throws {
    let bench = try await bench()
    let account = try #require(try await bench.store.accounts(after: nil, limit: 1).first).id
    if end == .reset {
      let mail = Identifier(kind: .email, value: "+955555", display: "955555")
      let password = try ProviderRecord(bytes: Array("old".utf8), version: 1)
        .sealed(for: ProviderRecord.owner("password", account), by: bench.keys)
      _ = try await bench.store.apply(
        [
          .verifyIdentifier(account: account, mail, forgetting: [], waitingUntil: nil),
          .putProviderRecord(account: account, "password", sealed: password),
        ], at: bench.clock.now())
      bench.clock.advance(by: bench.generations.current.accounts.recoveryDelay)
    }
    let thief = try await signIn(bench, true, nil, nil).session
    #expect(thief.isRemembered)
    try await apply(end, to: account, bench)
    let sessions = SessionDirectory(store: bench.store, clock: bench.clock)
    #expect(try await sessions.find(thief.token) == nil)
  }

  private func apply(_ end: End, to account: String, _ bench: EngineTestBench) async throws {
    let operators = AccountAdministration(
      store: bench.store, providers: try ProviderRegistry([]), keys: bench.keys, clock: bench.clock,
      random: SystemRandom())
    switch end {
    case .lock: #expect(try await operators.lock(account) == .done)
    case .disable: #expect(try await operators.disable(account) == .done)
    case .change:
      let own = try await signIn(bench, nil, nil, nil)
      let set = try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: own)).get()
      let now = bench.client(session: try await bench.signedIn(set))
      _ = try await bench.secret("pin_change", ["secret": "1", "new_secret": "2"], by: now).get()
    case .reset:
      let reset = try await bench.pass("password_reset", EngineTestBench.mail, "955555", by: bench.client())
      let done = await bench.engine.begin(
        reset.id, provider: "password", fields: ["new_secret": .text("new")], client: bench.client())
      #expect(try done.get().status == .complete)
    }
  }
}
