import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// Access tokens that the gateway itself sends to services (`bearer` of a route).
@Suite struct ServiceTokenTests {
  private typealias Bench = AppsTestBench
  private static let audience = ["https://reports.example.com"]
  private static let decide = FunctionName("grafana.decide")

  private static func app(
    requirement: AppRequirement = AppRequirement(), decide: FunctionName? = nil, claims: FunctionName? = nil,
    accessToken: AccessTokenForm = .jwt(audience: audience), isPairwise: Bool = false
  ) throws -> App {
    // The user is never asked, whatever the app says.
    try Bench.app(
      consent: .always, requirement: requirement, decide: decide, claims: claims, accessToken: accessToken,
      isPairwise: isPairwise)
  }

  private func call(_ bench: Bench, from address: [UInt8], _ userAgent: String? = nil) throws -> AppCall {
    let address = try #require(ClientAddress(bytes: address))
    return AppCall(
      generation: bench.generations.current,
      client: ClientFacts(address: address, userAgent: userAgent, isNewDevice: false),
      decision: DecisionID(from: SystemRandom()))
  }

  private func token(
    _ app: App, in session: SessionSnapshot, _ bench: Bench, _ call: AppCall? = nil
  ) async throws -> (text: SecretText, until: Timestamp) {
    guard case .token(let text, let end) = await bench.apps.serviceToken(of: app, for: session, call ?? bench.call)
    else { throw StoreFault("no token") }
    return (text, end)
  }

  private func refusal(_ app: App, in session: SessionSnapshot, _ bench: Bench) async throws -> AppVerdict? {
    guard case .refused(let verdict) = await bench.apps.serviceToken(of: app, for: session, bench.call) else {
      return nil
    }
    return verdict
  }

  /// RFC 9068 section 2.2.
  @Test func tokenStatesTheUserAndTheSession() async throws {
    let app = try Self.app()
    let bench = try await Bench(app)
    try await bench.apply(.setGroupMembership(account: Bench.account, Bench.staff, true))
    let session = try await bench.session()
    let token = try await token(app, in: session, bench)
    let now = bench.clock.now()
    #expect(token.until == now + .seconds(600))
    let claims = try await bench.claims(token.text, type: JWTType.accessToken)
    #expect(claims["sub"] == .text(Bench.account) && claims["client_id"] == .text("grafana"))
    #expect(claims["aud"] == .text("https://reports.example.com"))
    #expect(claims["iat"]?.number == Double(now.seconds) && claims["exp"]?.number == Double(now.seconds + 600))
    #expect(claims["auth_time"]?.number == Double(now.seconds) && claims["acr"] == .text(AppSignIn.acr(1)))
    #expect(claims["amr"] == .list([.text("otp")]) || claims["amr"] == .list([.text("otp"), .text("sms")]))
    #expect(claims["groups"] == .list([.text("staff")]))
    // A service must not outlive the session.
    #expect(claims["scope"] == .text("email groups openid phone profile"))
    let id = try #require(claims["jti"]?.text)
    #expect(!id.contains(session.session.id) && !id.contains(Bench.account))
    #expect(try await self.token(app, in: session, bench).text != token.text)
    let granted = try await bench.apps.live(access: token.text.reveal(), bench.call)
    #expect(granted.app.id == "grafana" && granted.live.grant.account == Bench.account)
  }

  /// Nothing is stored, so the user has no app to disconnect, and the operator no row for each session.
  @Test func nothingIsStored() async throws {
    let app = try Self.app()
    let bench = try await Bench(app)
    _ = try await token(app, in: try await bench.session(), bench)
    #expect(try await bench.store.appConnections(of: Bench.account).isEmpty)
    #expect(try await bench.events().isEmpty)
    #expect(String(describing: bench.apps.metrics.families).contains("issued"))
  }

  @Test func subjectIsPairwise() async throws {
    let app = try Self.app(isPairwise: true)
    let bench = try await Bench(app)
    let claims = try await bench.claims(
      try await token(app, in: try await bench.session(), bench).text, type: JWTType.accessToken)
    #expect(claims["sub"] == .text(app.subject(of: Bench.account, keys: bench.keys)))
    #expect(claims["sub"] != .text(Bench.account))
  }

