import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Personal access tokens.
@Suite struct PersonalTokenTests {
  private func own(takesTokens: Bool = true) async throws -> (EngineTestBench, SessionSnapshot) {
    let desk = try await EngineTestBench { generation in
      guard takesTokens else { return }
      generation.routes = RouteTable(routes: [
        Route(
          host: nil, path: PathPattern(text: "/dav/**", segments: [.glob(Array("dav".utf8)), .anySegments]),
          methods: nil,
          upstreams: [Upstream(isSecure: false, host: "127.0.0.1", port: 1)], isOpen: false, flow: "login",
          requirement: nil, decide: nil,
          timeout: .seconds(1), allowsUpgrade: false, headers: [], bodyLimit: nil,
          tokens: RouteTokens(takesPersonal: true),
          location: SourceLocation(file: "routes.lua", line: 1))
      ])
    }
    return (desk, try await session(desk, "register"))
  }

  private func session(_ desk: EngineTestBench, _ flow: String) async throws -> SessionSnapshot {
    let id = try await desk.begun(flow)
    let view = try await desk.submit(id, desk.code).get()
    let token = try #require(view.session?.token)
    return try #require(try await desk.store.session(TokenHash(of: token.reveal().utf8)))
  }

  private func directory(_ desk: EngineTestBench) -> AccessTokenDirectory {
    AccessTokenDirectory(
      store: desk.store, generations: desk.generations, keys: desk.keys, clock: desk.clock, random: SystemRandom(),
      logger: desk.log.logger)
  }

  private func make(_ desk: EngineTestBench, _ session: SessionSnapshot, _ name: String = "backup") async -> Result<
    CreatedAccessToken, Refusal
  > {
    await desk.engine.makeToken(named: name, for: .seconds(86_400), client: desk.client(session: session))
  }

  private func finds(_ desk: EngineTestBench, _ secret: SecretText) async throws -> SessionSnapshot? {
    guard case .live(let found) = try await directory(desk).find(secret, from: .unspecified) else { return nil }
    return found
  }

