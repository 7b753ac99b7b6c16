import EmailCode
import Foundation
import HTTPTypes
import MoongateCore
import MoongateHTTP
import MoongateSDK
import MoongateTesting
import PIN
import Password
import PhoneOTP
import Testing

/// State that pages keep: an active lock, a newly set PIN, and the input of an earlier form.
@Suite struct PageStateTests {
  private func gateway() throws -> HTTPGateway {
    let routes: [Route] = [
      .test(host: nil, below: "pay", requirement: .passed("pin", within: nil)),
      .test(host: nil, below: "post", requirement: .passed("phone_otp", within: nil)),
      .test(host: "wallet.example.com", requirement: .passed("pin", within: nil)), .test(host: nil),
    ]
    return try HTTPGateway(providers: [PhoneOTP(), PIN()], routes: routes) { generation in
      for (name, steps) in [
        ("login", [StepRule.test("phone_otp")]), ("pin_set", [.test("pin")]), ("pin_unlock", [.test("pin")]),
      ] {
        generation.flows[name] = .test(name, account: .existing, steps: steps)
      }
      generation.flows["register"] = .test("register", account: .new, steps: [.test("phone_otp")])
      generation.policies["pin"] = .test(
        "pin",
        limits: [.test("verify", on: .verify, per: .account, max: 5, window: .seconds(86_400), lock: [.seconds(900)])])
    }
  }

  private func chooses(_ pin: String, _ browser: Browser, returnTo: String = "/home") async throws -> Answer {
    try await browser.post("/auth/pin", ["flow": "pin_set", "new_pin": pin, "confirm": pin, "return_to": returnTo])
  }

  /// The providers in the browser's session, sorted by name.
  private func passed(_ browser: Browser) async throws -> [String]? {
    let answer = try await browser.client.call(.get, "/api/auth/session", headers: browser.cookieHeader)
    let passed = (answer["session"] as? [String: Any])?["passed"] as? [[String: Any]]
    return passed?.compactMap { $0["provider"] as? String }.sorted()
  }