  /// Attack: a token is valid after its session has ended.
  @Test func tokenExpiresWithTheSession() async throws {
    let app = try Self.app()
    let bench = try await Bench(app)
    let session = try await bench.session()
    let end = session.session.expiresAt
    bench.clock.advance(by: .seconds(86_400 - 60))
    let token = try await token(app, in: session, bench)
    #expect(token.until == end)
    #expect(
      try await bench.claims(token.text, type: JWTType.accessToken)["exp"]?.number == Double(end.seconds))
  }

  /// Attack: an API that asks about a token gets an old answer.
  @Test(arguments: 0..<5) func introspectionSeesTheSessionAsItIs(_ change: Int) async throws {
    let app = try Self.app(requirement: AppRequirement(groups: GroupRequirement(anyOf: [Bench.staff])))
    let bench = try await Bench(app)
    try await bench.apply(.setGroupMembership(account: Bench.account, Bench.staff, true))
    let session = try await bench.session()
    let text = try await token(app, in: session, bench).text
    #expect(try await bench.isLive(text))
    switch change {
    case 0: try await bench.apply(.endSession(session.session.token))
    case 1: try await bench.apply(.setGroupMembership(account: Bench.account, Bench.staff, false))
    case 2: try await bench.apply(.raiseEpoch(account: Bench.account))
    case 3: bench.reload()
    default: bench.clock.advance(by: .seconds(600))
    }
    #expect(try await !bench.isLive(text))
  }

  /// An opaque token can only be asked about.
  @Test func opaqueTokenIsLiveToo() async throws {
    let app = try Self.app(accessToken: .opaque)
    let bench = try await Bench(app)
    let session = try await bench.session()
    let text = try await token(app, in: session, bench).text
    #expect(text.reveal().hasPrefix("mga_"))
    #expect(try await bench.isLive(text))
    try await bench.apply(.endSession(session.session.token))
    #expect(try await !bench.isLive(text))
  }

  @Test func rulesOfTheAppDecide() async throws {
    let factors = try Self.app(requirement: AppRequirement(factors: 2))
    let bench = try await Bench(factors)
    let session = try await bench.session()
    #expect(try await refusal(factors, in: session, bench) == .needsFactors(2))
    let staff = GroupRequirement(anyOf: [Bench.staff])
    let grouped = try Self.app(requirement: AppRequirement(groups: staff))
    #expect(try await refusal(grouped, in: session, bench) == .judged(.notInGroup(staff)))
    let stepped = try Self.app(requirement: AppRequirement(steps: [.passed(Bench.pin, within: nil)]))
    #expect(try await refusal(stepped, in: session, bench) == .judged(.needs(Bench.pin)))
    let judged = try Self.app(decide: Self.decide)
    bench.reload(judged) { $0.verdicts[Self.decide] = { _ in .deny("not_today") } }
    #expect(try await refusal(judged, in: session, bench) == .judged(.denied("not_today")))
    #expect(try await bench.events().isEmpty, "each request of a refused user would be an event")
  }

  /// Attack: a personal access token in place of a session.
  @Test func programGetsNone() async throws {
    let app = try Self.app()
    let bench = try await Bench(app)
    let session = try await bench.session()
    let token = AccessToken(
      id: "tk_1", name: "ci", owner: AccountVersion(session.account), networks: [], createdAt: bench.clock.now(),
      expiresAt: nil,
      hash: AccessTokenHash(key: "test", bytes: []))
    let program = SessionSnapshot(session: session.session, account: session.account, token: token)
    #expect(try await refusal(app, in: program, bench) == .judged(.noSession))
  }

  /// Attack: `decide` lets in one network, and the server of the API, which is there, asks about the token of a user
  /// who is elsewhere; or it lets in the user, and the server is elsewhere.
  @Test func rulesSeeTheUserAndNotTheServer() async throws {
    let app = try Self.app(decide: Self.decide)
    let bench = try await Bench(app)
    bench.reload(app) {
      $0.verdicts[Self.decide] = {
        $0.client.address.description == "198.51.100.9" && $0.client.userAgent == "Firefox"
          ? .allow : .deny("elsewhere")
      }
    }
    let session = try await bench.session()
    let user = try call(bench, from: [198, 51, 100, 9], "Firefox")
    let text = try await token(app, in: session, bench, user).text
    #expect(try await bench.isLive(text), "the server has another address")
    bench.reload(app) {
      $0.verdicts[Self.decide] = { $0.client.address.description == "192.0.2.7" ? .allow : .deny("x") }
    }
    #expect(try await !bench.isLive(text))
  }

  @Test func failingFunctionGivesNoToken() async throws {
    let function = FunctionName("grafana.claims")
    let app = try Self.app(claims: function)
    let bench = try await Bench(app)
    @Sendable func failing(facts: Facts) throws(PolicyFault) -> [String: JSONClaim] {
      throw PolicyFault(kind: .error, location: nil, message: "no luck")
    }
    bench.reload(app) { $0.appClaims[function] = failing }
    let answer = await bench.apps.serviceToken(of: app, for: try await bench.session(), bench.call)
    guard case .failed(.policy(let fault)) = answer else {
      Issue.record("\(answer)")
      return
    }
    #expect(fault.message == "no luck")
  }

  /// Attack: a service revokes the token of another app, or makes up the ID of a grant that names a session.
  @Test func idIsSealed() async throws {
    let app = try Self.app()
    let bench = try await Bench(app)
    let session = try await bench.session()
    let text = try await token(app, in: session, bench).text
    let signIn = AppSignIn(nonce: nil, authTime: bench.clock.now(), aal: 1, amr: [], passed: [])
    let grant = ServiceGrant(app, session, signIn)
    let others = try KeyRing(master: [UInt8](repeating: 8, count: 32))
    #expect(bench.keys.serviceGrant(try others.sealed(grant)) == nil)
    #expect(bench.keys.serviceGrant(try bench.keys.sealed(grant)) == grant)
    #expect(bench.keys.serviceGrant("ag_" + String(repeating: "A", count: 22)) == nil)
    // A token of a service ends with its session only.
    try await bench.apps.revoke(text.reveal(), by: app, bench.call)
    #expect(try await bench.isLive(text))
  }
}
