import Foundation
import HTTPTypes
import MoongateCore
import MoongateHTTP
import MoongateSDK
import MoongateTesting
import PIN
import PhoneOTP
import TOTP
import Testing

/// `/auth/step` with an authenticator app, used by a browser without JavaScript. The pages know only what the app's
/// provider declares.
@Suite struct StepPageTests {
  private static let phone: ProviderName = "phone_otp"
  private static let totp: ProviderName = "totp"

  private func gateway() throws -> HTTPGateway {
    try HTTPGateway(providers: [PhoneOTP(), PIN(), TOTP()]) { generation in
      let whenSet = FunctionName("flows/login.steps[2].when")
      generation.conditions[whenSet] = { $0.account.factors.contains(Self.totp) }
      for (name, steps) in [
        ("totp_set", [StepRule.test(Self.totp)]), ("totp_change", [.test(Self.totp)]),
        ("totp_disable", [.test(Self.totp)]),
        ("pin_set", [.test("pin")]), ("pin_unlock", [.test("pin")]), ("step_up", [.test(Self.phone, "pin", Self.totp)]),
        ("login", [.test(Self.phone), .test(Self.totp, when: whenSet)]),
        ("either", [.test(Self.phone), .test("pin", Self.totp)]),
      ] {
        generation.flows[name] = .test(name, account: .existing, steps: steps)
      }
      generation.flows["register"] = .test("register", account: .new, steps: [.test(Self.phone)])
      generation.policies[Self.totp] = .test(
        Self.totp,
        limits: [.test("verify", on: .verify, per: .account, max: 3, window: .seconds(86_400), lock: [.seconds(1800)])],
        unknownAccount: .conceal)
    }
  }

