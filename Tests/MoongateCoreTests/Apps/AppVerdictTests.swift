import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// Who may sign in to an app, and what an authorization needs next.
@Suite struct AppVerdictTests {
  private typealias Bench = AppsTestBench

  private func verdict(
    _ app: App, _ passed: [ProviderName] = [Bench.phone], _ prepare: (Bench) async throws -> Void = { _ in }
  ) async throws -> AppVerdict {
    let bench = try await Bench(app)
    try await prepare(bench)
    return bench.apps.verdict(app, try await bench.session(passed), bench.call)
  }

  @Test func verdictIsThatOfARoute() async throws {
    let staff = GroupRequirement(anyOf: [Bench.staff])
    #expect(try await verdict(try Bench.app()) == .judged(.pass))
    let grouped = try Bench.app(requirement: AppRequirement(groups: staff, steps: [.passed(Bench.pin, within: nil)]))
    // Groups are checked first, so that nobody passes a step in vain.
    #expect(try await verdict(grouped) == .judged(.notInGroup(staff)))
    let join = { (bench: Bench) in
      try await bench.apply(.setGroupMembership(account: Bench.account, Bench.staff, true))
    }
    #expect(try await verdict(grouped, [Bench.phone], join) == .judged(.needs(Bench.pin)))
    #expect(try await verdict(grouped, [Bench.phone, Bench.pin], join) == .judged(.pass))
    let verified = try Bench.app(requirement: AppRequirement(steps: [.emailVerified]))
    #expect(try await verdict(verified) == .judged(.pass))
  }

  @Test func factorsAreDifferentOnesThatCount() async throws {
    let app = try Bench.app(requirement: AppRequirement(factors: 2))
    #expect(try await verdict(app) == .needsFactors(2))
    // Attack: the same factor twice.
    #expect(try await verdict(app, [Bench.phone, Bench.phone]) == .needsFactors(2))
    #expect(try await verdict(app, [Bench.phone, Bench.pin]) == .judged(.pass))
    let both = PassedStep(provider: "passkey", at: ManualClock.start, isMultiFactor: true)
    #expect(Session.factorCount(of: [both]) == 2 && Session.factorCount(of: []) == 0)
    // Attack: a factor that a thief has just added.
    let new = PassedStep(provider: Bench.pin, at: ManualClock.start).tooNew(until: ManualClock.start + .seconds(60))
    #expect(Session.factorCount(of: [PassedStep(provider: Bench.phone, at: ManualClock.start), new].counted) == 1)
  }

  @Test func decideIsAskedLast() async throws {
    let app = try Bench.app(decide: FunctionName("grafana.decide"))
    let bench = try await Bench(app)
    let session = try await bench.session()
    let answers: [(Verdict, AppVerdict)] = [
      (.allow, .judged(.pass)), (.deny("closed"), .judged(.denied("closed"))),
      (.requireAlso(Bench.pin), .judged(.needs(Bench.pin))), (.requireAlso(Bench.phone), .judged(.pass)),
    ]
    for (answer, expected) in answers {
      bench.reload(app) { $0.verdicts[FunctionName("grafana.decide")] = { _ in answer } }
      #expect(bench.apps.verdict(app, session, bench.call) == expected)
    }
    bench.reload(app) {
      $0.verdicts[FunctionName("grafana.decide")] = { facts in
        facts.request?.path == "/auth/openid/authorize" && facts.request?.host == "localhost"
          && facts.session?.account == Bench.account ? .allow : .deny("other_facts")
      }
    }
    #expect(bench.apps.verdict(app, session, bench.call) == .judged(.pass))
  }

