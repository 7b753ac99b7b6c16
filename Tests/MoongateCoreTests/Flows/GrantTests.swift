import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// An app receives the result of a flow that a browser completed: consent, the code, and its redemption (PKCE).
@Suite struct GrantTests {
  private let browser = TokenHash(of: "browser".utf8)
  private let other = TokenHash(of: "other".utf8)

  private func page(_ bench: EngineTestBench, _ browser: TokenHash? = nil, allowed: SecretText? = nil) -> ClientContext
  {
    var client = bench.client(browser: browser ?? self.browser, at: .page)
    client.allowedApps = allowed
    return client
  }

  // MARK: the code

  /// A browser that redeems the code of its own flow is signed in by cookies, like at the end of any browser flow.
  @Test(arguments: [nil, TokenHash(of: "browser".utf8)]) func redeemedSessionStatesWhetherTheFlowWasABrowsers(
    redeemer: TokenHash?
  )
    async throws
  {
    let bench = try await EngineTestBench.full()
    let (view, code) = try await bench.completedForApp(in: page(bench))
    let redeemed = try await bench.redeem(view.id, code, browser: redeemer).get()
    #expect(redeemed.session != nil && redeemed.isOfBrowser == (redeemer != nil))
  }

  @Test func codeIsRedeemedOnceWithTheVerifier() async throws {
    let bench = try await EngineTestBench.full()
    let (view, code) = try await bench.completedForApp(in: page(bench))
    #expect(view.session == nil, "the browser gets no session of its own")
    let account = try #require(view.account).id
    #expect(try await bench.store.sessions(of: account).isEmpty)
    // Attack: an attacker who created the flow and sent its link can view the flow, but gets neither code nor token.
    let seen = try await bench.engine.view(view.id, client: bench.client()).get()
    #expect(seen.session == nil && seen.next == nil)
    #expect(await bench.redeem(view.id, code, String(repeating: "w", count: 43)).refusal?.code == .invalidCode)
    #expect(await bench.redeem(view.id, "wrong").refusal?.code == .invalidCode)
    let redeemed = try await bench.redeem(view.id, code).get()
    #expect(redeemed.session?.token != nil)
    #expect(try await bench.store.sessions(of: account).count == 1)
    #expect(await bench.redeem(view.id, code).refusal?.code == .stepNotOpen)
  }

  /// Attack: the code of one app's flow is redeemed in a flow of another app, or in another flow of the same app.
  @Test func codeWorksOnlyInItsOwnFlow() async throws {
    let bench = try await EngineTestBench.full()
    let (first, code) = try await bench.completedForApp(in: page(bench))
    let (second, own) = try await bench.completedForApp(in: page(bench, other), phone: "922222")
    #expect(await bench.redeem(second.id, code).refusal?.code == .invalidCode)
    #expect(await bench.redeem(first.id, own).refusal?.code == .invalidCode)
    #expect(try await bench.redeem(second.id, own).get().session?.token != nil)
  }

