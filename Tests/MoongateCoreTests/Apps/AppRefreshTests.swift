import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// Refresh tokens: rotation, reuse, and what ends them.
@Suite struct AppRefreshTests {
  private typealias Bench = AppsTestBench
  private static let offline = ["openid", "email", "offline_access"]

  @Test func tokenIsReplacedEachTime() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let first = try await bench.tokens(app, in: try await bench.session())
    bench.clock.advance(by: .seconds(60))
    let second = try await bench.refresh(first.refresh, app)
    #expect(second.refresh != first.refresh && second.refresh != nil && second.access != first.access)
    let claims = try await bench.claims(second.idToken)
    #expect(claims["nonce"] == nil && claims["auth_time"]?.number == Double(ManualClock.start.seconds))
    #expect(claims["iat"]?.number == Double(ManualClock.start.seconds + 60))
    _ = try await bench.refresh(second.refresh, app)
    #expect(try await bench.isLive(first.access), "an access token lives on its own")
    #expect(try await bench.events().filter { $0.kind == .appRefreshed }.count == 2)
  }

  /// A lost answer: the same request within ten seconds has the same result.
  @Test func repetitionWithinTenSecondsGivesTheSame() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let first = try await bench.tokens(app, in: try await bench.session())
    let second = try await bench.refresh(first.refresh, app)
    bench.clock.advance(by: .milliseconds(9_999))
    #expect(try await bench.refresh(first.refresh, app).refresh == second.refresh)
    #expect(try await bench.refresh(second.refresh, app).refresh != second.refresh)
  }

  /// Attack: a thief uses a stolen token after its owner has refreshed, or the owner after the thief. Nobody can tell
  /// who is who, so all tokens end (RFC 9700 section 4.14.2).
  @Test(arguments: [1, 2, 3]) func reuseEndsAllTokens(refreshes: Int) async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let stolen = try await bench.tokens(app, in: try await bench.session())
    var latest = stolen
    for _ in 0..<refreshes {
      bench.clock.advance(by: .seconds(10))
      latest = try await bench.refresh(latest.refresh, app)
    }
    bench.clock.advance(by: .seconds(10))
    #expect(try await Bench.error { _ = try await bench.refresh(stolen.refresh, app) } == "invalid_grant")
    #expect(try await Bench.error { _ = try await bench.refresh(latest.refresh, app) } == "invalid_grant")
    #expect(try await !bench.isLive(latest.access))
    #expect(try await bench.events().first { $0.kind == .appRevoked }?.detail["reason"] == "refresh_reuse")
  }

  /// Attack: someone who knows the ID of a grant, from the log of an app, makes up tokens so that it ends.
  @Test func madeUpTokensEndNothing() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let tokens = try await bench.tokens(app, in: try await bench.session())
    let text = try #require(tokens.refresh).reveal()
    let other = try KeyRing(master: [UInt8](repeating: 8, count: 32))
    let grant = try #require(RefreshToken(text)).grant
    for made in [
      String(text.dropLast()) + (text.hasSuffix("A") ? "B" : "A"), "mgr_", String(text.dropLast()), text + "A",
      RefreshToken(of: grant, other, SystemRandom()).text.reveal(),
    ] {
      #expect(try await Bench.error { _ = try await bench.refresh(SecretText(made), app) } == "invalid_grant")
    }
    #expect(try await bench.isLive(tokens.access))
    _ = try await bench.refresh(tokens.refresh, app)
  }

  /// Attack: another app has stolen the token. It gets nothing and cannot end the authorization.
  @Test func anotherAppGetsAndEndsNothing() async throws {
    let (app, other) = (try Bench.app(), try Bench.app("other"))
    let bench = try await Bench(app, other)
    let first = try await bench.tokens(app, in: try await bench.session())
    let second = try await bench.refresh(first.refresh, app)
    let third = try await bench.refresh(second.refresh, app)
    bench.clock.advance(by: .seconds(60))
    for token in [first, second, third] {
      #expect(try await Bench.error { _ = try await bench.refresh(token.refresh, other) } == "invalid_grant")
      try await bench.apps.revoke(try #require(token.refresh).reveal(), by: other, bench.call)
      try await bench.apps.revoke(token.access.reveal(), by: other, bench.call)
      #expect(
        try await bench.apps.live(refresh: try #require(token.refresh).reveal(), by: other, bench.call) == nil)
    }
    #expect(try await bench.isLive(third.access))
    _ = try await bench.refresh(third.refresh, app)
  }

  /// Attack: several refreshes at the same moment, so that two families arise. All get the same token.
  @Test func concurrentRefreshesGetTheSameToken() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let first = try await bench.tokens(app, in: try await bench.session())
    let answers = try await withThrowingTaskGroup(of: String?.self) { group in
      for _ in 0..<8 { group.addTask { try await bench.refresh(first.refresh, app).refresh?.reveal() } }
      return try await group.reduce(into: [String?]()) { $0.append($1) }
    }
    #expect(answers.count == 8 && Set(answers).count == 1)
  }

  /// Attack: an app asks at a refresh for a scope that the user has not agreed to.
  @Test func scopesAreNeverWidened() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let tokens = try await bench.tokens(app, in: try await bench.session())
    #expect(
      try await Bench.error { _ = try await bench.refresh(tokens.refresh, app, scopes: ["openid", "groups"]) }
        == "invalid_scope")
    let narrow = try await bench.refresh(tokens.refresh, app, scopes: ["openid"])
    #expect(narrow.scopes == ["openid"])
    #expect(try await bench.claims(narrow.idToken)["email"] == nil)
    // The operator takes a scope away.
    let less = try Bench.app(scopes: ["openid"])
    bench.reload(less)
    #expect(try await bench.refresh(narrow.refresh, less).scopes == ["openid"])
    #expect(try await bench.apps.live(access: tokens.access.reveal(), bench.call).scopes == ["openid"])
  }

  @Test func tokensEndWithTheSession() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let session = try await bench.session()
    let tokens = try await bench.tokens(app, in: session)
    try await bench.apply(.endSession(session.session.token))
    #expect(try await !bench.isLive(tokens.access))
    #expect(try await Bench.error { _ = try await bench.refresh(tokens.refresh, app) } == "invalid_grant")
  }

  @Test func tokensEndWithAnIdleSession() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let tokens = try await bench.tokens(app, in: try await bench.session())
    bench.clock.advance(by: .seconds(86_400))
    #expect(try await Bench.error { _ = try await bench.refresh(tokens.refresh, app) } == "invalid_grant")
  }

  /// `offline_access` outlives the session.
  ///
  /// Attack: it also outlives a lock, a reset, or a lost group.
  @Test(arguments: 0..<4) func offlineAccessOutlivesOnlyTheSession(_ change: Int) async throws {
    let app = try Bench.app(requirement: AppRequirement(groups: GroupRequirement(anyOf: [Bench.staff])))
    let bench = try await Bench(app)
    try await bench.apply(.setGroupMembership(account: Bench.account, Bench.staff, true))
    let session = try await bench.session()
    let first = try await bench.tokens(app, scopes: Self.offline, in: session)
    try await bench.apply(.endSession(session.session.token))
    bench.clock.advance(by: .seconds(10 * 86_400))
    let second = try await bench.refresh(first.refresh, app)
    #expect(try await bench.isLive(second.access))
    #expect(try await bench.claims(second.idToken)["sid"] == bench.claims(first.idToken)["sid"])
    switch change {
    case 0: try await bench.apply(.setLocked(account: Bench.account, true))
    case 1: try await bench.apply(.raiseEpoch(account: Bench.account))
    case 2: try await bench.apply(.setGroupMembership(account: Bench.account, Bench.staff, false))
    default: bench.reload(try Bench.app(scopes: ["openid", "email"])) { $0.accounts.groups = [Bench.staff: .members] }
    }
    let now = try #require(bench.generations.current.apps["grafana"])
    #expect(try await !bench.isLive(second.access))
    #expect(try await Bench.error { _ = try await bench.refresh(second.refresh, now) } == "invalid_grant")
  }

  /// Attack: a thief has tokens by a copy of the session. The owner changes the password in that session, which goes on
  /// with another token and ends all others. What apps got by it before ends too.
  @Test(arguments: [false, true]) func newEpochEndsTokensOfTheSessionThatGoesOn(isOffline: Bool) async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let session = try await bench.session()
    let tokens = try await bench.tokens(app, scopes: isOffline ? Self.offline : ["openid"], in: session)
    try await bench.apply(.raiseEpoch(account: Bench.account))
    #expect(try await bench.store.session(session.session.token) != nil)
    #expect(try await !bench.isLive(tokens.access))
    #expect(try await Bench.error { _ = try await bench.refresh(tokens.refresh, app) } == "invalid_grant")
  }

  /// Attack: `decide` lets one network in. A user of another one redeems the code by a server in the first; or the
  /// server is elsewhere, and no user gets in.
  @Test func rulesSeeTheUserAndNotTheServer() async throws {
    let (rule, claims) = (FunctionName("grafana.decide"), FunctionName("grafana.claims"))
    let app = try Bench.app(decide: rule, claims: claims)
    let bench = try await Bench(app)
    let office = bench.address
    bench.reload(app) {
      $0.verdicts[rule] = { $0.client.address == office ? .allow : .deny("elsewhere") }
      $0.appClaims[claims] = { facts in ["from": .text(facts.client.address.description)] }
    }
    let code = try await bench.code(app, in: try await bench.session())
    let server = AppCall(
      generation: bench.generations.current, client: ClientFacts(address: .unspecified, isNewDevice: false),
      decision: DecisionID(from: SystemRandom()))
    let first = try await bench.apps.redeem(
      code, verifier: Bench.verifier, redirect: Bench.redirect, by: app, server)
    #expect(try await bench.claims(first.idToken)["from"] == .text(office.description))
    let second = try await bench.apps.refresh(
      try #require(first.refresh).reveal(), scopes: nil, by: app, server)
    let granted = try await bench.apps.live(access: second.access.reveal(), server)
    #expect(try bench.apps.claims(of: granted, server).last?.value == .text(office.description))
  }

  /// Attack: an app asks for the claims of a refused user until the audit trail holds nothing else.
  @Test func onlyARefusedRefreshIsWritten() async throws {
    let rule = FunctionName("grafana.decide")
    let app = try Bench.app(decide: rule)
    let bench = try await Bench(app)
    let tokens = try await bench.tokens(app, in: try await bench.session())
    bench.reload(app) { $0.verdicts[rule] = { _ in .deny("elsewhere") } }
    for _ in 0..<3 { #expect(try await !bench.isLive(tokens.access)) }
    let refresh = try #require(tokens.refresh).reveal()
    #expect(try await bench.apps.live(refresh: refresh, by: app, bench.call) == nil)
    #expect(try await !bench.events().contains { $0.kind == .appRefused })
    #expect(try await Bench.error { _ = try await bench.refresh(tokens.refresh, app) } == "invalid_grant")
    #expect(try await bench.events().count { $0.kind == .appRefused } == 1)
  }

  /// Attack: a step that must be passed within five minutes counts for an offline authorization forever.
  @Test func offlineAccessIsJudgedByWhatWasPassed() async throws {
    let app = try Bench.app(
      requirement: AppRequirement(
        steps: [.passed(Bench.pin, within: nil), .passed(Bench.phone, within: .seconds(300))]))
    let bench = try await Bench(app)
    let session = try await bench.session([Bench.phone, Bench.pin])
    let tokens = try await bench.tokens(app, scopes: Self.offline, in: session)
    try await bench.apply(.endSession(session.session.token))
    bench.clock.advance(by: .seconds(299))
    let next = try await bench.refresh(tokens.refresh, app)
    bench.clock.advance(by: .seconds(1))
    #expect(try await Bench.error { _ = try await bench.refresh(next.refresh, app) } == "invalid_grant")
  }

  @Test func unusedTokenExpires() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    var tokens = try await bench.tokens(app, scopes: Self.offline, in: try await bench.session())
    bench.clock.advance(by: .seconds(29 * 86_400))
    tokens = try await bench.refresh(tokens.refresh, app)
    bench.clock.advance(by: .seconds(30 * 86_400))
    #expect(try await Bench.error { _ = try await bench.refresh(tokens.refresh, app) } == "invalid_grant")
  }

  @Test func appRevokesItsTokens() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let session = try await bench.session()
    let (one, two) = (try await bench.tokens(app, in: session), try await bench.tokens(app, in: session))
    try await bench.apps.revoke(try #require(one.refresh).reveal(), by: app, bench.call)
    #expect(try await !bench.isLive(one.access))
    #expect(try await bench.isLive(two.access))
    try await bench.apps.revoke(two.access.reveal(), by: app, bench.call)
    #expect(try await Bench.error { _ = try await bench.refresh(two.refresh, app) } == "invalid_grant")
    try await bench.apps.revoke("mga_nothing", by: app, bench.call)
  }

  @Test func accessTokenExpires() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let tokens = try await bench.tokens(app, in: try await bench.session())
    bench.clock.advance(by: .milliseconds(599_999))
    #expect(try await bench.isLive(tokens.access))
    bench.clock.advance(by: .milliseconds(1))
    #expect(try await !bench.isLive(tokens.access))
  }

  @Test func signedAccessTokensAreJudgedLikeOpaqueOnes() async throws {
    let app = try Bench.app(accessToken: .jwt(audience: ["https://api.example.com"]))
    let bench = try await Bench(app)
    let session = try await bench.session()
    let tokens = try await bench.tokens(app, scopes: ["openid", "groups"], in: session)
    let claims = try await bench.claims(tokens.access, type: JWTType.accessToken)
    #expect(claims["aud"] == .text("https://api.example.com") && claims["client_id"] == .text("grafana"))
    #expect(claims["scope"] == .text("openid groups") && claims["groups"] == .list([]))
    #expect(try await bench.isLive(tokens.access))
    // Attack: an ID token in place of an access token.
    #expect(try await !bench.isLive(try #require(tokens.idToken)))
    try await bench.apply(.endSession(session.session.token))
    #expect(try await !bench.isLive(tokens.access))
  }

  /// Attack: an app without a user gets scopes about users, or a public one gets tokens of its own.
  @Test func appsOfTheirOwnGetScopesOfTheirOwn() async throws {
    let app = try Bench.app(scopes: ["openid", "reports"], grants: [.clientCredentials])
    let open = try Bench.app("open", authentication: .none, grants: [.clientCredentials])
    let bench = try await Bench(app, open)
    let tokens = try await bench.apps.issue(to: app, scopes: nil, bench.call)
    #expect(tokens.scopes == ["reports"] && tokens.refresh == nil && tokens.idToken == nil)
    let granted = try await bench.apps.live(access: tokens.access.reveal(), bench.call)
    #expect(granted.live.grant.account == nil && granted.live.snapshot == nil)
    #expect(
      try await Bench.error { _ = try await bench.apps.issue(to: app, scopes: ["openid"], bench.call) }
        == "invalid_scope")
    #expect(
      try await Bench.error { _ = try await bench.apps.issue(to: open, scopes: nil, bench.call) }
        == "unauthorized_client")
    try await bench.apps.revoke(tokens.access.reveal(), by: app, bench.call)
    #expect(try await !bench.isLive(tokens.access))
  }
}
