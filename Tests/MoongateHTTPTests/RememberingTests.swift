import EmailCode
import Foundation
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import PhoneOTP
import Testing

/// "Keep me signed in" over HTTP: the API's field, the box of the pages, and the cookie.
@Suite struct RememberingTests {
  private static let times = RememberedTimes(lifetime: .seconds(90 * 86_400), idle: .seconds(30 * 86_400))
  private static let age = "; Max-Age=7776000"
  private static let box = #"<input type="checkbox" name="remember" value="1" data-remember>"#

  private static func gateway() throws -> HTTPGateway {
    try HTTPGateway { generation in
      for (name, rule) in [("login", AccountRule.existing), ("register", .new)] {
        generation.flows[name] = .test(name, account: rule, steps: [.test("phone_otp")], remember: times)
      }
      generation.flows["step_up"] = .test("step_up", account: .existing, steps: [.test("phone_otp")], remember: times)
    }
  }

  private static func sessionCookie(_ answer: Answer) -> String? {
    answer.setCookies.first { $0.hasPrefix("moongate=") && !$0.hasPrefix("moongate=;") }
  }

  @Test func theAPITakesTheChoiceOfTheUser() async throws {
    try await Self.gateway().run { client in
      _ = try await client.register()
      let origin = [("Origin", "http://localhost:8080")]
      for (choice, isKept) in [("true", true), ("false", false), ("null", false)] {
        let browser = Browser(client)
        let created = try await browser.call("/api/auth/flows", #"{"flow":"login"}"#)
        #expect(created["remember"] as? Bool == false)
        let id = try #require(created["id"] as? String)
        let begun = try await browser.call(
          "/api/auth/flows/\(id)/begin", #"{"phone":"+919999999999","remember":\#(choice)}"#)
        #expect(begun["remember"] as? Bool == isKept)
        let code = try #require(client.gateway.code(for: "+919999999999"))
        let done = try await browser.call("/api/auth/flows/\(id)/submit", #"{"code":"\#(code)"}"#)
        let cookie = try #require(Self.sessionCookie(done))
        #expect(cookie.hasSuffix(Self.age) == isKept && cookie.contains("Max-Age") == isKept, "\(cookie)")
        client.gateway.clock.advance(by: .seconds(100))
      }
      let wrong = try await client.call(
        .post, "/api/auth/flows", #"{"flow":"login","remember":"yes"}"#, headers: origin)
      #expect(wrong.status == 422 && wrong["field"] as? String == "remember")
    }
  }

  @Test(arguments: [false, true]) func thePageKeepsTheChoice(_ isTicked: Bool) async throws {
    try await Self.gateway().run { client in
      _ = try await client.register()
      client.gateway.clock.advance(by: .seconds(100))
      let browser = Browser(client)
      let page = try await browser.visit("/auth/login")
      #expect(page.text.contains(Self.box) && page.text.contains("<span>Keep me signed in</span>"))
      let typed = ["phone": "9999999999"].merging(isTicked ? ["remember": "1"] : [:]) { $1 }
      let sent = try await browser.submit(typed)
      let verify = try await browser.visit(try #require(sent.header("Location")))
      #expect(verify.text.contains(#"name="remember" value="1""#) == isTicked, "for another number")
      let code = try #require(client.gateway.code(for: "+919999999999"))
      let done = try await browser.submit(["code": code])
      #expect(try #require(Self.sessionCookie(done)).hasSuffix(Self.age) == isTicked)
      // The new token of a step-up is kept as long as the session lasts.
      client.gateway.clock.advance(by: .seconds(100))
      let flow = try await browser.call("/api/auth/flows", #"{"flow":"step_up","remember":true}"#)
      #expect(flow["remember"] == nil)
      let id = try #require(flow["id"] as? String)
      _ = try await browser.call("/api/auth/flows/\(id)/begin", "{}")
      let next = try #require(client.gateway.code(for: "+919999999999"))
      let grown = try await browser.call("/api/auth/flows/\(id)/submit", #"{"code":"\#(next)"}"#)
      let cookie = try #require(Self.sessionCookie(grown))
      #expect(cookie.hasSuffix("; Max-Age=7775900") == isTicked && cookie.contains("Max-Age") == isTicked, "\(cookie)")
      // Signing out removes the cookie.
      let out = try await client.call(
        .delete, "/api/auth/session", headers: [("Origin", "http://localhost:8080")] + browser.cookieHeader)
      #expect(out.setCookies.contains { $0.hasPrefix("moongate=; ") && $0.hasSuffix("; Max-Age=0") })
    }
  }

  /// A form that was refused shows the box as the user left it, and nothing else ticks it.
  @Test func onlyTheUserTicksTheBox() async throws {
    try await Self.gateway().run { client in
      let browser = Browser(client)
      try await browser.visit("/auth/login")
      let ticked = Self.box.dropLast() + " checked>"
      let refused = try await browser.submit(["phone": "12", "remember": "1"])
      #expect(refused.text.contains(ticked))
      #expect(try await browser.submit(["phone": "12"]).text.contains(Self.box))
      for path in ["/auth/login?remember=1", "/auth/login?remember=true&flow=login"] {
        #expect(try await browser.visit(path).text.contains(Self.box), "\(path)")
      }
    }
  }

  // MARK: - The last way

  private static let kept = "moongate-way=email_code; Path=/auth; Max-Age=31536000; HttpOnly; SameSite=Lax"

  /// A gateway where an account signs in by a code to its phone or its address.
  private static func twoWays(_ change: (inout TestGeneration) -> Void = { _ in }) async throws -> HTTPGateway {
    let gateway = try HTTPGateway(providers: [PhoneOTP(), EmailCode()]) { generation in
      generation.flows["login"] = .test(
        "login", account: .existing, steps: [.test("phone_otp", "email_code")], remember: times)
      change(&generation)
    }
    let phone = try PhoneOTP().readIdentifier(
      ProviderInput(fields: ["phone": .text("+919999999999")], defaultRegion: "IN"))
    let email = Identifier(try #require(EmailAddress("asha@example.com")))
    let names = [phone, email].map { ImportedAccount.Name(identifier: $0, isVerified: true) }
    #expect(try await gateway.gateway.administration.add([ImportedAccount(identifiers: names)]).isEmpty)
    return gateway
  }

  /// Signs in by a code to the address, on the page.
  private func signIn(_ browser: Browser, isTicked: Bool) async throws -> Answer {
    browser.client.gateway.clock.advance(by: .seconds(100))
    try await browser.visit("/auth/login?with=code")
    let typed = ["email": "asha@example.com"].merging(isTicked ? ["remember": "1"] : [:]) { $1 }
    try await browser.visit(try #require(try await browser.submit(typed).header("Location")))
    return try await browser.submit(["code": try #require(browser.client.gateway.code(for: "asha@example.com"))])
  }

  private func way(_ answer: Answer) -> String? { answer.setCookies.first { $0.hasPrefix("moongate-way=") } }

  @Test func theLastWayIsOfferedFirst() async throws {
    try await Self.twoWays().run { client in
      let browser = Browser(client)
      #expect(way(try await signIn(browser, isTicked: true)) == Self.kept)
      // Signing out keeps it: the page is seen afterwards.
      #expect(way(try await browser.post("/auth/logout", [:])) == nil)
      let page = try await browser.visit("/auth/login")
      #expect(page.text.contains("id=\"email\"") && !page.text.contains("id=\"phone\""))
      #expect(page.text.components(separatedBy: "Last used").count == 2)
      #expect(!page.text.contains("asha"), "no name")
      #expect(page.text.contains("with=phone"), "the other way stays reachable")
      #expect(try await browser.visit("/auth/login?with=phone").text.contains("id=\"phone\""))
      #expect(try await !browser.visit("/auth/login?with=phone").text.contains("Last used"))
      // In Hindi, and never where people register.
      #expect(try await browser.visit("/auth/login?language=hi").text.contains("पिछली बार इस्तेमाल किया गया"))
      // A sign-in without the choice forgets it.
      let other = try await signIn(browser, isTicked: false)
      #expect(way(other) == "moongate-way=; Path=/auth; Max-Age=0; HttpOnly; SameSite=Lax")
    }
  }

  /// A sign-in for an app keeps the way or forgets it, as one for the browser does.
  @Test func anAppsSignInKeepsTheWayToo() async throws {
    let uri = try RedirectURI("com.example.app:/in")
    try await Self.twoWays {
      $0.apps = AppTable([App(id: "mobile", name: "Mobile", redirectURIs: [uri], consent: .never)], own: nil)
    }.run { client in
      let browser = Browser(client)
      let challenge = Base64URL.encode([UInt8](repeating: 7, count: 32))
      for isTicked in [true, false] {
        client.gateway.clock.advance(by: .seconds(100))
        let created = try await client.call(
          .post, "/api/auth/flows",
          #"{"flow":"login","code_challenge":"\#(challenge)","redirect_to":"com.example.app:/in"}"#)
        let id = try #require(created["id"] as? String, "\(created.text)")
        try await browser.visit("/auth/login?id=\(id)&with=code")
        let typed = ["email": "asha@example.com"].merging(isTicked ? ["remember": "1"] : [:]) { $1 }
        try await browser.visit(try #require(try await browser.submit(typed).header("Location")))
        let code = try #require(client.gateway.code(for: "asha@example.com"))
        let done = try await browser.submit(["code": code])
        #expect(done.header("Location")?.hasPrefix("com.example.app:/in") ?? false, "\(done.text)")
        #expect(way(done) == (isTicked ? Self.kept : "moongate-way=; Path=/auth; Max-Age=0; HttpOnly; SameSite=Lax"))
      }
    }
  }

  /// Attack: the next person at a shared device learns by which way the last one has signed in.
  @Test func withoutTheChoiceNothingIsRemembered() async throws {
    try await Self.twoWays().run { client in
      let browser = Browser(client)
      #expect(way(try await signIn(browser, isTicked: false)) == nil)
      // Attack: the way is told before the sign-in is complete.
      let stranger = Browser(client)
      client.gateway.clock.advance(by: .seconds(100))
      try await stranger.visit("/auth/login?with=code")
      #expect(way(try await stranger.submit(["email": "asha@example.com", "remember": "1"])) == nil)
    }
  }

  /// Attack: a planted cookie. It can only name a way that the page offers anyway.
  @Test(arguments: [
    "reset", "email", "password", "no_such", "<script>", "email_code%00", "EMAIL_CODE", "",
    String(repeating: "a", count: 3_000),
  ]) func anUnknownWayIsIgnored(_ value: String) async throws {
    try await Self.twoWays().run { client in
      let page = try await client.send(
        .get, "/auth/login", headers: [("Accept", "text/html"), ("Cookie", "moongate-way=\(value)")])
      #expect(page.status == 200 && page.text.contains("id=\"phone\"") && !page.text.contains("Last used"))
      #expect(!page.text.contains("<script>x") && (value.isEmpty || value.count < 10 || !page.text.contains(value)))
    }
  }

  @Test func pagesWithoutTheOfferHaveNoBox() async throws {
    try await HTTPGateway().run { client in
      let browser = Browser(client)
      #expect(try await !browser.visit("/auth/login").text.contains("remember\" value"))
      // Attack: a form with the field. The flow does not offer it.
      let sent = try await browser.post("/auth/register", ["phone": "9999999999", "remember": "1"])
      try await browser.visit(try #require(sent.header("Location")))
      let done = try await browser.submit(["code": try #require(client.gateway.code(for: "+919999999999"))])
      #expect(try #require(Self.sessionCookie(done)).contains("Max-Age") == false)
    }
  }
}
