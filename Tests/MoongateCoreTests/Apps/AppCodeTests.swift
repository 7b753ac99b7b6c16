import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// Authorization codes: what they give, and to whom.
@Suite struct AppCodeTests {
  private typealias Bench = AppsTestBench

  @Test func codeGivesTokens() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let session = try await bench.session([Bench.phone, Bench.pin])
    let tokens = try await bench.tokens(app, in: session)
    #expect(tokens.scopes == ["openid", "email"] && tokens.expiresIn == .seconds(600))
    #expect(tokens.access.reveal().hasPrefix("mga_") && tokens.refresh?.reveal().hasPrefix("mgr_") == true)
    let claims = try await bench.claims(tokens.idToken)
    #expect(claims["iss"] == .text("http://localhost:8080") && claims["sub"] == .text(Bench.account))
    #expect(claims["aud"] == .text("grafana") && claims["azp"] == .text("grafana"))
    #expect(claims["nonce"] == .text("n1") && claims["acr"] == .text("urn:moongate:aal:2"))
    #expect(claims["amr"] == .list(["otp", "sms", "mfa"].map(JSONClaim.text)))
    #expect(claims["auth_time"]?.number == Double(ManualClock.start.seconds))
    #expect(claims["exp"]?.number == Double(ManualClock.start.seconds + 300))
    #expect(claims["at_hash"] == .text(Base64URL.encode(TokenHash(of: tokens.access.reveal().utf8).bytes.prefix(16))))
    #expect(claims["email"] == .text("asha@example.com") && claims["email_verified"] == .flag(true))
    let granted = try await bench.apps.live(access: tokens.access.reveal(), bench.call)
    #expect(granted.live.grant.account == Bench.account && granted.scopes == ["openid", "email"])
    // `sid` names the session, and is not its ID.
    #expect(claims["sid"]?.text == granted.live.grant.sid && claims["sid"]?.text != session.session.id)
    #expect(try await bench.events().map(\.kind).contains(.appAuthorized))
    #expect(try await bench.store.appConnections(of: Bench.account).map(\.app) == ["grafana"])
  }

  /// Attack: a code that was read on the way is used a second time. What the first use got ends (RFC 6749 section
  /// 4.1.2).
  @Test(arguments: [false, true]) func secondUseEndsTheFirst(isOffline: Bool) async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let scopes = isOffline ? ["openid", "offline_access"] : ["openid"]
    let session = try await bench.session()
    let code = try await bench.code(app, scopes: scopes, in: session)
    let tokens = try await bench.redeem(code, app)
    #expect(try await bench.isLive(tokens.access))
    if isOffline { try await bench.apply(.endSession(session.session.token)) }
    #expect(try await Bench.error { _ = try await bench.redeem(code, app) } == "invalid_grant")
    #expect(try await !bench.isLive(tokens.access))
    #expect(try await Bench.error { _ = try await bench.refresh(tokens.refresh, app) } == "invalid_grant")
    let event = try #require(try await bench.events().first { $0.kind == .appRevoked })
    #expect(event.detail["reason"] == "code_reuse" && event.detail["app"] == "grafana")
  }

  /// Attack: several uses at the same moment. One transaction decides, and the others end what it got.
  @Test func concurrentUsesGetOneAnswerAtMost() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let code = try await bench.code(app, in: try await bench.session())
    let answers = await withTaskGroup(of: AppTokens?.self) { group in
      for _ in 0..<8 { group.addTask { try? await bench.redeem(code, app) } }
      return await group.reduce(into: [AppTokens]()) { found, answer in if let answer { found.append(answer) } }
    }
    #expect(answers.count == 1)
    #expect(try await !bench.isLive(try #require(answers.first).access))
  }

  /// Attack: an app redeems the code of another one. It gets nothing, and the other one still does.
  @Test func anotherAppGetsAndSpendsNothing() async throws {
    let (app, other) = (try Bench.app(), try Bench.app("other"))
    let bench = try await Bench(app, other)
    let code = try await bench.code(app, in: try await bench.session())
    #expect(try await Bench.error { _ = try await bench.redeem(code, other) } == "invalid_grant")
    let tokens = try await bench.redeem(code, app)
    #expect(try await Bench.error { _ = try await bench.redeem(code, other) } == "invalid_grant")
    #expect(try await bench.isLive(tokens.access), "nor can it end the authorization")
  }

  /// Attack: someone who has read the code, but does not know the verifier.
  @Test(arguments: [nil, "", "v", String(repeating: "w", count: 43)]) func verifierMustBeRight(_ verifier: String?)
    async throws
  {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let code = try await bench.code(app, in: try await bench.session())
    #expect(try await Bench.error { _ = try await bench.redeem(code, app, verifier: verifier) } == "invalid_grant")
    _ = try await bench.redeem(code, app)
  }

  /// Attack: PKCE downgrade. The attacker removes the challenge from the request, and injects the code into a session
  /// of the app, which sends its verifier (RFC 9700 section 4.8.2).
  @Test func verifierWithoutChallengeProvesNothing() async throws {
    let app = try Bench.app(pkceIsOptional: true)
    let bench = try await Bench(app)
    let request = try bench.request(app, challenge: nil)
    let code = try await bench.apps.authorize(
      request, app, in: try await bench.session(), agreed: true, bench.call
    ).reveal()
    #expect(try await Bench.error { _ = try await bench.redeem(code, app) } == "invalid_grant")
    _ = try await bench.redeem(code, app, verifier: nil)
  }

  /// Attack: an app becomes public, and somebody reads a code of a request that began before, without a challenge.
  @Test func challengeIsDemandedAgain() async throws {
    let app = try Bench.app(pkceIsOptional: true)
    let bench = try await Bench(app)
    let (request, session) = (try bench.request(app, challenge: nil), try await bench.session())
    let code = try await bench.apps.authorize(request, app, in: session, agreed: true, bench.call).reveal()
    let open = try Bench.app(authentication: .none)
    bench.reload(open)
    #expect(try await Bench.error { _ = try await bench.redeem(code, open, verifier: nil) } == "invalid_grant")
    #expect(
      try await bench.apps.next(request, open, in: session, bench.call)
        == .refuse(OAuthError("invalid_request", "code_challenge is missing."), nil))
  }

  /// Attack: an app that must use PKCE, or a public one, leaves it out.
  @Test func challengeIsMissingOnlyWhereItMayBe() throws {
    let of = { (app: App, challenge: String?) in
      Grant(app: app, redirect: Bench.redirect, challenge: challenge, scopes: [])
    }
    #expect(of(try Bench.app(), nil) == nil)
    #expect(of(try Bench.app(authentication: .none, pkceIsOptional: true), nil) == nil)
    #expect(of(try Bench.app(pkceIsOptional: true), nil) != nil)
    #expect(of(try Bench.app(pkceIsOptional: true), "plain") == nil)
    #expect(of(try Bench.app(), Bench.challenge) != nil)
    // The result of a flow of the API is a session, so it always needs one.
    #expect(Grant(client: "grafana", redirect: Bench.redirect, challenge: "") == nil)
  }

  /// Attack: a code that was made for another redirect URI of the app, where somebody else reads.
  @Test(arguments: [nil, "", "https://grafana.example.com/in/", "https://grafana.example.com/other"])
  func redirectMustBeTheSame(_ redirect: String?) async throws {
    let app = try Bench.app(redirects: [Bench.redirect, "https://grafana.example.com/other"])
    let bench = try await Bench(app)
    let code = try await bench.code(app, in: try await bench.session())
    #expect(try await Bench.error { _ = try await bench.redeem(code, app, redirect: redirect) } == "invalid_grant")
  }

  @Test func codeExpiresAfterAMinute() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let session = try await bench.session()
    let (early, late) = (try await bench.code(app, in: session), try await bench.code(app, in: session))
    bench.clock.advance(by: .milliseconds(59_999))
    _ = try await bench.redeem(early, app)
    bench.clock.advance(by: .milliseconds(1))
    #expect(try await Bench.error { _ = try await bench.redeem(late, app) } == "invalid_grant")
  }

  /// Attack: texts that are no codes: made up, cut, or sealed for something else.
  @Test func forgedCodesAreRefused() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let code = try await bench.code(app, in: try await bench.session())
    let other = try KeyRing(master: [UInt8](repeating: 8, count: 32))
    let opened = try #require(bench.keys.authorizationCode(code))
    for text in [
      "", "x", String(code.dropLast()), code + "A", String(repeating: "A", count: 9000),
      try bench.keys.sealed(try bench.request(app)), try other.code(opened).reveal(),
    ] {
      #expect(try await Bench.error { _ = try await bench.redeem(text, app) } == "invalid_grant")
    }
  }

  /// Attack: the user signs out, or somebody is locked out, between the authorization and the redemption.
  @Test(arguments: 0..<3) func authorizationEndsWithItsSession(_ change: Int) async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let session = try await bench.session()
    let code = try await bench.code(app, scopes: ["openid", "offline_access"], in: session)
    switch change {
    case 0: try await bench.apply(.endSession(session.session.token))
    case 1: try await bench.apply(.setLocked(account: Bench.account, true))
    default: try await bench.apply(.raiseEpoch(account: Bench.account))
    }
    #expect(try await Bench.error { _ = try await bench.redeem(code, app) } == "invalid_grant")
  }

  /// Attack: an app keeps its code back until the user has disconnected it, and perhaps connected it again.
  @Test(arguments: [false, true]) func disconnectingEndsCodes(isConnectedAgain: Bool) async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let session = try await bench.session()
    let code = try await bench.code(app, scopes: ["openid", "offline_access"], in: session)
    bench.clock.advance(by: .seconds(1))
    try await bench.apply(.endAppConnection(account: Bench.account, app: app.id))
    if isConnectedAgain { _ = try await bench.tokens(app, in: session) }
    #expect(try await Bench.error { _ = try await bench.redeem(code, app) } == "invalid_grant")
    #expect(try await bench.store.appConnections(of: Bench.account).count == (isConnectedAgain ? 1 : 0))
  }

  /// Attack: a user who has left the group in the last minute keeps a code until being in the group again.
  @Test func groupIsJudgedAgainAtTheRedemption() async throws {
    let app = try Bench.app(requirement: AppRequirement(groups: GroupRequirement(anyOf: [Bench.staff])))
    let bench = try await Bench(app)
    try await bench.apply(.setGroupMembership(account: Bench.account, Bench.staff, true))
    let code = try await bench.code(app, in: try await bench.session())
    try await bench.apply(.setGroupMembership(account: Bench.account, Bench.staff, false))
    #expect(try await Bench.error { _ = try await bench.redeem(code, app) } == "invalid_grant")
    let event = try #require(try await bench.events().first { $0.kind == .appRefused })
    #expect(event.detail["reason"] == "not_in_group" && event.detail["rule"] == "grafana.require")
    try await bench.apply(.setGroupMembership(account: Bench.account, Bench.staff, true))
    #expect(try await Bench.error { _ = try await bench.redeem(code, app) } == "invalid_grant")
  }

  /// Attack: the operator has removed the app or its redirect URI, because somebody else reads there.
  @Test func reloadRemovesWhatACodeReliesOn() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let session = try await bench.session()
    let code = try await bench.code(app, in: session)
    let tokens = try await bench.tokens(app, in: session)
    let moved = try Bench.app(redirects: ["https://grafana.example.com/new"])
    bench.reload(moved)
    #expect(try await Bench.error { _ = try await bench.redeem(code, moved) } == "invalid_grant")
    await #expect(throws: AppFault.self) {
      try await bench.apps.authorize(try bench.request(app), moved, in: session, agreed: true, bench.call)
    }
    #expect(try await bench.isLive(tokens.access))
    bench.reload()
    #expect(try await !bench.isLive(tokens.access))
  }

  /// Attack: someone opens the app's redirect URI with made-up codes, which the app's server redeems, until the server
  /// is refused for all users.
  @Test func madeUpCodesDoNotLockTheServerOfAnAppOut() async throws {
    let (app, open) = (try Bench.app(), try Bench.app("open", authentication: .none))
    let bench = try await Bench(app, open)
    for _ in 0..<61 { _ = try? await bench.redeem("x", app) }
    #expect(try await bench.apps.limiter.lockedUntil(bench.address, client: app.id) == nil)
    for _ in 0..<61 { _ = try? await bench.redeem("x", open) }
    #expect(try await bench.apps.limiter.lockedUntil(bench.address, client: open.id) != nil)
    // Neither another app nor tokens of routes are affected.
    #expect(try await bench.apps.limiter.lockedUntil(bench.address, client: app.id) == nil)
    #expect(try await bench.apps.limiter.lockedUntil(bench.address) == nil)
    #expect(try await bench.apps.limiter.lockedUntil(.unspecified, client: open.id) == nil)
  }

  /// Attack: a pushed request is used twice, or by a text that the gateway did not make.
  @Test func pushedRequestIsUsedOnce() async throws {
    let app = try Bench.app()
    let bench = try await Bench(app)
    let uri = try bench.keys.pushed(try bench.request(app))
    let request = try #require(bench.keys.pushedRequest(uri, at: bench.clock.now()))
    #expect(try await bench.apps.spend(pushed: request))
    #expect(try await !bench.apps.spend(pushed: request))
    #expect(bench.keys.pushedRequest(uri, at: bench.clock.now() + .seconds(90)) == nil)
    #expect(bench.keys.pushedRequest(uri + "A", at: bench.clock.now()) == nil)
    #expect(bench.keys.authorizationRequest(String(uri.dropFirst(34)), at: bench.clock.now()) == nil)
    // Attack: a request so long that its reference could never be used.
    var long = request
    long.essentialACR = Array(repeating: "urn:moongate:aal:2", count: 500)
    #expect(throws: OAuthError.self) { try bench.keys.pushed(long) }
    let sealed = try bench.keys.sealed(request)
    #expect(bench.keys.authorizationRequest(sealed, at: bench.clock.now()) == request)
    #expect(bench.keys.authorizationRequest(sealed, at: bench.clock.now() + .seconds(3600)) == nil)
  }
}
