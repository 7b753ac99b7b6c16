import Foundation
import EmailCode
import HTTPTypes
import MoongateCore
import MoongateHTTP
import MoongateSDK
import MoongateTesting
import PIN
import Password
import PhoneOTP
import Testing

/// State that a page carries over: a number's country, the current task after a change of language, and the next step
/// without JavaScript.
@Suite struct PageTaskTests {
  private func gateway() throws -> HTTPGateway {
    try HTTPGateway(providers: [PhoneOTP(), PIN()]) { generation in
      for (name, steps) in [
        ("login", [StepRule.test("phone_otp")]), ("pin_set", [.test("pin")]), ("pin_unlock", [.test("pin")]),
        ("change_phone", [.test("phone_otp")]),
        ("pin_reset", [.test("phone_otp"), .test("pin")]),
      ] {
        generation.flows[name] = .test(name, account: .existing, steps: steps)
      }
      generation.flows["register"] = .test("register", account: .new, steps: [.test("phone_otp")])
      generation.policies["pin"] = .test(
        "pin",
        limits: [.test("verify", on: .verify, per: .account, max: 5, window: .seconds(86_400), lock: [.seconds(900)])])
    }
  }

  /// The address of a page in Hindi.
  private func hindi(_ page: Answer) throws -> String { try Browser.language("hi", of: page) }

  // MARK: Country