  /// Attack: a function that fails lets everybody in.
  @Test func faultsRefuse() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let fault = PolicyFault(kind: .error, location: nil, message: "broken")
    @Sendable func failing(facts: Facts) throws(PolicyFault) -> Bool { throw fault }
    bench.reload(app) {
      $0.accounts.groups[Bench.staff] = .computed(FunctionName("groups.staff"))
      $0.conditions[FunctionName("groups.staff")] = failing
    }
    #expect(bench.apps.verdict(app, try await bench.session(), bench.call) == .judged(.failed(fault)))
  }

  /// Attack: a personal access token in place of a session.
  @Test func tokensAreNoSessions() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let session = try await bench.session()
    let token = AccessToken(
      id: "tk_1", name: "ci", owner: AccountVersion(session.account), groups: [], networks: [],
      createdAt: bench.clock.now(), expiresAt: nil, hash: AccessTokenHash(key: "k", bytes: []))
    let held = SessionSnapshot(session: session.session, account: session.account, token: token)
    #expect(bench.apps.verdict(app, held, bench.call) == .judged(.noSession))
  }

  // MARK: What an authorization needs next

  private func next(
    _ app: App, in session: SessionSnapshot?, _ bench: Bench, _ change: (inout AuthorizationRequest) -> Void = { _ in }
  ) async throws -> AuthorizationStep {
    var request = try bench.request(app)
    change(&request)
    return try await bench.apps.next(request, app, in: session, bench.call)
  }

  @Test func promptsAskForANewSignIn() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    #expect(try await next(app, in: nil, bench) == .signIn)
    let session = try await bench.session()
    bench.clock.advance(by: .seconds(60))
    #expect(try await next(app, in: session, bench) == .ready)
    for prompt in ["login", "select_account"] {
      #expect(try await next(app, in: session, bench) { $0.prompt = [prompt] } == .signIn)
    }
    #expect(try await next(app, in: session, bench) { $0.maxAge = 60 } == .signIn)
    #expect(try await next(app, in: session, bench) { $0.maxAge = 61 } == .ready)
    #expect(try await next(app, in: session, bench) { $0.maxAge = 0 } == .signIn)
    // A sign-in after the request meets all of them.
    var request = try bench.request(app)
    (request.prompt, request.maxAge) = (["login"], 0)
    bench.clock.advance(by: .seconds(1))
    let later = try await bench.session()
    bench.clock.advance(by: .seconds(5))
    #expect(try await bench.apps.next(request, app, in: later, bench.call) == .ready)
    // Attack: a session that has ended.
    bench.clock.advance(by: .seconds(86_400))
    #expect(try await next(app, in: later, bench) == .signIn)
  }

  /// Attack: an app shows the ID token of one user, and gets the tokens of another one.
  @Test func hintOfSomebodyElseIsRefused() async throws {
    let app = try Bench.app(isPairwise: true)
    let bench = try await Bench(app)
    let session = try await bench.session()
    let own = app.subject(of: Bench.account, keys: bench.keys)
    #expect(own != Bench.account)
    #expect(try await next(app, in: session, bench) { $0.hintedSubject = own } == .ready)
    for other in [Bench.account, app.subject(of: "ac_ravi", keys: bench.keys)] {
      let step = try await next(app, in: session, bench) { $0.hintedSubject = other }
      #expect(step == .refuse(OAuthError("login_required", "Somebody else is signed in."), nil))
    }
  }

  @Test func essentialLevelIsReachedOrRefused() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let (one, two) = (try await bench.session(), try await bench.session([Bench.phone, Bench.pin]))
    let level = { (levels: [String]) in { (request: inout AuthorizationRequest) in request.essentialACR = levels } }
    #expect(try await next(app, in: one, bench, level([AppSignIn.acr(2)])) == .stepUp(.needsFactors(2)))
    #expect(try await next(app, in: two, bench, level([AppSignIn.acr(2)])) == .ready)
    #expect(try await next(app, in: two, bench, level([AppSignIn.acr(1)])) == .ready)
    let impossible = OAuthError("access_denied", "The requested acr cannot be reached.")
    #expect(try await next(app, in: two, bench, level(["urn:mace:gold"])) == .refuse(impossible, nil))
    // The answer has a level that was asked for (OpenID Connect Core 1.0 section 5.5.1.1).
    var request = try bench.request(app)
    request.essentialACR = [AppSignIn.acr(1)]
    let code = try await bench.apps.authorize(request, app, in: two, agreed: false, bench.call).reveal()
    #expect(try await bench.claims(try await bench.redeem(code, app).idToken)["acr"] == .text(AppSignIn.acr(1)))
  }

  /// Attack: a page or an endpoint that forgets to ask.
  @Test func noCodeWithoutConsent() async throws {
    let app = try Bench.app(consent: .once)
    let bench = try await Bench(app)
    let session = try await bench.session()
    let request = try bench.request(app)
    #expect(try await next(app, in: session, bench) == .consent)
    #expect(
      try await Bench.error { _ = try await bench.apps.authorize(request, app, in: session, agreed: false, bench.call) }
        == "consent_required")
    _ = try await bench.apps.authorize(request, app, in: session, agreed: true, bench.call)
    #expect(try await next(app, in: session, bench) == .ready)
    #expect(try await next(app, in: session, bench) { $0.prompt = ["consent"] } == .consent)
    #expect(try await bench.events().map(\.kind).contains(.appConsented))
    // A further scope is asked about, and what is asked about once stays agreed to.
    let more = { (scopes: [String]) in
      try await bench.apps.next(try bench.request(app, scopes: scopes), app, in: session, bench.call)
    }
    #expect(try await more(["openid", "groups"]) == .consent)
    let wider = try bench.request(app, scopes: ["openid", "groups"])
    _ = try await bench.apps.authorize(wider, app, in: session, agreed: true, bench.call)
    #expect(try await more(["openid", "email", "groups"]) == .ready)
    try await bench.apply(.endAppConnection(account: Bench.account, app: app.id))
    #expect(try await more(["openid"]) == .consent)
    let always = try Bench.app(consent: .always)
    bench.reload(always)
    _ = try await bench.apps.authorize(try bench.request(always), always, in: session, agreed: true, bench.call)
    #expect(try await next(always, in: session, bench) == .consent)
  }

  /// Attack: an app that nobody is asked about gets tokens that survive every sign-out.
  @Test func offlineAccessIsAlwaysAskedAboutOnce() async throws {
    let app = try Bench.app(consent: .never)
    let bench = try await Bench(app)
    let session = try await bench.session()
    let request = try bench.request(app, scopes: ["openid", "offline_access"])
    #expect(try await next(app, in: session, bench) == .ready)
    _ = try await bench.tokens(app, in: session)
    #expect(try await bench.apps.next(request, app, in: session, bench.call) == .consent)
    _ = try await bench.apps.authorize(request, app, in: session, agreed: true, bench.call)
    #expect(try await bench.apps.next(request, app, in: session, bench.call) == .ready)
    // An app that may not have it, or has no refresh tokens, is not given it.
    for narrow in [try Bench.app(scopes: ["openid"]), try Bench.app(grants: [.authorizationCode])] {
      #expect(narrow.permitted(["openid", "offline_access", "openid"]) == ["openid"])
    }
  }
}
