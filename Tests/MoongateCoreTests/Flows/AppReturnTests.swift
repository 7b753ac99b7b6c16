import Crypto
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// An app takes over a flow that a browser completed (PKCE).
@Suite struct AppReturnTests {
  private let verifier = String(repeating: "v", count: 43)

  private var app: AppReturn? {
    AppReturn(
      challenge: Base64URL.encode(SHA256.hash(data: Array(verifier.utf8))), address: "https://app.example.com/back?x=1")
  }

  private func completed(_ bench: EngineTestBench, browser: TokenHash? = nil) async throws -> (FlowView, code: String) {
    let app = try #require(app)
    let client = bench.client(browser: browser)
    let id = try await bench.engine.create("enter", returnTo: nil, browser: browser, app: app, client: client).get().id
    _ = try await bench.engine.begin(id, provider: "phone_otp", fields: ["phone": .text("911111")], client: client)
      .get()
    let view = try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: client).get()
    let next = try #require(view.next)
    #expect(next.hasPrefix("https://app.example.com/back?x=1&code="))
    return (view, String(next.dropFirst("https://app.example.com/back?x=1&code=".count)))
  }

  private func redeem(
    _ bench: EngineTestBench, _ id: FlowID, _ code: String, _ verifier: String, browser: TokenHash? = nil
  ) async -> Result<FlowView, Refusal> {
    await bench.engine.submit(
      id, fields: ["code": .text(code), "code_verifier": .text(verifier)], client: bench.client(browser: browser))
  }

  /// A browser that redeems the code of its own flow is signed in by cookies, like at the end of any browser flow.
  @Test(arguments: [nil, TokenHash(of: "browser".utf8)]) func redeemedSessionStatesWhetherTheFlowWasABrowsers(
    browser: TokenHash?
  )
    async throws
  {
    let bench = try await EngineTestBench.full()
    let (view, code) = try await completed(bench, browser: browser)
    let redeemed = try await redeem(bench, view.id, code, verifier, browser: browser).get()
    #expect(redeemed.session != nil && redeemed.isOfBrowser == (browser != nil))
  }

  @Test func codeIsRedeemedOnceWithTheVerifier() async throws {
    let bench = try await EngineTestBench.full()
    let (view, code) = try await completed(bench)
    #expect(view.session == nil, "the browser gets no session of its own")
    let account = try #require(view.account).id
    #expect(try await bench.store.sessions(of: account).isEmpty)
    // Attack: an attacker who created the flow and sent its link can view the flow, but gets neither code nor token.
    let seen = try await bench.engine.view(view.id, client: bench.client()).get()
    #expect(seen.session == nil && seen.next == nil)
    #expect(await redeem(bench, view.id, code, String(repeating: "w", count: 43)).refusal?.code == .invalidCode)
    #expect(await redeem(bench, view.id, "wrong", verifier).refusal?.code == .invalidCode)
    let redeemed = try await redeem(bench, view.id, code, verifier).get()
    #expect(redeemed.session?.token != nil)
    #expect(try await bench.store.sessions(of: account).count == 1)
    #expect(await redeem(bench, view.id, code, verifier).refusal?.code == .stepNotOpen)
  }

  @Test func parallelRedemptionsSucceedOnce() async throws {
    let bench = try await EngineTestBench.full()
    let (view, code) = try await completed(bench)
    let wins = try await withThrowingTaskGroup(of: Bool.self) { group in
      for _ in 0..<50 { group.addTask { await redeem(bench, view.id, code, verifier).refusal == nil } }
      return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(wins == 1)
    #expect(try await bench.store.sessions(of: try #require(view.account).id).count == 1)
  }

  /// Attack: the owner sets up a second factor while an app code that was issued without it is still unused.
  @Test func settingUpAFactorInvalidatesTheCode() async throws {
    let bench = try await EngineTestBench.full()
    let (view, code) = try await completed(bench)
    let owner = try #require(
      try await bench.session(try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())))
    _ = try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: owner)).get()
    #expect(await redeem(bench, view.id, code, verifier).refusal?.code == .flowExpired)
  }

  @Test func codeExpiresAfterAMinute() async throws {
    let bench = try await EngineTestBench.full()
    let (view, code) = try await completed(bench)
    bench.clock.advance(by: .seconds(60))
    #expect(await redeem(bench, view.id, code, verifier).refusal?.code == .codeExpired)
  }

  @Test(arguments: ["", "short", "ÄÖÜ", String(repeating: "A", count: 42), String(repeating: "A", count: 44)])
  func invalidChallengesAreRefused(text: String) {
    #expect(AppReturn(challenge: text, address: "/") == nil)
  }

  @Test func anAccountsOwnFlowIsNotHandedOver() async throws {
    let bench = try await EngineTestBench.full()
    let own = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())))
    let refusal = await bench.engine.create(
      "step_up", returnTo: nil, browser: nil, app: app, client: bench.client(session: own)
    ).refusal
    #expect(refusal?.code == .invalidInput)
  }
}