  /// Read in the default country, the number would be another person's: the code used to go to a stranger.
  @Test func countryIsPassedOnWithTheNumber() async throws {
    try await HTTPGateway().run { client in
      let browser = Browser(client)
      try await browser.visit("/auth/login")
      let unknown = try await browser.submit(["phone": "07400 123456", "region": "GB"])
      #expect(unknown.status == 404 && unknown.text.contains("data-region=\"GB\""))
      let offer = try #require(unknown.text.components(separatedBy: "data-other").dropFirst().first)
      let register = try #require(Browser.attribute("href", offer))
      #expect(register == "/auth/register?phone=07400%20123456&region=GB")
      for page in [
        try await browser.turns(to: "hi", ["phone": "07400 123456", "region": "GB"]), try await browser.visit(register),
      ] {
        #expect(
          page.status == 200 && page.text.contains("data-region=\"GB\"") && page.text.contains("value=\"07400 123456\"")
        )
      }
      // The page's script sends the country named by the page.
      try await browser.visit(register)
      let shown = try #require(browser.page?.text)
      let named = try #require(Browser.attribute("data-region", shown))
      #expect(try await browser.submit(["phone": "07400 123456", "region": named]).status == 303)
      #expect(client.gateway.code(for: "+447400123456") != nil && client.gateway.sent == 1)
    }
  }

  @Test(arguments: ["", "G", "GBR", "1B", "%22%3E", "%C3%A9%C3%A9"])
  func invalidCountryIsIgnored(_ region: String) async throws {
    try await HTTPGateway().run { client in
      let page = try await client.send(.get, "/auth/login?phone=12&region=\(region)")
      #expect(page.status == 200 && page.text.contains("data-region=\"IN\""))
    }
  }

  // MARK: Language

  @Test func aRefusedSignInInAnotherLanguage() async throws {
    try await gateway().run { client in
      let browser = Browser(client)
      try await browser.visit("/auth/login?return_to=%2Fpay")
      let refused = try await browser.submit(["phone": "12"])
      #expect(refused.status == 422)
      let address = try hindi(refused)
      #expect(address.hasPrefix("/auth/login?id=fl_"))
      let turned = try await browser.turns(to: "hi", ["phone": "12"])
      #expect(turned.text.contains("value=\"12\""))
      for page in [turned, try await browser.visit(address)] {
        #expect(page.status == 200 && page.text.contains("<html lang=\"hi\""))
        #expect(page.text.contains("name=\"return_to\" value=\"/pay\""))
      }
    }
  }

  /// Typed input never appears in an address, since histories, proxies and logs store addresses.
  @Test func typedInputIsKeptAndNeverInAURL() async throws {
    try await passwordGateway().run { client in
      let browser = Browser(client)
      for path in ["/auth/login?with=email", "/auth/register?with=email", "/auth/login?with=code"] {
        try await browser.visit(path)
        let typed = [
          "email": "asha@example.org", "password": "correct horse battery", "first_name": "Asha", "last_name": "Rao",
        ]
        let page = try await browser.turns(to: "hi", typed)
        #expect(
          page.status == 200 && page.text.contains("<html lang=\"hi\"")
            && page.text.contains("value=\"asha@example.org\""))
        #expect(!page.text.contains("correct horse battery"), "a password is never rendered")
        #expect(page.text.contains("value=\"Rao\"") == path.hasPrefix("/auth/register"))
        #expect(page.setCookies.contains { $0.hasPrefix("moongate-language=hi;") })
        let address = try hindi(page)
        #expect(!browser.address.contains("asha") && !address.contains("asha"))
        // Changing the language performs, counts and refuses nothing.
        #expect(
          !page.text.contains("class=\"problem") && browser.cookies["moongate-flow"] == nil && client.gateway.sent == 0)
      }
    }
  }

  @Test func returnedRefusalIsTranslated() async throws {
    try await HTTPGateway().run { client in
      let browser = Browser(client)
      let english = try await browser.visit("/auth/login?refused=oauth_cancelled&return_to=%2Fpay")
      #expect(english.text.contains("Sign-in cancelled"))
      #expect(try hindi(english) == "/auth/login?return_to=%2Fpay&refused=oauth_cancelled&language=hi")
      for page in [try await browser.turns(to: "hi", ["phone": "98"]), try await browser.visit(try hindi(english))] {
        #expect(page.text.contains("<p class=\"problem calm\" role=\"alert\">साइन-इन रद्द किया गया</p>"))
      }
      let made = try await browser.visit("/auth/login?refused=made_up")
      #expect(!made.text.contains("made_up") && !made.text.contains("class=\"problem"))
    }
  }

  private func passwordGateway() throws -> HTTPGateway {
    try HTTPGateway(providers: [PhoneOTP(), Password(), EmailCode()]) { generation in
      generation.flows["login"] = .test("login", account: .existing, steps: [.test("phone_otp", "email_code")])
      generation.flows["login_password"] = .test("login_password", account: .existing, steps: [.test("password")])
      generation.flows["register_email"] = .test("register_email", account: .new, steps: [.test("password")])
    }
  }

  @Test func aRefusedPasscodeAndNumberInAnotherLanguage() async throws {
    try await gateway().run { client in
      let browser = try await Browser.owner(client)
      try await browser.visit("/auth/pin?flow=pin_set&return_to=%2Fpay")
      let refused = try await browser.submit(["new_pin": "271828", "confirm": "314159"])
      #expect(refused.status == 422)
      #expect(try hindi(refused) == "/auth/pin?flow=pin_set&return_to=%2Fpay&language=hi")
      #expect(try await browser.visit(try hindi(refused)).text.contains("name=\"flow\" value=\"pin_set\""))

      try await browser.visit("/auth/verify?flow=change_phone&return_to=%2Fpay")
      let number = try await browser.submit(["phone": "12"])
      #expect(number.status == 422)
      #expect(try hindi(number) == "/auth/verify?flow=change_phone&return_to=%2Fpay&language=hi")
      let sent = client.gateway.sent
      let page = try await browser.visit(try hindi(number))
      #expect(page.status == 200 && page.text.contains("name=\"flow\" value=\"change_phone\""))
      let kept = try await browser.turns(to: "hi", ["phone": "07400 123456", "region": "GB"])
      #expect(kept.text.contains("value=\"07400 123456\"") && kept.text.contains("data-region=\"GB\""))
      #expect(try hindi(kept) == "/auth/verify?flow=change_phone&return_to=%2Fpay&language=hi")
      #expect(client.gateway.sent == sent)
    }
  }

  @Test func anErrorInAnotherLanguage() async throws {
    try await HTTPGateway().run { client in
      let headers = [("Accept", "text/html")]
      let english = try await client.send(.get, "/auth/error?code=denied&decision=dc_x&x=1", headers: headers)
      #expect(try hindi(english) == "/auth/error?code=denied&decision=dc_x&language=hi")
      let page = try await client.send(.get, try hindi(english), headers: headers)
      #expect(page.status == 403 && page.text.contains("<html lang=\"hi\""))
      #expect(page.text.contains("अनुमति नहीं है") && page.text.contains("यहाँ इसकी अनुमति नहीं है।"))
      #expect(!page.text.contains("not allowed here"))
      // A refused form has no address of its own, and the parameters of a callback are not repeated anywhere.
      let form = [
        ("Accept", "text/html"), ("Origin", "http://localhost:8080"),
        ("Content-Type", "application/x-www-form-urlencoded"),
      ]
      let posted = try await client.send(.post, "/auth/verify?id=fl_x", headers: form, body: "code=123456")
      #expect(try hindi(posted) == "/auth/error?code=flow_not_found&language=hi")
      let called = try await client.send(.get, "/auth/callback/google_oauth?code=c0de&state=s", headers: headers)
      #expect(try hindi(called) == "/auth/error?code=not_found&language=hi")
      #expect(!called.text.contains("c0de"))
    }
  }

  // MARK: Without JavaScript

  @Test func waitingUserSeesHowToContinue() async throws {
    try await gateway().run { client in
      let browser = Browser(client)
      try await browser.visit("/auth/register")
      let address = try #require(try await browser.submit(["phone": "9999999999"]).header("Location"))
      let reload = "<a class=\"link scriptless\" href=\"\(address)\">Reload</a>"
      #expect(try await browser.visit(address).text.contains(reload))
      client.gateway.clock.advance(by: .seconds(60))
      let due = try await browser.visit(address)
      #expect(!due.text.contains(reload), "the page has a button now")
      let right = try #require(client.gateway.code(for: "+919999999999"))
      for _ in 1...5 { _ = try await browser.post(address, ["code": right == "000000" ? "000001" : "000000"]) }
      #expect(browser.page?.status == 429 && browser.page?.text.contains(reload) == true)
    }
  }

  @Test func lockedOutUserSeesHowToContinue() async throws {
    try await gateway().run { client in
      let browser = try await Browser.owner(client)
      #expect(
        try await browser.post("/auth/pin", ["flow": "pin_set", "new_pin": "271828", "confirm": "271828"]).status == 303
      )
      try await browser.visit("/auth/pin?return_to=%2Fpay")
      for _ in 1...5 { try await browser.submit(["pin": "314159"]) }
      let locked = try #require(browser.page)
      #expect(locked.status == 429 && locked.text.contains("data-countdown="))
      #expect(
        locked.text.contains(
          "<a class=\"link scriptless\" href=\"/auth/pin?flow=pin_unlock&amp;return_to=%2Fpay\">Reload</a>"))
    }
  }

  @Test func anotherCodeForANewPasscodeIsConfirmed() async throws {
    try await gateway().run { client in
      let browser = try await Browser.owner(client)
      #expect(
        try await browser.post("/auth/pin", ["flow": "pin_set", "new_pin": "271828", "confirm": "271828"]).status == 303
      )
      client.gateway.clock.advance(by: .seconds(120))
      let sent = try await browser.post("/auth/pin", ["flow": "pin_reset", "action": "send"])
      let address = try #require(sent.header("Location"))
      #expect(address.hasPrefix("/auth/pin?id=fl_"))
      let first = try await browser.visit(address)
      #expect(!first.text.contains("Code sent!"))
      client.gateway.clock.advance(by: .seconds(60))
      let id = String(address.dropFirst("/auth/pin?id=".count))
      let resent = try await browser.post("/auth/pin", ["flow": "pin_reset", "id": id, "action": "resend"])
      let page = try await browser.visit(try #require(resent.header("Location")))
      #expect(page.text.contains("<p class=\"notice\" role=\"status\">Code sent!</p>"))
    }
  }
}
