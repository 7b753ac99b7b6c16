import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Which browser a flow is bound to.
@Suite struct FlowBindingTests {
  private let mine = TokenHash(of: "mine".utf8)
  private let other = TokenHash(of: "other".utf8)

  /// Attack: a flow is created by the API, the victim opens its link and types the code.
  @Test(arguments: [false, true]) func pagesKnowNoFlowOfTheAPI(isBegun: Bool) async throws {
    let bench = try await EngineTestBench.full()
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
    if isBegun {
      _ = try await bench.engine.begin(
        id, provider: "email_code", fields: ["phone": .text("911111")], client: bench.client()
      ).get()
    }
    for browser in [mine, nil] {
      let page = bench.client(browser: browser, at: .page)
      #expect(await bench.engine.view(id, client: page).refusal?.code == .flowNotFound)
      #expect(
        await bench.engine.begin(id, provider: "phone_otp", fields: ["phone": .text("911111")], client: page).refusal?
          .code == .flowNotFound)
      #expect(
        await bench.engine.submit(id, fields: ["code": .text("123456")], client: page).refusal?.code == .flowNotFound)
      #expect(await bench.engine.resend(id, client: page).refusal?.code == .flowNotFound)
      #expect(await bench.engine.skip(id, client: page).refusal?.code == .flowNotFound)
      #expect(await bench.engine.delete(id, client: page).refusal?.code == .flowNotFound)
    }
    #expect(try await bench.engine.view(id, client: bench.client()).get().status == .pending, "the API can continue it")
  }

  /// Attack: before the victim opens the link of an app's flow, the attacker enters something in it by the API, such as
  /// a password of their own for the victim's address, or begins the step that leads to another site. The victim would
  /// continue without having seen a page that names the app.
  @Test(arguments: [false, true]) func apiBeginsNothingInAFlowOfAnApp(isOpened: Bool) async throws {
    let bench = try await EngineTestBench.full()
    let page = bench.client(browser: mine, at: .page)
    let attempts: [(flow: String, provider: String, fields: [String: InputValue])] = [
      ("register_email", "password", ["email": .text("922222"), "new_secret": .text("mallorys")]),
      ("login", "email_code", ["phone": .text("911111")]), ("login", "google_oauth", [:]),
    ]
    for attempt in attempts {
      let id = try await bench.createdForApp(attempt.flow)
      if isOpened { _ = try await bench.engine.view(id, client: page).get() }
      // With the browser's own cookie too: a script of the page is not the page.
      for client in [bench.client(), bench.client(browser: mine)] {
        let begun = await bench.engine.begin(
          id, provider: attempt.provider, fields: attempt.fields, client: client)
        #expect(begun.refusal?.code == .stepNotOpen)
        #expect(await bench.engine.submit(id, fields: attempt.fields, client: client).refusal?.code == .stepNotOpen)
        #expect(await bench.engine.skip(id, client: client).refusal?.code == .stepNotOpen)
        #expect(await bench.engine.resend(id, client: client).refusal?.code == .stepNotOpen)
      }
      let shown = try await bench.engine.view(id, client: page).get()
      #expect(shown.status == .pending && shown.step == nil, "the browser can still begin it")
    }
  }

  @Test func firstBrowserThatOpensAnAppsFlowIsBoundToIt() async throws {
    let bench = try await EngineTestBench.full()
    let id = try await bench.createdForApp("enter")
    let page = bench.client(browser: mine, at: .page)
    #expect(try await bench.engine.view(id, client: page).get().status == .pending)
    #expect(await bench.engine.view(id, client: bench.client(browser: other, at: .page)).refusal?.code == .flowNotFound)
    // Attack: the creator continues the flow while the victim types.
    let creator = bench.client()
    #expect(
      await bench.engine.begin(id, provider: "phone_otp", fields: ["phone": .text("922222")], client: creator).refusal?
        .code == .stepNotOpen)
    #expect(
      await bench.engine.submit(id, fields: ["code": .text("123456")], client: creator).refusal?.code == .stepNotOpen)
    #expect(await bench.engine.resend(id, client: creator).refusal?.code == .stepNotOpen)
    #expect(await bench.engine.skip(id, client: creator).refusal?.code == .stepNotOpen)
    _ = try await bench.engine.begin(id, provider: "phone_otp", fields: ["phone": .text("933333")], client: page).get()
    // Attack: the creator asks where the code went.
    let seen = try await bench.engine.view(id, client: creator).get()
    #expect(
      seen.status == .pending && seen.step == nil && seen.choices.isEmpty && seen.passed.isEmpty && seen.account == nil
        && seen.next == nil)
    let done = try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: page).get()
    #expect(done.session == nil)
    let after = try await bench.engine.view(id, client: creator).get()
    #expect(after.status == .complete && after.account == nil && after.passed.isEmpty && after.next == nil)
    let code = String(try #require(done.next).split(separator: "=").last ?? "")
    let redeemed = try await bench.engine.submit(
      id, fields: ["code": .text(code), "code_verifier": .text(Grant.testVerifier)], client: creator
    ).get()
    #expect(redeemed.session?.token != nil && redeemed.account?.phone == "+933333")
    #expect(!redeemed.isOfBrowser, "the app is not signed in by cookies")
  }

  @Test func parallelBrowsersBindAnAppsFlowOnce() async throws {
    for isShared in [false, true] {
      let bench = try await EngineTestBench(sharesFlows: isShared)
      let id = try await bench.createdForApp("login")
      let opened = await withTaskGroup(of: Bool.self) { group in
        for number in 0..<20 {
          let page = bench.client(browser: TokenHash(of: "\(number)".utf8), at: .page)
          group.addTask { await bench.engine.view(id, client: page).refusal == nil }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(opened == 1)
    }
  }

  @Test func creatorCanEndItsFlow() async throws {
    let bench = try await EngineTestBench.full()
    let id = try await bench.createdForApp("login")
    _ = try await bench.engine.view(id, client: bench.client(browser: mine, at: .page)).get()
    try await bench.engine.delete(id, client: bench.client()).get()
    #expect(await bench.engine.view(id, client: bench.client(browser: mine, at: .page)).refusal?.code == .flowNotFound)
  }
}
