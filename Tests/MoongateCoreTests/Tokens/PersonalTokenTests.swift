import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Personal access tokens.
@Suite struct PersonalTokenTests {
  private func own(takesTokens: Bool = true) async throws -> (EngineTestBench, SessionSnapshot) {
    let bench = try await EngineTestBench { generation in
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
    return (bench, try await session(bench, "register"))
  }

  private func session(_ bench: EngineTestBench, _ flow: String) async throws -> SessionSnapshot {
    let id = try await bench.begun(flow)
    let view = try await bench.submit(id, bench.code).get()
    let token = try #require(view.session?.token)
    return try #require(try await bench.store.session(TokenHash(of: token.reveal().utf8)))
  }

  private func directory(_ bench: EngineTestBench) -> AccessTokenDirectory {
    AccessTokenDirectory(
      store: bench.store, generations: bench.generations, keys: bench.keys, clock: bench.clock, random: SystemRandom(),
      logger: bench.log.logger)
  }

  private func make(_ bench: EngineTestBench, _ session: SessionSnapshot, _ name: String = "backup") async -> Result<
    CreatedAccessToken, Refusal
  > {
    await bench.engine.makeToken(named: name, for: .seconds(86_400), client: bench.client(session: session))
  }

  private func finds(_ bench: EngineTestBench, _ secret: SecretText) async throws -> SessionSnapshot? {
    guard case .live(let found) = try await directory(bench).find(secret, from: .unspecified) else { return nil }
    return found
  }

  @Test func tokenHasItsOwnersAccountAndNoPassedSteps() async throws {
    let (bench, session) = try await own()
    let made = try await make(bench, session).get()
    let found = try #require(try await finds(bench, made.secret))
    #expect(
      found.account == session.account && found.session.passed.isEmpty && found.token?.owner?.id == session.account.id)
    #expect(found.sessionFacts(at: bench.clock.now()).aal == 0)
    #expect(try await bench.engine.personalTokens(client: bench.client(session: session)).get() == [made.token])
    // Attack: a program uses a step-up that the owner passed.
    let route = try #require(bench.generations.current.personalTokenRoutes.first)
    let strict = Route(
      host: nil, path: route.path, methods: nil, upstreams: route.upstreams, isOpen: false, flow: "login",
      requirement: .passed(EngineTestBench.phone, within: nil),
      decide: nil, timeout: .seconds(1), allowsUpgrade: false, headers: [], bodyLimit: nil,
      tokens: RouteTokens(takesPersonal: true),
      location: route.location)
    #expect(strict.verdict(session, .success(.none), at: bench.clock.now()) { _, _, _ in .allow } == .pass)
    #expect(
      strict.verdict(found, .success(.none), at: bench.clock.now()) { _, _, _ in .allow }
        == .needs(EngineTestBench.phone))
  }

  /// Attack: a stolen session without a recent proof creates a token, and access lasts for a year.
  @Test func creatingATokenNeedsARecentProof() async throws {
    let (bench, session) = try await own()
    bench.clock.advance(by: .seconds(601))
    #expect(await make(bench, session).refusal?.code == .stepUpRequired)
    #expect(await bench.engine.mayMakeToken(client: bench.client(session: session)).refusal?.code == .stepUpRequired)
    #expect(await make(bench, session, "").refusal?.code == .stepUpRequired)
    #expect(
      await bench.engine.makeToken(named: "x", for: .seconds(86_400), client: bench.client()).refusal?.code
        == .unauthenticated)
    #expect(try await bench.store.accessTokens(of: session.account.id).isEmpty)
  }

  /// Attack: a thief's token outlives the owner's "sign out everywhere", a changed factor, or an operator's lock.
  @Test(arguments: ["everywhere", "epoch", "locked", "deleted", "disabled"]) func eventsThatEndSessionsEndTokens(
    _ how: String
  ) async throws {
    let (bench, session) = try await own()
    let made = try await make(bench, session).get()
    #expect(try await finds(bench, made.secret) != nil)
    let account = session.account.id
    let operate = AccountAdministration(
      store: bench.store, providers: try ProviderRegistry([]), keys: bench.keys, clock: bench.clock,
      random: SystemRandom()
    )
    switch how {
    case "everywhere":
      try await bench.engine.signOutEverywhere(keepsOwn: false, client: bench.client(session: session)).get()
    case "epoch": _ = try await bench.store.apply([.raiseEpoch(account: account)], at: bench.clock.now())
    case "locked":
      _ = try await operate.lock(account)
      #expect(try await finds(bench, made.secret) == nil)
      _ = try await operate.unlock(account)
    case "disabled": _ = try await operate.disable(account)
    default: _ = try await operate.delete(account)
    }
    #expect(try await finds(bench, made.secret) == nil)
    let sweep = AccessTokenSweep(store: bench.store, clock: bench.clock, random: SystemRandom())
    _ = try await sweep.step()
    #expect(try await bench.store.accessTokens(of: account).isEmpty, "it is gone, and told of")
    let told = try await bench.store.events(limit: 100).count {
      $0.kind == .tokenRevoked && $0.detail["reason"] == "account_changed"
    }
    #expect(told == (how == "deleted" ? 0 : 1))
  }

  /// Another site signs the user out of one browser. The user's scripts go on.
  @Test func keptTokensGoOn() async throws {
    let (bench, session) = try await own()
    let made = try await make(bench, session).get()
    let account = session.account
    _ = try await bench.store.apply([.raiseEpoch(account: account.id, keepsTokens: true)], at: bench.clock.now())
    #expect(try await finds(bench, made.secret) != nil)
    #expect(try await bench.store.account(account.id)?.epoch == account.epoch + 1)
  }

  @Test func invalidNamesAndLifetimesAreRefused() async throws {
    let (bench, session) = try await own()
    for name in ["", "   ", String(repeating: "n", count: 61), "line\nbreak\u{0}", "right\u{202e}left"] {
      let refusal = await make(bench, session, name).refusal
      #expect(refusal?.code == .invalidInput && refusal?.field == "name", "\(name)")
    }
    _ = try await make(bench, session, "  my   laptop ").get()
    #expect(await make(bench, session, "my laptop").refusal?.field == "name", "it is the same name")
    for lifetime in [Duration.zero, .seconds(86_399), .seconds(367 * 86_400)] {
      let refusal = await bench.engine.makeToken(named: "x", for: lifetime, client: bench.client(session: session))
        .refusal
      #expect(refusal?.code == .invalidInput && refusal?.field == "expires")
    }
    for number in 1..<FlowEngine.maxPersonalTokens { _ = try await make(bench, session, "t\(number)").get() }
    #expect(await make(bench, session, "one more").refusal?.code == .denied)
  }

  @Test func userRevokesOnlyOwnTokens() async throws {
    let (bench, session) = try await own()
    let made = try await make(bench, session).get()
    let other = try await bench.begun("register", phone: "918888888888")
    let token = try #require(try await bench.submit(other, bench.code).get().session?.token)
    let stranger = try #require(try await bench.store.session(TokenHash(of: token.reveal().utf8)))
    #expect(
      await bench.engine.revokeToken(made.token.id, client: bench.client(session: stranger)).refusal?.code == .notFound)
    #expect(try await bench.engine.personalTokens(client: bench.client(session: stranger)).get().isEmpty)
    try await bench.engine.revokeToken(made.token.id, client: bench.client(session: session)).get()
    #expect(try await finds(bench, made.secret) == nil)
    #expect(
      await bench.engine.revokeToken(made.token.id, client: bench.client(session: session)).refusal?.code == .notFound)
  }

  @Test func tokensAreDeniedIfNoRouteTakesThem() async throws {
    let (bench, session) = try await own(takesTokens: false)
    #expect(await make(bench, session).refusal?.code == .denied)
  }

  @Test func anExportListsTokensWithoutTheirSecrets() async throws {
    let (bench, session) = try await own()
    let made = try await make(bench, session).get()
    #expect(try await bench.engine.exportAccount(client: bench.client(session: session)).get().tokens == [made.token])
  }
}