  /// Sets up the app from the account page.
  private func setUp(_ browser: Browser, _ client: Client) async throws -> (app: AuthenticatorApp, recovery: [String]) {
    let account = try await browser.visit("/auth/account")
    let link = try #require(
      account.text.components(separatedBy: "<a class=\"link\" href=\"").first {
        $0.contains("aria-label=\"Set up: Authenticator app\"")
      })
    let page = try await browser.visit(String(link.prefix { $0 != "\"" }).replacing("&amp;", with: "&"))
    #expect(page.status == 200 && page.text.contains("<h1>Authenticator app</h1>"), "\(page.text)")
    let begun = try await browser.submit(["flow": "totp_set"])
    let address = try #require(begun.header("Location"))
    #expect(address.hasPrefix("/auth/step?id=fl_"))
    let shown = try await browser.visit(address)
    #expect(
      shown.text.contains("<svg class=\"qr\" role=\"img\" aria-label=\"QR code") && !shown.text.contains("style="))
    #expect(shown.text.contains("inputmode=\"numeric\" autocomplete=\"one-time-code\""))
    let secret = try #require(
      shown.text.components(separatedBy: "<div class=\"secret\" data-keep=\"text\"><code dir=\"ltr\">").dropFirst()
        .first?.prefix { $0 != "<" })
    let app = try #require(AuthenticatorApp(secret: String(secret)))
    let wrong = try await browser.submit(["field.code": "000000"])
    #expect(wrong.status == 401 && wrong.text.contains("Invalid code") && wrong.text.contains("aria-invalid=\"true\""))
    #expect(wrong.text.contains("class=\"qr\""), "the QR code is still shown")
    let right = try await browser.submit(["field.code": app.code(at: client.gateway.clock.now())])
    #expect(right.status == 303 && right.header("Location") == address)
    let codes = try await browser.visit(address)
    let list = codes.text.components(separatedBy: "<li><code dir=\"ltr\">").dropFirst().map {
      String($0.prefix { $0 != "<" })
    }
    #expect(list.count == 10)
    let done = try await browser.submit(["id": String(address.dropFirst("/auth/step?id=".count))])
    #expect(done.header("Location") == "/auth/account?done=totp_set")
    let told = try await browser.visit("/auth/account?done=totp_set")
    #expect(
      told.text.contains("Authenticator app is set up.")
        && told.text.contains("aria-label=\"Turn off: Authenticator app\""))
    client.gateway.clock.advance(by: .seconds(901))
    return (app, list)
  }

  /// Signs in with the number and returns the browser at the app's step.
  private func halfWay(_ client: Client, flow: String? = nil) async throws -> Browser {
    let browser = Browser(client)
    try await browser.visit(flow.map { "/auth/login?flow=\($0)" } ?? "/auth/login")
    try await browser.visit(try #require(try await browser.submit(["phone": "9999999999"]).header("Location")))
    let passed = try await browser.submit(["code": try #require(client.gateway.code(for: "+919999999999"))])
    let address = try #require(passed.header("Location"))
    #expect(address.hasPrefix("/auth/step?id="), "\(address)")
    try await browser.visit(address)
    return browser
  }

  @Test func setUpThenSignIn() async throws {
    try await gateway().run { client in
      let (app, recovery) = try await setUp(try await Browser.owner(client), client)
      let browser = try await halfWay(client)
      let text = try #require(browser.page?.text)
      for said in [
        "<h1>Authenticator app</h1>", "Enter the six digits that your authenticator app shows.", "Code from the app",
        "Use a recovery code",
      ] {
        #expect(text.contains(said), "\(said)")
      }
      #expect(try await browser.submit(["field.code": "12345"]).status == 422)
      let signedIn = try await browser.submit([
        "field.code": app.code(at: client.gateway.clock.now()), "field.recovery_code": "",
      ])
      #expect(signedIn.header("Location") == "/home" && browser.cookies["moongate"] != nil)

      client.gateway.clock.advance(by: .seconds(901))
      let lost = try await halfWay(client)
      #expect(try await lost.submit(["field.recovery_code": recovery[0]]).header("Location") == "/home")
      client.gateway.clock.advance(by: .seconds(901))
      let again = try await halfWay(client)
      #expect(try await again.submit(["field.recovery_code": recovery[0]]).status == 401)
      #expect(try await again.submit(["field.recovery_code": recovery[1].lowercased()]).header("Location") == "/home")
    }
  }

  /// Attack: one code of the app, observed or intercepted, is used in several flows at once.
  @Test func concurrentUseOfOneCodeCompletesOneFlow() async throws {
    try await gateway().run { client in
      let (app, _) = try await setUp(try await Browser.owner(client), client)
      var browsers: [Browser] = []
      for _ in 0..<4 {
        browsers.append(try await halfWay(client))
        client.gateway.clock.advance(by: .seconds(120))
      }
      let code = app.code(at: client.gateway.clock.now())
      let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
        for browser in browsers {
          let (address, cookies) = (browser.address, browser.cookieHeader)
          group.addTask {
            let headers =
              [
                ("Accept", "text/html"), ("Origin", "http://localhost:8080"),
                ("Content-Type", "application/x-www-form-urlencoded"),
              ] + cookies
            let id = address.dropFirst("/auth/step?id=".count)
            return try await client.send(.post, "/auth/step", headers: headers, body: "id=\(id)&field.code=\(code)")
              .status
          }
        }
        return try await group.reduce(into: [Int]()) { $0.append($1) }
      }
      #expect(statuses.count { $0 == 303 } == 1, "\(statuses)")
      #expect(statuses.allSatisfy { [303, 401, 409, 429].contains($0) }, "\(statuses)")
    }
  }

  @Test func wrongCodesLockAndThePageShowsTheWait() async throws {
    try await gateway().run { client in
      let (app, _) = try await setUp(try await Browser.owner(client), client)
      let browser = try await halfWay(client)
      #expect(try await browser.submit(["field.code": "000000"]).text.contains("2 tries left."))
      #expect(try await browser.submit(["field.code": "000000"]).status == 401)
      let locked = try await browser.submit(["field.code": "000000"])
      #expect(
        locked.status == 429 && locked.text.contains("Please try again in 30 minutes.")
          && locked.text.contains("data-countdown="))
      #expect(try await browser.submit(["field.code": app.code(at: client.gateway.clock.now())]).status == 429)
    }
  }

  @Test func stepUpRequiresTheFactorOrItsSetup() async throws {
    try await gateway().run { client in
      let browser = try await Browser.owner(client)
      let first = try await browser.visit("/auth/step?flow=step_up&with=totp&return_to=%2Fpay")
      #expect(
        first.header("Location")?.hasPrefix("/auth/step?flow=totp_set&return_to=%2Fauth%2Fstep%3Fflow%3Dstep_up")
          == true)
      let (app, _) = try await setUp(browser, client)
      let page = try await browser.visit("/auth/step?flow=step_up&with=totp&return_to=%2Fpay")
      #expect(page.text.contains("name=\"field.code\""))
      #expect(try await browser.submit(["field.code": "000000"]).status == 401)
      #expect(
        try await browser.submit(["field.code": app.code(at: client.gateway.clock.now())]).header("Location") == "/pay")
      // Of several choices, only those that this account can use are offered.
      let choice = try await browser.visit("/auth/step?flow=step_up&return_to=%2Fpay")
      #expect(choice.text.contains(">Authenticator app</button>") && choice.text.contains(">Code by SMS</button>"))
      #expect(!choice.text.contains(">Passcode</button>"))
      let chosen = try await browser.submit(["with": "phone_otp"])
      #expect(chosen.header("Location")?.hasPrefix("/auth/verify?id=") == true)
    }
  }

  @Test func aChoiceInTheMiddleOfAFlowIsOffered() async throws {
    try await gateway().run { client in
      let own = try await Browser.owner(client)
      let (app, _) = try await setUp(own, client)
      client.gateway.clock.advance(by: .seconds(1))
      let browser = try await halfWay(client, flow: "either")
      // A person without a passcode is not offered it, so the only other choice is opened.
      #expect(browser.page?.text.contains("name=\"field.code\"") == true, "\(browser.page?.text ?? "")")
      #expect(
        try await browser.submit(["field.code": app.code(at: client.gateway.clock.now())]).header("Location") == "/home"
      )
    }
  }

  @Test func newRecoveryCodesAndRemoval() async throws {
    try await gateway().run { client in
      let browser = try await Browser.owner(client)
      let (app, old) = try await setUp(browser, client)
      try await browser.visit("/auth/step?flow=totp_change&return_to=%2Fauth%2Faccount")
      let begun = try await browser.submit(["flow": "totp_change"])
      try await browser.visit(try #require(begun.header("Location")))
      let shown = try await browser.submit(["field.code": app.code(at: client.gateway.clock.now())])
      try await browser.visit(try #require(shown.header("Location")))
      let done = try await browser.submit(["id": String(browser.address.dropFirst("/auth/step?id=".count))])
      #expect(done.header("Location") == "/auth/account")
      try await browser.visit("/auth/step?flow=totp_disable")
      try await browser.visit(try #require(try await browser.submit(["flow": "totp_disable"]).header("Location")))
      #expect(
        try await browser.submit(["field.recovery_code": old[0]]).status == 401, "the old codes are no longer valid")
      client.gateway.clock.advance(by: .seconds(30))
      #expect(try await browser.submit(["field.code": app.code(at: client.gateway.clock.now())]).status == 303)
      #expect(try await browser.visit("/auth/account").text.contains("aria-label=\"Set up: Authenticator app\""))
    }
  }

  /// A provider that reads an email address but sends nothing to it.
  private struct Word: FullProvider {
    let descriptor = ProviderDescriptor(
      name: "word", beginFields: [InputField(name: "email", kind: .email)],
      submitFields: [InputField(name: "word", kind: .password)], settings: [],
      policy: PolicySource(file: "word.lua", text: ""), identifierKinds: [.email],
      words: StepWords(title: "Your word", instruction: "Type the word that you have chosen.", labels: ["word": "Word"])
    )

    func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? { try input.email() }
    func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      .ask(descriptor.submitFields, state: [])
    }
    func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { .proved(Proof()) }
  }

  @Test func pageWithoutAMessageDoesNotMentionACode() async throws {
    let gateway = try HTTPGateway(providers: [PhoneOTP(), Word()]) { generation in
      generation.flows["by_word"] = .test("by_word", account: .any, steps: [.test("word")])
    }
    try await gateway.run { client in
      let browser = Browser(client)
      try await browser.visit("/auth/step?flow=by_word")
      let page = try await browser.visit(
        try #require(try await browser.submit(["field.email": "asha@example.com"]).header("Location")))
      #expect(
        page.text.contains("name=\"field.word\"") && page.text.contains("Type the word that you have chosen."),
        "\(page.text)")
      #expect(!page.text.contains("code to") && !page.text.contains("asha@example.com"), "\(page.text)")
    }
  }

  /// A provider that takes a name and a password for an identity elsewhere.
  private struct Desk: FullProvider {
    private static let password = InputField(name: "password", kind: .password)
    let descriptor = ProviderDescriptor(
      name: "desk_id", beginFields: [InputField(name: "username", kind: .text)], submitFields: [password], settings: [],
      policy: PolicySource(file: "desk_id.lua", text: ""), identifierKinds: [.federated],
      outcomes: [Outcome("wrong_word", "That is not the word.")], words: StepWords(title: "Company"))

    func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      let name = try input.text("username")
      return .ask([Self.password], state: Array(name.utf8), showing: [.text(name)])
    }

    func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      guard try input.text("password") == "quiet pigeons" else { return .refused("wrong_word") }
      let name = String(decoding: step.state, as: UTF8.self)
      return .proved(Proof(proved: [Identifier(kind: .federated, value: "desk_id \(name)", display: name)]))
    }
  }

  @Test func nameAndPasswordAreOnOnePage() async throws {
    let gateway = try HTTPGateway(providers: [PhoneOTP(), Desk()]) { generation in
      generation.flows["desk"] = .test("desk", account: .any, steps: [.test("desk_id")])
      generation.policies["desk_id"] = .test("desk_id", limits: [])
    }
    try await gateway.run { client in
      let browser = Browser(client)
      let page = try await browser.visit("/auth/step?flow=desk")
      #expect(
        page.text.contains("autocomplete=\"username\"") && page.text.contains("autocomplete=\"current-password\""),
        "\(page.text)")
      let wrong = try await browser.submit([
        "flow": "desk", "field.username": "<ada>", "field.password": "loud pigeons",
      ])
      // The step is open for this name, which the page shows.
      #expect(wrong.status == 401 && wrong.text.contains("That is not the word."), "\(wrong.text)")
      #expect(wrong.text.contains("&lt;ada&gt;") && !wrong.text.contains("autocomplete=\"username\""))
      let done = try await browser.submit(["field.password": "quiet pigeons"])
      #expect(done.status == 303 && done.header("Location")?.hasPrefix("/auth/") == false, "\(done.text)")
    }
  }

  /// A provider whose site refuses with the reason in the request.
  private struct Site: FullProvider {
    let descriptor = ProviderDescriptor(
      name: "site_id", beginFields: [],
      submitFields: ["code", "state", "error"].map { InputField(name: $0, kind: .text, isRequired: false) },
      settings: [],
      policy: PolicySource(file: "site_id.lua", text: ""), identifierKinds: [.federated],
      outcomes: [
        Outcome(.oauthFailed, "It failed."), Outcome(.oauthCancelled, "It was cancelled.", isFailure: false),
        Outcome("too_young", "This site is for people of 18 and older."),
      ],
      words: StepWords(
        title: "Town Hall", translations: ["hi": ["This site is for people of 18 and older.": "यह साइट केवल वयस्कों के लिए है।"]]
      ))

    func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      .redirect(to: "https://town.test/?state=\(step.callback?.state ?? "")", state: [1])
    }

    func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      .refused(try input.optionalText("error").flatMap(RefusalReason.init(rawValue:)) ?? .oauthFailed)
    }
  }

  @Test(
    "another site's refusal is shown in its provider's words, in a first step and in a later one",
    arguments: [
      ("oauth_failed", "Town Hall could not sign you in. Try again.", "Town Hall से साइन इन नहीं हो सका। फिर कोशिश करें।"),
      ("oauth_cancelled", "Sign-in cancelled", "साइन-इन रद्द किया गया"),
      ("too_young", "This site is for people of 18 and older.", "यह साइट केवल वयस्कों के लिए है।"),
    ], [true, false])
  func refusedByAnotherSite(_ told: (reason: String, english: String, hindi: String), isFirst: Bool) async throws {
    let gateway = try HTTPGateway(providers: [PhoneOTP(), Site()]) { generation in
      generation.flows["town"] = .test(
        "town", account: .any, steps: (isFirst ? [] : [.test(Self.phone)]) + [.test("site_id")])
      generation.policies["site_id"] = .test("site_id", limits: [])
    }
    try await gateway.run { client in
      let browser = Browser(client)
      let away: Answer
      if isFirst {
        try await browser.visit("/auth/step?flow=town&return_to=%2Fpay")
        away = try await browser.submit(["flow": "town"])
      } else {
        try await browser.visit("/auth/login?flow=town&return_to=%2Fpay")
        try await browser.visit(try #require(try await browser.submit(["phone": "9999999999"]).header("Location")))
        let passed = try await browser.submit(["code": try #require(client.gateway.code(for: "+919999999999"))])
        try await browser.visit(try #require(passed.header("Location")))
        away = try await browser.submit(["id": String(browser.address.dropFirst("/auth/step?id=".count))])
      }
      let state = try #require(away.text.firstMatch(of: /town\.test\/\?state=([A-Za-z0-9_-]+)/)?.1, "\(away.text)")
      let back = try await browser.visit("/auth/callback/site_id?state=\(state)&error=\(told.reason)")
      let address = try #require(back.header("Location"))
      #expect(
        address.hasPrefix(isFirst ? "/auth/step?flow=town&with=site_id" : "/auth/step?id=fl_")
          && address.hasSuffix("refused=\(told.reason)"))
      let page = try await browser.visit(address)
      let isCalm = told.reason == "oauth_cancelled"
      #expect(
        page.status == 200
          && page.text.contains("<p class=\"problem\(isCalm ? " calm" : "")\" role=\"alert\">\(told.english)</p>"))
      let hindi = try await browser.visit(try Browser.language("hi", of: page))
      #expect(hindi.text.contains(told.hindi) && !hindi.text.contains(told.english))
      // The step can be begun again, and a link shows no text of its own.
      let again = try await browser.submit(
        isFirst ? ["flow": "town"] : ["id": String(try #require(address.firstMatch(of: /fl_[^&]+/)).0)])
      let fresh = try #require(again.text.firstMatch(of: /town\.test\/\?state=([A-Za-z0-9_-]+)/)?.1)
      #expect(fresh != state)
      let forged = try await browser.visit("/auth/step?flow=town&with=site_id&refused=send_money_to_x")
      #expect(!forged.text.contains("class=\"problem") && !forged.text.contains("send_money"))
    }
  }

  /// With a complete translation, the page contains no English text.
  @Test func stepPageIsTranslated() async throws {
    try await gateway().run { client in
      let browser = try await Browser.owner(client)
      try await browser.visit("/auth/step?flow=totp_set")
      let before = try await browser.turns(to: "hi", [:])
      #expect(before.text.contains("<h1>ऑथेंटिकेटर ऐप</h1>") && before.text.contains("data-sync=\"go\">सेट करें</button>"))
      let begun = try await browser.submit(["flow": "totp_set"])
      let shown = try await browser.visit(try #require(begun.header("Location")))
      #expect(shown.text.contains("इसे अपने ऑथेंटिकेटर ऐप से स्कैन करें") && shown.text.contains("ऐप का कोड</label>"))
      #expect(try await browser.submit(["field.code": "12"]).text.contains("आपका ऐप जो छह अंक दिखाता है, वे लिखें।"))
      let main = try #require(
        browser.page?.text.components(separatedBy: "<main>").last?.components(separatedBy: "</main>").first)
      #expect(!main.contains("Scan") && !main.contains("Enter") && !main.contains("Code"))
      #expect(try await browser.visit("/auth/account").text.contains("ऑथेंटिकेटर ऐप"))
    }
  }

  /// Attack: a thief with a stolen session sets up their own app and later uses it as proof.
  @Test func setupRequiresARecentProof() async throws {
    try await gateway().run { client in
      let browser = try await Browser.owner(client)
      client.gateway.clock.advance(by: .seconds(601))
      let page = try await browser.visit("/auth/step?flow=totp_set")
      #expect(page.status == 403)
      #expect(
        page.text.contains(
          "href=\"/auth/step?flow=step_up&amp;return_to=%2Fauth%2Fstep%3Fflow%3Dtotp_set&amp;for=change\""),
        "\(page.text)")
    }
  }

  @Test func otherBrowsersAreRefusedAndAnonymousUsersSignIn() async throws {
    try await gateway().run { client in
      let (app, _) = try await setUp(try await Browser.owner(client), client)
      let browser = try await halfWay(client)
      let thief = Browser(client)
      #expect(try await thief.visit(browser.address).status == 404)
      let code = app.code(at: client.gateway.clock.now())
      #expect(
        try await thief.post("/auth/step", ["id": String(browser.address.dropFirst(14)), "field.code": code]).status
          == 404)
      #expect(
        try await thief.visit("/auth/step?flow=step_up").header("Location")?.hasPrefix("/auth/login?return_to=") == true
      )
      #expect(try await thief.visit("/auth/step?flow=nothing").status == 404)
      let headers = [
        ("Accept", "text/html"), ("Origin", "https://evil.example"),
        ("Content-Type", "application/x-www-form-urlencoded"),
      ]
      let forged = try await client.send(.post, "/auth/step", headers: headers + browser.cookieHeader, body: "id=x")
      #expect(forged.status == 403)
    }
  }
}