  @Test func parallelRedemptionsSucceedOnce() async throws {
    let bench = try await EngineTestBench.full()
    let (view, code) = try await bench.completedForApp(in: page(bench))
    let wins = try await withThrowingTaskGroup(of: Bool.self) { group in
      for _ in 0..<50 { group.addTask { await bench.redeem(view.id, code).refusal == nil } }
      return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(wins == 1)
    #expect(try await bench.store.sessions(of: try #require(view.account).id).count == 1)
  }

  /// Attack: the owner sets up a second factor while an app code that was issued without it is still unused.
  @Test func settingUpAFactorInvalidatesTheCode() async throws {
    let bench = try await EngineTestBench.full()
    let (view, code) = try await bench.completedForApp(in: page(bench))
    let owner = try #require(
      try await bench.session(try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())))
    _ = try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: owner)).get()
    #expect(await bench.redeem(view.id, code).refusal?.code == .flowExpired)
  }

  @Test func codeExpiresAfterAMinute() async throws {
    let bench = try await EngineTestBench.full()
    let (view, code) = try await bench.completedForApp(in: page(bench))
    bench.clock.advance(by: .seconds(60))
    #expect(await bench.redeem(view.id, code).refusal?.code == .codeExpired)
  }

  @Test(arguments: ["", "short", "ÄÖÜ", String(repeating: "A", count: 42), String(repeating: "A", count: 44)])
  func invalidChallengesAreRefused(text: String) {
    #expect(Grant(client: "mobile", redirect: Grant.testRedirect, challenge: text) == nil)
  }

  @Test func anAccountsOwnFlowIsNotHandedOver() async throws {
    let bench = try await EngineTestBench.full()
    let own = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())))
    let refusal = await bench.engine.create(
      "step_up", returnTo: nil, browser: nil, grant: try .test(), client: bench.client(session: own)
    ).refusal
    #expect(refusal?.code == .invalidInput)
  }

  /// Attack: whoever redeems a stolen code is from then on a known device of the victim, for every factor that the
  /// victim passed: second factors for new devices are not asked for, and no notice is sent.
  @Test func theBrowserBecomesAKnownDeviceAndTheAppDoesNot() async throws {
    let bench = try await EngineTestBench.full()
    let (view, code) = try await bench.completedForApp(in: page(bench))
    let id = try #require(view.account?.id)
    let account = try #require(try await bench.store.account(id))
    let device = bench.keys.device(view.deviceToken, at: bench.clock.now())
    #expect(bench.keys.knows(device, account, by: EngineTestBench.phone))
    #expect(try await bench.redeem(view.id, code).get().deviceToken == nil)
  }

  @Test func eventsNameTheApp() async throws {
    let bench = try await EngineTestBench.full()
    let (view, code) = try await bench.completedForApp(in: page(bench))
    _ = try await bench.redeem(view.id, code).get()
    try await bench.audit.flush()
    let begun = try await bench.store.events(limit: 100).filter { $0.kind == .sessionStarted }
    #expect(begun.map { $0.detail["app"] } == ["mobile"])
  }

  // MARK: consent

  /// Attack: the link of a flow that an attacker created, opened by the victim: the victim signs in without having read
  /// which app receives the result.
  @Test(arguments: [App.Consent.once, .always]) func flowContinuesOnlyAfterConsent(consent: App.Consent) async throws {
    let bench = try await EngineTestBench.full { $0.apps = .test(consent) }
    let page = page(bench)
    let id = try await bench.openedForApp("enter", in: page)
    let phone: [String: InputValue] = ["phone": .text("911111")]
    #expect(try await bench.engine.view(id, client: page).get().app?.needsConsent == true)
    #expect(
      await bench.engine.begin(id, provider: "phone_otp", fields: phone, client: page).refusal?.code == .stepNotOpen)
    // The creator, another browser, and a script with the browser's cookie cannot agree.
    for client in [bench.client(), bench.client(browser: browser), self.page(bench, other)] {
      #expect(await bench.engine.allowApp(id, client: client).refusal?.code == .flowNotFound)
    }
    let (view, cookie) = try await bench.engine.allowApp(id, client: page).get()
    #expect(view.app == ReceivingApp(name: "Mobile", redirect: Grant.testRedirect, needsConsent: false))
    #expect((cookie != nil) == (consent == .once))
    _ = try await bench.engine.begin(id, provider: "phone_otp", fields: phone, client: page).get()
    let done = try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: page).get()
    #expect(done.next?.hasPrefix(Grant.testRedirect + "&code=") ?? false)
  }

  @Test func consentIsRememberedForItsAppInItsBrowser() async throws {
    let bench = try await EngineTestBench.full { $0.apps = .test(.once) }
    let first = try await bench.openedForApp("enter", in: page(bench))
    let cookie = try #require(try await bench.engine.allowApp(first, client: page(bench)).get().cookie)
    func needsConsent(_ cookie: SecretText?, in browser: TokenHash? = nil) async throws -> Bool? {
      let page = page(bench, browser, allowed: cookie)
      return try await bench.engine.view(try await bench.openedForApp("enter", in: page), client: page).get().app?
        .needsConsent
    }
    #expect(try await needsConsent(cookie) == false)
    #expect(try await needsConsent(nil) == true)
    // Attack: a service or a neighbouring host writes the cookie.
    for forged in ["mobile", Base64URL.encode(Array("mobile".utf8)), cookie.reveal() + "A", ""] {
      #expect(try await needsConsent(SecretText(forged)) == true, "\(forged)")
    }
    // Attack: a neighbouring host plants the cookie that the attacker's own browser was given.
    #expect(try await needsConsent(cookie, in: other) == true)
    // The operator wants each sign-in to be asked about.
    try bench.activate(.test(.always))
    #expect(try await needsConsent(cookie) == true)
  }

  @Test func rememberedAppsAreBounded() throws {
    let keys = try KeyRing(master: [UInt8](repeating: 7, count: 32))
    var remembered = RememberedApps(nil, of: TokenHash(of: "browser".utf8), keys: keys)
    for number in 0..<100 { remembered = remembered.adding("app\(number)") }
    remembered = remembered.adding("app90")
    let read = RememberedApps(try remembered.cookie(keys), of: TokenHash(of: "browser".utf8), keys: keys)
    #expect(read.ids.count == 20 && read.ids.last == "app90" && !read.ids.contains("app0"))
  }

  // MARK: apps.lua changes

  /// Attack: an address that the operator has removed, because somebody else owns it now, still receives codes.
  @Test func removedRedirectURIReceivesNothing() async throws {
    let bench = try await EngineTestBench.full()
    let (done, code) = try await bench.completedForApp(in: page(bench))
    let id = try await bench.openedForApp("enter", in: page(bench))
    for apps in [AppTable.none, .test(redirects: ["https://app.example.com/other"])] {
      try bench.activate(apps)
      #expect(await bench.redeem(done.id, code).refusal?.code == .flowExpired)
      let phone: [String: InputValue] = ["phone": .text("933333")]
      #expect(
        await bench.engine.begin(id, provider: "phone_otp", fields: phone, client: page(bench)).refusal?.code
          == .flowExpired)
      #expect(try await bench.engine.view(id, client: page(bench)).get().app == nil)
    }
    try bench.activate(.test())
    #expect(try await bench.redeem(done.id, code).get().session?.token != nil)
  }

  @Test func aFlowInProgressEndsWithItsApp() async throws {
    let bench = try await EngineTestBench.full()
    let page = page(bench)
    let id = try await bench.openedForApp("enter", in: page)
    _ = try await bench.engine.begin(id, provider: "phone_otp", fields: ["phone": .text("911111")], client: page).get()
    try bench.activate(.none)
    let answer = await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: page)
    #expect(answer.refusal?.code == .flowExpired)
  }
}
