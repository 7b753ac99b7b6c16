import Crypto
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Which browser a flow is bound to.
@Suite struct FlowBindingTests {
  private let mine = TokenHash(of: "mine".utf8)
  private let other = TokenHash(of: "other".utf8)
  private let verifier = String(repeating: "v", count: 43)

  private var app: AppReturn? {
    AppReturn(
      challenge: Base64URL.encode(SHA256.hash(data: Array(verifier.utf8))), address: "https://app.example.com/back")
  }

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

  /// Attack: the attacker enters something in an app's flow through the API, such as a password of their own for the
  /// victim's address, before the victim opens its link and types the genuine code.
  @Test func browserCannotContinueAnAppsFlowWithInput() async throws {
    let bench = try await EngineTestBench.full()
    let registering = try await bench.engine.create(
      "register_email", returnTo: nil, browser: nil, app: app, client: bench.client()
    ).get().id
    let fields: [String: InputValue] = ["email": .text("922222"), "new_secret": .text("mallorys")]
    _ = try await bench.engine.begin(registering, provider: "password", fields: fields, client: bench.client()).get()
    let coded = try await bench.engine.create("login", returnTo: nil, browser: nil, app: app, client: bench.client())
      .get().id
    _ = try await bench.engine.begin(
      coded, provider: "email_code", fields: ["phone": .text("911111")], client: bench.client()
    ).get()
    for id in [registering, coded] {
      let page = bench.client(browser: mine, at: .page)
      #expect(await bench.engine.view(id, client: page).refusal?.code == .flowNotFound)
      #expect(
        await bench.engine.submit(id, fields: ["code": .text("123456")], client: page).refusal?.code == .flowNotFound)
      #expect(
        try await bench.engine.view(id, client: bench.client()).get().status == .pending, "the app can continue it")
    }
  }

  /// Attack: the attacker signs in at the federated site with an account of their own that names the victim's address,
  /// and sends the return link to the victim, who is then asked for a code.
  @Test func returnOfAForeignFlowDoesNotContinueIt() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client())
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, app: app, client: bench.client()).get()
      .id
    _ = try await bench.engine.begin(id, provider: "google_oauth", fields: [:], client: bench.client()).get()
    let page = bench.client(browser: mine, at: .page)
    let fields: [String: InputValue] = [
      "sub": .text("mallory"), "email": .text("911111"), "verified": .text("true"), "attested": .text("true"),
    ]
    #expect(await bench.engine.submit(id, fields: fields, client: page).refusal?.code == .alreadyRegistered)
  }

  @Test func firstBrowserThatOpensAnAppsFlowIsBoundToIt() async throws {
    let bench = try await EngineTestBench.full()
    let id = try await bench.engine.create("enter", returnTo: nil, browser: nil, app: app, client: bench.client()).get()
      .id
    let page = bench.client(browser: mine, at: .page)
    #expect(try await bench.engine.view(id, client: page).get().status == .pending)
    #expect(await bench.engine.view(id, client: bench.client(browser: other, at: .page)).refusal?.code == .flowNotFound)
    // Attack: the creator continues the flow while the victim types.
    let creator = bench.client()
    #expect(
      await bench.engine.begin(id, provider: "phone_otp", fields: ["phone": .text("922222")], client: creator).refusal?
        .code == .flowNotFound)
    #expect(
      await bench.engine.submit(id, fields: ["code": .text("123456")], client: creator).refusal?.code == .flowNotFound)
    #expect(await bench.engine.resend(id, client: creator).refusal?.code == .flowNotFound)
    #expect(await bench.engine.skip(id, client: creator).refusal?.code == .flowNotFound)
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
      id, fields: ["code": .text(code), "code_verifier": .text(verifier)], client: creator
    ).get()
    #expect(redeemed.session?.token != nil && redeemed.account?.phone == "+933333")
    #expect(!redeemed.isOfBrowser, "the app is not signed in by cookies")
  }

  @Test func parallelBrowsersBindAnAppsFlowOnce() async throws {
    for isShared in [false, true] {
      let bench = try await EngineTestBench(sharesFlows: isShared)
      let id = try await bench.engine.create("login", returnTo: nil, browser: nil, app: app, client: bench.client())
        .get()
        .id
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
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, app: app, client: bench.client()).get()
      .id
    _ = try await bench.engine.view(id, client: bench.client(browser: mine, at: .page)).get()
    try await bench.engine.delete(id, client: bench.client()).get()
    #expect(await bench.engine.view(id, client: bench.client(browser: mine, at: .page)).refusal?.code == .flowNotFound)
  }
}