  @Test func aTokenIsItsOwnerWithoutAnyStep() async throws {
    let (desk, session) = try await own()
    let made = try await make(desk, session).get()
    let found = try #require(try await finds(desk, made.secret))
    #expect(
      found.account == session.account && found.session.passed.isEmpty && found.token?.owner?.id == session.account.id)
    #expect(found.sessionFacts(at: desk.clock.now()).aal == 0)
    #expect(try await desk.engine.personalTokens(client: desk.client(session: session)).get() == [made.token])
    // Attack: a program uses a step-up that the owner passed.
    let route = try #require(desk.generations.current.personalTokenRoutes.first)
    let strict = Route(
      host: nil, path: route.path, methods: nil, upstreams: route.upstreams, isOpen: false, flow: "login",
      requirement: .passed(EngineTestBench.phone, within: nil),
      decide: nil, timeout: .seconds(1), allowsUpgrade: false, headers: [], bodyLimit: nil,
      tokens: RouteTokens(takesPersonal: true),
      location: route.location)
    #expect(strict.verdict(session, .success(.none), at: desk.clock.now()) { _, _, _ in .allow } == .pass)
    #expect(
      strict.verdict(found, .success(.none), at: desk.clock.now()) { _, _, _ in .allow }
        == .needs(EngineTestBench.phone))
  }

  /// Attack: a stolen session without a recent proof creates a token, and access lasts for a year.
  @Test func makingOneNeedsARecentProof() async throws {
    let (desk, session) = try await own()
    desk.clock.advance(by: .seconds(601))
    #expect(await make(desk, session).refusal?.code == .stepUpRequired)
    #expect(await desk.engine.mayMakeToken(client: desk.client(session: session)).refusal?.code == .stepUpRequired)
    #expect(await make(desk, session, "").refusal?.code == .stepUpRequired)
    #expect(
      await desk.engine.makeToken(named: "x", for: .seconds(86_400), client: desk.client()).refusal?.code
        == .unauthenticated)
    #expect(try await desk.store.accessTokens(of: session.account.id).isEmpty)
  }

  /// Attack: a thief's token outlives the owner's "sign out everywhere", a changed factor, or an operator's lock.
  @Test(arguments: ["everywhere", "epoch", "locked", "deleted", "disabled"]) func aTokenEndsWithWhatEndsSessions(
    _ how: String
  ) async throws {
    let (desk, session) = try await own()
    let made = try await make(desk, session).get()
    #expect(try await finds(desk, made.secret) != nil)
    let account = session.account.id
    let operate = AccountAdministration(
      store: desk.store, providers: try ProviderRegistry([]), keys: desk.keys, clock: desk.clock, random: SystemRandom()
    )
    switch how {
    case "everywhere":
      try await SessionEnding(store: desk.store, clock: desk.clock, random: SystemRandom()).endAll(
        of: account, by: .unspecified)
    case "epoch": _ = try await desk.store.apply([.raiseEpoch(account: account)], at: desk.clock.now())
    case "locked":
      _ = try await operate.lock(account)
      #expect(try await finds(desk, made.secret) == nil)
      _ = try await operate.unlock(account)
    case "disabled": _ = try await operate.disable(account)
    default: _ = try await operate.delete(account)
    }
    #expect(try await finds(desk, made.secret) == nil)
    let sweep = AccessTokenSweep(store: desk.store, clock: desk.clock, random: SystemRandom())
    _ = try await sweep.step()
    #expect(try await desk.store.accessTokens(of: account).isEmpty, "it is gone, and told of")
    let told = try await desk.store.events(limit: 100).count {
      $0.kind == .tokenRevoked && $0.detail["reason"] == "account_changed"
    }
    #expect(told == (how == "deleted" ? 0 : 1))
  }

  @Test func namesAndLifetimesAreHeldToTheirBounds() async throws {
    let (desk, session) = try await own()
    for name in ["", "   ", String(repeating: "n", count: 61), "line\nbreak\u{0}", "right\u{202e}left"] {
      let refusal = await make(desk, session, name).refusal
      #expect(refusal?.code == .invalidInput && refusal?.field == "name", "\(name)")
    }
    _ = try await make(desk, session, "  my   laptop ").get()
    #expect(await make(desk, session, "my laptop").refusal?.field == "name", "it is the same name")
    for lifetime in [Duration.zero, .seconds(86_399), .seconds(367 * 86_400)] {
      let refusal = await desk.engine.makeToken(named: "x", for: lifetime, client: desk.client(session: session))
        .refusal
      #expect(refusal?.code == .invalidInput && refusal?.field == "expires")
    }
    for number in 1..<FlowEngine.maxPersonalTokens { _ = try await make(desk, session, "t\(number)").get() }
    #expect(await make(desk, session, "one more").refusal?.code == .denied)
  }

  @Test func userRevokesOnlyOwnTokens() async throws {
    let (desk, session) = try await own()
    let made = try await make(desk, session).get()
    let other = try await desk.begun("register", phone: "918888888888")
    let token = try #require(try await desk.submit(other, desk.code).get().session?.token)
    let stranger = try #require(try await desk.store.session(TokenHash(of: token.reveal().utf8)))
    #expect(
      await desk.engine.revokeToken(made.token.id, client: desk.client(session: stranger)).refusal?.code == .notFound)
    #expect(try await desk.engine.personalTokens(client: desk.client(session: stranger)).get().isEmpty)
    try await desk.engine.revokeToken(made.token.id, client: desk.client(session: session)).get()
    #expect(try await finds(desk, made.secret) == nil)
    #expect(
      await desk.engine.revokeToken(made.token.id, client: desk.client(session: session)).refusal?.code == .notFound)
  }

  @Test func whereNoRouteTakesThemThereAreNone() async throws {
    let (desk, session) = try await own(takesTokens: false)
    #expect(await make(desk, session).refusal?.code == .denied)
  }

  @Test func anExportListsTokensWithoutTheirSecrets() async throws {
    let (desk, session) = try await own()
    let made = try await make(desk, session).get()
    #expect(try await desk.engine.exportAccount(client: desk.client(session: session)).get().tokens == [made.token])
  }
}