  @Test(
    "a new passcode is verified at once for a route that requires it",
    arguments: ["/pay", "/pay/now?x=1", "/p%61y/now", "http://localhost:8080/pay", "http://wallet.example.com:8080/"])
  func newPasscodeIsVerifiedForItsRoute(_ target: String) async throws {
    try await gateway().run { client in
      let browser = try await Browser.owner(client)
      let before = browser.cookies["moongate"]
      let chosen = try await chooses("271828", browser, returnTo: target)
      #expect(chosen.status == 303 && chosen.header("Location") == target)
      #expect(
        chosen.setCookies.count { $0.hasPrefix("moongate=") } == 1,
        "the cookie of the session that has passed the PIN, and no other")
      #expect(browser.cookies["moongate"] != before)
      #expect(try await passed(browser) == ["phone_otp", "pin"])
    }
  }

  /// Attack: set a PIN on the account page, and never have to prove it where a later change requires it.
  @Test(arguments: ["/home", "/auth/account?done=pin_set", "/post/1", "/payment", "/home?x=/pay/now"])
  func newPasscodeIsNotVerifiedElsewhere(_ target: String) async throws {
    try await gateway().run { client in
      let browser = try await Browser.owner(client)
      #expect(try await chooses("271828", browser, returnTo: target).header("Location") == target)
      #expect(try await passed(browser) == ["phone_otp"])
    }
  }

  /// Setting a PIN over the API does not count as verifying it.
  @Test func passcodeSetByTheAPIIsNotVerified() async throws {
    try await gateway().run { client in
      let (token, _) = try await client.register()
      let set = try await client.call(
        .post, "/api/auth/set-passcode", #"{"passcode":"271828"}"#, headers: [("Authorization", "Bearer \(token)")])
      let fresh = try #require(set["token"] as? String)
      let session = try await client.call(.get, "/api/auth/session", headers: [("Authorization", "Bearer \(fresh)")])
      let passed = (session["session"] as? [String: Any])?["passed"] as? [[String: Any]]
      #expect(passed?.compactMap { $0["provider"] as? String } == ["phone_otp"])
    }
  }

  @Test func lockIsShownBeforeAnAttempt() async throws {
    try await gateway().run { client in
      let browser = try await Browser.owner(client)
      _ = try await chooses("271828", browser)
      #expect(try await browser.visit("/auth/pin?return_to=/pay").status == 200)
      for _ in 1...5 { try await browser.submit(["pin": "314159"]) }
      for _ in 1...2 {
        let page = try await browser.visit("/auth/pin?return_to=/pay")
        #expect(page.status == 429 && page.header("Retry-After") == "900")
        #expect(
          page.text.contains("Too many attempts. Please try again in 15 minutes.")
            && page.text.contains("data-countdown=\"900000\""))
        #expect(page.text.contains("required dir=\"ltr\" disabled"))
      }
      client.gateway.clock.advance(by: .seconds(900))
      let page = try await browser.visit("/auth/pin?return_to=/pay")
      #expect(page.status == 200 && !page.text.contains("Too many attempts"))
    }
  }

  @Test func lockedNumberIsNotFilledInAgain() async throws {
    try await HTTPGateway().run { client in
      let browser = Browser(client)
      try await browser.visit("/auth/register")
      let code = try #require(try await browser.submit(["phone": "9999999999"]).header("Location"))
      let edit = try #require(
        Browser.attribute("href", String(try await browser.visit(code).text.split(separator: "data-edit")[1])))
      #expect(try await browser.visit(edit).text.contains("value=\"+91 99999 99999\""))
      let right = try #require(client.gateway.code(for: "+919999999999"))
      for _ in 1...5 { _ = try await browser.post(code, ["code": right == "000000" ? "000001" : "000000"]) }
      #expect(browser.page?.status == 429)
      let page = try await browser.visit(edit)
      #expect(page.status == 200 && !page.text.contains("value=\"+91 99999 99999\""))
    }
  }

  @Test func splashIsShownOncePerBrowserSession() async throws {
    try await HTTPGateway().run { client in
      let browser = Browser(client)
      #expect(try await browser.visit("/auth/login").setCookies.isEmpty, "a client without Sec-Fetch-Mode")
      browser.metadata = [("Sec-Fetch-Mode", "navigate")]
      let first = try await browser.visit("/auth/login")
      #expect(first.text.contains("<div class=\"splash\" aria-hidden=\"true\">") && first.setCookies.count == 1)
      let cookie = browser.cookies["moongate-flow"]
      #expect(
        cookie?.utf8.count == 43 && first.setCookies[0].contains("HttpOnly") && !first.setCookies[0].contains("Max-Age")
      )
      for path in ["/auth/login", "/auth/login?with=email"] {
        let again = try await browser.visit(path)
        #expect(again.text.contains("<div class=\"splash\" aria-hidden=\"true\" hidden>") && again.setCookies.isEmpty)
      }
      #expect(browser.cookies["moongate-flow"] == cookie)
    }
  }

  // MARK: Registering by email address

  private func byAddress() throws -> HTTPGateway {
    try HTTPGateway(providers: [PhoneOTP(), EmailCode(), Password()]) { generation in
      generation.flows["register"] = .test("register", account: .new, steps: [.test("phone_otp")])
      generation.flows["register_email"] = .test(
        "register_email", account: .new, steps: [.test("password"), .test("email_code")])
    }
  }

  @Test func editAndBackLeadToTheRegistrationForm() async throws {
    try await byAddress().run { client in
      let browser = Browser(client)
      try await browser.visit("/auth/register?with=email")
      let sent = try await browser.submit([
        "first_name": "Asha", "last_name": "Rao", "email": "ahsa@example.org", "password": "correct horse battery",
      ])
      let page = try await browser.visit(try #require(sent.header("Location")))
      let edit = try #require(Browser.attribute("href", String(page.text.components(separatedBy: "data-edit")[1])))
      let back = try #require(Browser.attribute("href", String(page.text.components(separatedBy: "data-leave")[1])))
      #expect(edit == back && edit.hasPrefix("/auth/register?id=fl_"))
      #expect(!page.text.contains("id=\"edit\""), "a sheet has no field for the password")
      let form = try await browser.visit(edit).text
      for text in ["value=\"Asha\"", "value=\"Rao\"", "value=\"ahsa@example.org\"", "name=\"with\" value=\"email\""] {
        #expect(form.contains(text), "\(text)")
      }
      let again = try await browser.submit([
        "first_name": "Asha", "last_name": "Rao", "email": "asha@example.org", "password": "correct horse battery",
      ])
      #expect(try await browser.visit(try #require(again.header("Location"))).text.contains("asha@example.org"))
      // Attack: take the flow's id from a log and open the form in another browser to learn the name and the address.
      let stranger = try await Browser(client).visit(edit).text
      for text in ["Asha", "Rao", "ahsa@example.org"] { #expect(!stranger.contains(text), "\(text)") }
    }
  }
}
