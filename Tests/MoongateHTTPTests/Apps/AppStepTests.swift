import Foundation
import MoongateCore
import MoongateHTTP
import MoongateSDK
import MoongateTesting
import PIN
import PhoneOTP
import Testing

/// The steps that users pass on their way to an app.
@Suite struct AppStepTests {
  private func gateway(_ app: App) throws -> HTTPGateway {
    try HTTPGateway(providers: [PhoneOTP(), PIN()]) { generation in
      generation.apps = AppTable([app], own: generation.gateway.publicURL)
      for (name, steps) in [
        ("login", [StepRule.test("phone_otp")]), ("pin_set", [.test("pin")]), ("pin_unlock", [.test("pin")]),
        ("step_up", [.test("phone_otp", "pin")]),
      ] {
        generation.flows[name] = .test(name, account: .existing, steps: steps)
      }
      generation.flows["register"] = .test("register", account: .new, steps: [.test("phone_otp")])
      generation.policies["pin"] = .test(
        "pin",
        limits: [.test("verify", on: .verify, per: .account, max: 5, window: .seconds(86_400), lock: [.seconds(900)])])
    }
  }

  private func setPIN(_ browser: Browser) async throws {
    let answer = try await browser.post(
      "/auth/pin", ["flow": "pin_set", "new_pin": "271828", "confirm": "271828"])
    #expect(answer.status == 303, "\(answer.text)")
  }

  private func returnTo(_ page: String) throws -> String {
    try #require(PercentEncoding.fields(in: page.split(separator: "?")[1].utf8)?["return_to"])
  }

  /// `next.new` of the flow is a page of the service, which knows nothing of the app.
  @Test func newUserReachesTheApp() async throws {
    try await gateway(try TestApp.confidential()).run { client async throws in
      let browser = Browser(client)
      let back = try returnTo(try #require(try await browser.authorize().header("Location")))
      try await browser.visit(FormFields.address("/auth/register", ["return_to": back]))
      #expect(try await browser.signIn().header("Location") == back)
      #expect(try await browser.visit(back).answer()?["code"] != nil)
      let device = "/auth/device?user_code=BCDF-GHJK"
      let second = Browser(client)
      try await second.visit(FormFields.address("/auth/register", ["return_to": device]))
      #expect(try await second.signIn("9999999998").header("Location") == device)
    }
  }

  /// Attack: a thief adds a factor and passes it at once. It does not count yet, and passing it again would not help:
  /// the page says so, instead of asking for it again and again.
  @Test func factorThatIsTooNewIsNotAskedForAgain() async throws {
    try await gateway(try TestApp.confidential(requirement: AppRequirement(factors: 2))).run { client async throws in
      let browser = try await Browser.owner(client)
      try await setPIN(browser)
      let (store, now) = (client.gateway.store, client.gateway.clock.now())
      let account = try #require(try await store.accounts(after: nil, limit: 9).first)
      var session = try #require(try await store.sessions(of: account.id).first)
      session.passed.append(PassedStep(provider: "pin", at: now).tooNew(until: now + .seconds(600)))
      _ = try await store.apply([.replaceSession(session.token, by: session)], at: now)
      let refused = try await browser.visit(TestApp.authorize())
      #expect(refused.status == 403 && refused.header("Location") == nil)
      #expect(refused.header("Retry-After") == "600" && refused.text.contains("Grafana"))
      client.gateway.clock.advance(by: .seconds(600))
      let page = try await browser.visit(TestApp.authorize())
      #expect(page.header("Location")?.hasPrefix("/auth/pin?") ?? false, "\(page.status)")
    }
  }

  /// What an app only would like forces nobody to set up a factor, and nobody who has lost one to stay.
  @Test func wishedLevelIsOptional() async throws {
    try await gateway(try TestApp.confidential()).run { client async throws in
      let browser = try await Browser.owner(client)
      let wish = TestApp.authorize(["acr_values": "urn:moongate:aal:2"])
      #expect(try await browser.visit(wish).answer()?["code"] != nil)
      try await setPIN(browser)
      let address = try #require(try await browser.visit(wish).header("Location"))
      #expect(address.hasPrefix("/auth/pin?") && address.contains("%26asked%3D1"))
      let page = try await browser.visit(address)
      let bar = try #require(page.text.components(separatedBy: "<p class=\"bar\">").dropFirst().first)
      let cancel = try #require(Browser.attribute("href", bar))
      #expect(cancel == (try returnTo(address)))
      #expect(try await browser.visit(cancel).answer()?["code"] != nil)
      try await browser.visit(address)
      let done = try await browser.submit(["pin": "271828"])
      #expect(try await browser.visit(try #require(done.header("Location"))).answer()?["code"] != nil)
      // The session has reached the level, so the user is not asked.
      #expect(try await browser.visit(wish).answer()?["code"] != nil)
    }
  }

  /// Attack: a PIN in another tab passes for the sign-in that `prompt=login` asks for.
  @Test func stepUpIsNoSignIn() async throws {
    try await gateway(try TestApp.confidential()).run { client async throws in
      let browser = try await Browser.owner(client)
      try await setPIN(browser)
      client.gateway.clock.advance(by: .seconds(61))
      for (changes, isMet) in [
        (["prompt": "login"], false), (["prompt": "select_account"], false), (["max_age": "9"], true),
      ] {
        let page = try #require(try await browser.visit(TestApp.authorize(changes)).header("Location"))
        let back = try returnTo(page)
        // As the script of the page does for an address with a fragment.
        let shown = try await browser.visit(FormFields.address("/auth/login", ["return_to": back + "#top"]))
        #expect(shown.status == 200 && shown.text.contains("name=\"phone\""))
        client.gateway.clock.advance(by: .seconds(1))
        try await browser.visit("/auth/pin?flow=pin_unlock")
        #expect(try await browser.submit(["pin": "271828"]).status == 303)
        let answer = try await browser.visit(back)
        #expect((answer.answer()?["code"] != nil) == isMet, "\(changes) \(answer.header("Location") ?? "")")
        client.gateway.clock.advance(by: .seconds(61))
      }
    }
  }
}
