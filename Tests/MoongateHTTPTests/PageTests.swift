import Foundation
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateHTTP

/// The pages as a browser without JavaScript uses them.
@Suite struct PageTests {
  /// Without a flow that creates accounts, no page offers to create one, in any language.
  @Test(arguments: ShippedWords.files.map(\.tag)) func closedRegistrationIsMentionedNowhere(_ tag: String) async throws
  {
    let http = try HTTPGateway { generation in
      generation.flows = generation.flows.filter { !$0.value.isForNewAccounts }
      generation.gateway.languages = tag == "en" ? ["en"] : ["en", tag]
    }
    let words = Words(
      tag: tag, base: nil, ShippedWords.text(of: tag) ?? "", known: nil, problem: { _, _ in })
    let english = Words(tag: "en", base: nil, ShippedWords.text(of: "en") ?? "", known: nil, problem: { _, _ in })
    let invitations = ["login_other", "login_question", "create_account", "not_found_message"].flatMap {
      [words[$0], english[$0]]
    }
    @Sendable func demandNone(_ text: String, _ place: String) {
      for invitation in invitations + [words.translated("No account found. Create one?"), "Create one"] {
        #expect(!text.contains(invitation), "\(place): \(invitation)")
      }
    }
    try await http.run { client in
      let browser = Browser(client)
      let login = try await browser.visit("/auth/login?language=\(tag)")
      #expect(login.status == 200)
      demandNone(login.text, "login")
      let unknown = try await browser.submit(["phone": "99999 99999"])
      #expect(unknown.status == 404)
      demandNone(unknown.text, "unknown number")
      let register = try await browser.visit("/auth/register")
      #expect(register.status == 403 && !register.text.contains("name=\"phone\""))
      #expect(register.text.contains("href=\"/auth/login\""))
      demandNone(register.text, "register")
      #expect(try await browser.post("/auth/register", ["phone": "99999 99999", "with": "phone"]).status == 403)
      let flow = try await client.call(.post, "/api/auth/flows", #"{"flow":"login"}"#)
      let begun = try await client.call(
        .post, "/api/auth/flows/\(try #require(flow["id"] as? String))/begin",
        #"{"provider":"phone_otp","phone":"99999 99999"}"#)
      #expect(begun["code"] as? String == "account_not_found" && begun["detail"] as? String == "No account found.")
    }
  }

  /// Attack: `registration = "closed"`, and the pages of a proxy's forward-auth, or their forms, create an account.
  @Test func pagesOfClosedRegistrationCreateNoAccount() async throws {
    let http = try HTTPGateway { $0.accounts.registration = .closed }
    try await http.run { client in
      let browser = Browser(client)
      let login = try await browser.visit("/auth/login?return_to=%2Fhome")
      #expect(login.status == 200 && !login.text.contains("Create Account"))
      let unknown = try await browser.submit(["phone": "99999 99999"])
      #expect(unknown.status == 404 && !unknown.text.contains("Create"))
      #expect(try await browser.visit("/auth/register?return_to=%2Fhome").status == 403)
      #expect(try await browser.post("/auth/register", ["phone": "99999 99999", "with": "phone"]).status == 403)
      _ = try await browser.visit("/auth/login?flow=enter")
      let either = try await browser.submit(["phone": "99999 99999"])
      #expect(either.status == 403 && either.text.contains("New accounts cannot be created here."), "\(either.text)")
      #expect(try await http.gateway.store.accounts(after: nil, limit: 1).isEmpty)
      #expect(http.gateway.code(for: "+919999999999") == nil)
    }
  }

  /// The pages offer nobody to create an account who would need an invitation.
  @Test func pagesDoNotOfferWhatNeedsAnInvitation() async throws {
    let http = try HTTPGateway { $0.accounts.registration = .invited() }
    try await http.run { client in
      let browser = Browser(client)
      let login = try await browser.visit("/auth/login?return_to=%2Fhome")
      #expect(login.status == 200 && !login.text.contains("Create Account"))
      let unknown = try await browser.submit(["phone": "99999 99999"])
      #expect(unknown.status == 404 && !unknown.text.contains("Create"))
      let register = try await browser.visit("/auth/register?return_to=%2Fhome")
      #expect(register.status == 403 && register.text.contains("You need an invitation to create an account here."))
      _ = try await browser.visit("/auth/login?flow=enter")
      let either = try await browser.submit(["phone": "99999 99999"])
      #expect(either.status == 403 && either.text.contains("You need an invitation"), "\(either.text)")
      #expect(try await http.gateway.store.accounts(after: nil, limit: 1).isEmpty)
    }
    // An address of a domain needs none, but a number does.
    try await HTTPGateway { $0.accounts.registration = .invited(domains: ["b.test"]) }.run { client in
      let browser = Browser(client)
      #expect(try await browser.visit("/auth/login?return_to=%2Fhome").text.contains("Create Account"))
      let unknown = try await browser.submit(["phone": "99999 99999"])
      #expect(unknown.status == 404 && !unknown.text.contains("Create one?"))
      #expect(try await browser.visit("/auth/register").status == 200)
    }
  }

  /// Sign-in is closed: pages, the API and the App API give the sentence of accounts.lua, as text.
  @Test func pagesAndCallsSayWhySignInIsClosed() async throws {
    let admit = FunctionName("accounts.admit")
    let http = try HTTPGateway { generation in
      generation.accounts.admit = admit
      generation.accounts.reasons = ["maintenance": "Closed <until> 3."]
      generation.verdicts[admit] = { _ in .deny("maintenance") }
    }
    try await http.run { client in
      let browser = Browser(client)
      #expect(try await browser.visit("/auth/login?return_to=%2Fhome").status == 200)
      let refused = try await browser.submit(["phone": "99999 99999"])
      #expect(refused.status == 403 && refused.text.contains("Closed &lt;until&gt; 3."), "\(refused.text)")
      for (path, body) in [
        ("flows", #"{"flow":"login"}"#), ("flows", #"{"flow":"enter"}"#),
        ("send-otp", #"{"phone_number":"+919999999998","flow":"login"}"#),
      ] {
        let answer = try await client.call(.post, "/api/auth/\(path)", body)
        #expect(answer.status == 403 && answer.problem() == "maintenance", "\(path): \(answer.text)")
        #expect(answer["detail"] as? String == "Closed <until> 3.")
      }
      #expect(http.gateway.code(for: "+919999999999") == nil)
    }
  }

  /// The page shows from where each session began and was last used, as the API, the export and operators see it.
  @Test func sessionsShowTheirAddresses() async throws {
    let http = try HTTPGateway()
    try await http.run { client in
      let token = try await client.register().token
      let bearer = [("Authorization", "Bearer \(token)")]
      let listed = try await client.call(.get, "/api/auth/sessions", headers: bearer)
      let address = try #require(
        try await http.gateway.audit.events(limit: 100).first { $0.kind == .sessionStarted }?.address)
      #expect(listed.text.contains(#""address":"\#(address)","last_address":"\#(address)""#), "\(listed.text)")
      let id = try #require(try await http.gateway.store.accounts(after: nil, limit: 1).first?.id)
      let session = try #require(try await http.gateway.store.sessions(of: id).first)
      try await http.gateway.store.touch([
        session.token: SessionUse(at: http.gateway.clock.now() + .seconds(1), address: "2001:db8::7")
      ])
      let page = try await client.send(.get, "/auth/account", headers: [("Cookie", "moongate=\(token)")])
      #expect(page.text.contains("<bdi dir=\"ltr\">\(address)</bdi>"))
      #expect(page.text.contains("<bdi dir=\"ltr\">2001:db8::7</bdi>"))
    }
  }

  @Test func createAnAccountThenSignInAndOut() async throws {
    try await HTTPGateway().run { client in
      let browser = Browser(client)
      // A visitor without an account.
      try await browser.visit("/auth/login?return_to=%2Fpay%3Fx%3D1%262")
      #expect(browser.page?.status == 200)
      for text in ["<h1>Welcome Back!</h1>", "Sign in to continue", "Mobile Number", "Send OTP", "Create Account"] {
        #expect(browser.page?.text.contains(text) == true, "\(text)")
      }
      let unknown = try await browser.submit(["phone": "99999 99999"])
      #expect(unknown.status == 404)
      #expect(unknown.text.contains("No account found. Create one?"))
      #expect(unknown.text.contains(#"value="99999 99999""#))
      let offer = try #require(
        unknown.text.components(separatedBy: #"<a class="link stressed" data-other"#).dropFirst().first)
      let register = try #require(Browser.attribute("href", offer))
      #expect(register == "/auth/register?phone=99999%2099999&return_to=%2Fpay%3Fx%3D1%262")
      try await browser.visit(register)
      #expect(browser.page?.text.contains("<h1>Create Account</h1>") == true)
      #expect(browser.page?.text.contains("Login here") == true)
      let sent = try await browser.submit(["phone": "99999 99999"])
      #expect(sent.status == 303)
      let verify = try #require(sent.header("Location"))
      #expect(verify.hasPrefix("/auth/verify?id=fl_"))

      let page = try await browser.visit(verify)
      #expect(page.status == 200)
      for text in [
        "<h1>Verify Phone Number</h1>", "sent a 6-digit code to", "+91 99999 99999", ">Edit</a>", "Resend code in",
        ">01:00</span>",
        "Enter verification code, 6 digits", "Verify &amp; Continue", "autocomplete=\"one-time-code\"",
        "inputmode=\"numeric\"",
      ] { #expect(page.text.contains(text), "\(text)") }
      let right = try #require(client.gateway.code(for: "+919999999999"))
      let wrong = right == "000000" ? "000001" : "000000"
      let refused = try await browser.submit(["code": wrong, "action": "verify"])
      #expect(refused.status == 401)
      #expect(refused.text.contains("Invalid code. Please try again. 4 tries left."))
      #expect(refused.text.contains("aria-invalid=\"true\""))
      #expect(!refused.text.contains(wrong))
      let done = try await browser.submit(["code": "\(right.prefix(3)) \(right.suffix(3))", "action": "verify"])
      #expect(done.status == 303)
      #expect(done.header("Location") == "/profile-setup?return_to=%2Fpay%3Fx%3D1%262")
      #expect(browser.cookies["moongate"]?.utf8.count == 43)

      let account = try await browser.visit("/auth/account")
      #expect(account.text.contains("+91 99999 99999"))
      // A signed-in visitor is redirected.
      #expect(try await browser.visit("/auth/login?return_to=/pay").header("Location") == "/pay")
      #expect(try await browser.visit("/auth/login?return_to=//evil").header("Location") == "/home")
      #expect(try await browser.visit("/auth/login").header("Location") == "/home")

      try await browser.visit("/auth/logout?return_to=/bye")
      #expect(browser.page?.text.contains("<h1>Sign out</h1>") == true)
      let out = try await browser.submit(["return_to": "/bye"])
      #expect(out.status == 303)
      #expect(out.header("Location") == "/bye")
      #expect(browser.cookies["moongate"] == nil)
      #expect(try await browser.visit("/auth/account").header("Location") == "/auth/login?return_to=%2Fauth%2Faccount")
      #expect(
        try await browser.post("/auth/logout", ["return_to": "https://evil/"]).header("Location") == "/auth/login")
      #expect(try await browser.visit("/auth/logout").text.contains("You are not signed in."))

      client.gateway.clock.advance(by: .seconds(900))
      try await browser.visit("/auth/login?return_to=/pay")
      let again = try await browser.submit(["phone": "+919999999999"])
      try await browser.visit(try #require(again.header("Location")))
      let code = try #require(client.gateway.code(for: "+919999999999"))
      #expect(try await browser.submit(["code": code]).header("Location") == "/pay")
    }
  }

  /// A browser on the code page of a flow for an existing account.
  private func codePage(_ client: Client) async throws -> Browser {
    _ = try await client.register()
    client.gateway.clock.advance(by: .seconds(900))
    let browser = Browser(client)
    try await browser.visit("/auth/login")
    let sent = try await browser.submit(["phone": "+919999999999"])
    try await browser.visit(try #require(sent.header("Location")))
    return browser
  }

  @Test func resendAndEdit() async throws {
    try await HTTPGateway().run { client in
      let browser = try await codePage(client)
      let address = browser.address
      // The content that a script shows when the timer ends is in a template and not rendered.
      let seen = try #require(browser.page?.text.components(separatedBy: "<template").first)
      #expect(!seen.contains("Resend now"))
      client.gateway.clock.advance(by: .seconds(15))
      #expect(try await browser.visit(address).text.contains(">00:45</span>"))
      // The form submitted although its button is disabled.
      let soon = try await browser.post(address, ["action": "resend"])
      #expect(soon.status == 429)
      #expect(
        soon.text.contains("Please wait before you ask for another code.")
          && soon.text.contains("Resend code in <span class=\"timer\""))
      #expect(soon.text.contains(">00:45</span>"), "the timer is shown")
      client.gateway.clock.advance(by: .seconds(45))
      #expect(try await browser.visit(address).text.contains("Didn&#39;t receive code?"))
      let resent = try await browser.post(address, ["action": "resend"])
      #expect(resent.status == 303)
      #expect(try await browser.visit(try #require(resent.header("Location"))).text.contains("Code sent!"))
      // Edit keeps the flow and the number.
      let edit = try #require(
        browser.page?.text.components(separatedBy: "data-edit href=\"").dropFirst().first?.prefix { $0 != "\"" })
      try await browser.visit(String(edit).replacing("&amp;", with: "&"))
      #expect(browser.page?.text.contains("value=\"+91 99999 99999\"") == true)
      // The same number again, too soon: back to the current code page, and nothing is sent.
      let sent = client.gateway.sent
      #expect(
        try await browser.submit(["phone": "9999999999"]).header("Location")?.hasPrefix("/auth/verify?id=") == true)
      #expect(client.gateway.sent == sent)
    }
  }

  @Test func earlyResendInANewFlowReportsTheWait() async throws {
    try await HTTPGateway().run { client in
      let browser = try await codePage(client)
      client.gateway.clock.advance(by: .seconds(15))
      try await browser.visit("/auth/login")
      let soon = try await browser.submit(["phone": "9999999999"])
      #expect(soon.status == 429)
      #expect(
        soon.text.contains("Please wait before you ask for another code.")
          && soon.text.contains("Resend code in <span class=\"timer\""))
      #expect(soon.text.contains(">00:45</span>"), "the timer is shown")
      #expect(soon.header("Retry-After") == "45")
    }
  }

  @Test func codePageShowsExpiryLockAndMissingFlow() async throws {
    try await HTTPGateway().run { client in
      let browser = try await codePage(client)
      let address = browser.address
      client.gateway.clock.advance(by: .seconds(600))
      let expired = try await browser.visit(address)
      #expect(expired.text.contains("This code has expired. Please request a new one."))
      #expect(expired.text.contains("name=\"code\"") && expired.text.contains(" disabled"))
      #expect(expired.text.contains(">Resend now</button>"))
      #expect(try await browser.post(address, ["code": "123456"]).status == 410)
      #expect(try await browser.post(address, ["action": "resend"]).status == 303)
      let right = try #require(client.gateway.code(for: "+919999999999"))
      let wrong = right == "000000" ? "000001" : "000000"
      for _ in 1...4 { #expect(try await browser.post(address, ["code": wrong]).status == 401) }
      let locked = try await browser.post(address, ["code": wrong])
      #expect(locked.status == 429)
      #expect(locked.text.contains("Too many attempts. Please try again in 15 minutes."))
      #expect(locked.text.contains("Use different phone number"))
      client.gateway.clock.advance(by: .seconds(120))
      #expect(try await browser.visit(address).text.contains("Too many attempts. Please try again in 13 minutes."))
      #expect(try await browser.post(address, ["code": right]).status == 429)
      try await browser.visit("/auth/login")
      #expect(
        try await browser.submit(["phone": "9999999999"]).text.contains("Too many attempts. Try again in 13 minutes."))
      client.gateway.clock.advance(by: .seconds(300))
      let gone = try await browser.visit(address)
      #expect(gone.status == 410)
      #expect(gone.text.contains("This sign-in has expired. Please start again."))
      #expect(gone.text.contains("<a class=\"button\" href=\"/auth/login\">Start again</a>"))
      for path in ["/auth/verify", "/auth/verify?id=", "/auth/verify?id=fl_x"] {
        let unknown = try await browser.visit(path)
        #expect(unknown.status == 404)
        #expect(unknown.text.contains("This sign-in does not exist. Please start again."))
        #expect(try await browser.post(path, ["code": "123456"]).status == 404)
      }
    }
  }

  @Test func doubleSubmitHasNoEffect() async throws {
    try await HTTPGateway().run { client in
      let browser = try await codePage(client)
      let address = browser.address
      let code = try #require(client.gateway.code(for: "+919999999999"))
      let before = browser.cookieHeader
      #expect(try await browser.post(address, ["code": code]).header("Location") == "/home")
      // The first request signed in; the second is redirected too.
      #expect(try await browser.post(address, ["code": code]).header("Location") == "/home")
      #expect(try await browser.visit(address).header("Location") == "/home")
      // The first answer was lost: the second request reports success, not a wrong code.
      let headers =
        [
          ("Accept", "text/html"), ("Origin", "http://localhost:8080"),
          ("Content-Type", "application/x-www-form-urlencoded"),
        ] + before
      let lost = try await client.send(.post, address, headers: headers, body: "code=\(code)")
      #expect(lost.status == 200)
      #expect(lost.text.contains("This sign-in is complete."))
    }
  }

  @Test func linkDoesNotWorkInAnotherBrowser() async throws {
    try await HTTPGateway().run { client in
      let browser = try await codePage(client)
      let code = try #require(client.gateway.code(for: "+919999999999"))
      let thief = Browser(client)
      #expect(try await thief.visit(browser.address).status == 404)
      #expect(try await thief.post(browser.address, ["code": code]).status == 404)
      try await thief.visit("/auth/login")
      try await thief.submit(["phone": "+14155550123"])
      #expect(thief.cookies["moongate-flow"] != nil)
      #expect(try await thief.post(browser.address, ["code": code]).status == 404)
      #expect(thief.cookies["moongate"] == nil)
    }
  }

  @Test func formsFromOtherSitesAreRefused() async throws {
    try await HTTPGateway().run { client in
      for path in ["/auth/login", "/auth/register", "/auth/verify?id=fl_x", "/auth/logout"] {
        for origin in [nil, "null", "https://evil.example"] {
          let headers =
            [("Accept", "text/html"), ("Content-Type", "application/x-www-form-urlencoded")]
            + (origin.map { [("Origin", $0)] } ?? [])
          let answer = try await client.send(.post, path, headers: headers, body: "phone=9999999999&code=123456")
          #expect(answer.status == 403)
          #expect(answer.text.contains("This request came from another site and was refused."))
          #expect(answer.setCookies == [])
        }
      }
      #expect(client.gateway.sent == 0)
    }
  }

  @Test func unreadableFormsAreRefused() async throws {
    try await HTTPGateway().run { client in
      let headers = [("Accept", "text/html"), ("Origin", "http://localhost:8080")]
      let form = ("Content-Type", "application/x-www-form-urlencoded")
      for body in ["phone=1&phone=2", "phone=%", "phone=%f", "phone=%ff", "phone=%00", "phone=1%0d%0a"] {
        #expect(try await client.send(.post, "/auth/login", headers: headers + [form], body: body).status == 400)
      }
      #expect(try await client.send(.post, "/auth/login", headers: headers, body: "phone=1").status == 415)
      #expect(
        try await client.send(
          .post, "/auth/login", headers: headers + [("Content-Type", "application/json")], body: "{}"
        ).status == 415)
      #expect(
        try await client.send(
          .post, "/auth/login", headers: headers + [form], body: String(repeating: "a", count: 65_537)
        ).status == 413)
      let empty = try await client.send(.post, "/auth/login", headers: headers + [form], body: "")
      #expect(empty.status == 422)
      #expect(empty.text.contains("Please enter a valid 10-digit mobile number"))
      #expect(empty.text.contains("aria-invalid=\"true\""))
      #expect(try await client.send(.get, "/auth/login?return_to=/a&return_to=/b", headers: headers).status == 400)
    }
  }

  @Test func markupIsEscaped() async throws {
    let attack = "\"><script>alert(1)</script>&'"
    var settings = GatewaySettings.test()
    settings.brand = Brand(name: attack, support: "mailto:\"><script>")
    try await HTTPGateway(settings: settings).run { client in
      let headers = [
        ("Accept", "text/html"), ("Origin", "http://localhost:8080"),
        ("Content-Type", "application/x-www-form-urlencoded"),
      ]
      let typed = PercentEncoding.encode(attack)
      for answer in [
        try await client.send(.get, "/auth/login?phone=\(typed)&return_to=%2F%22%3E%3Cscript%3E&x=\(typed)"),
        try await client.send(
          .post, "/auth/login", headers: headers, body: "phone=\(typed)&id=\(typed)&return_to=%2F%22%3E%3Cscript%3E"),
        try await client.send(.get, "/auth/error?code=\(typed)", headers: headers),
        try await client.send(.get, "/auth/%3Cscript%3E", headers: headers),
        try await client.send(.get, "/auth/verify?id=\(typed)", headers: headers),
      ] {
        #expect(answer.header("Content-Type") == "text/html; charset=utf-8")
        #expect(!answer.text.contains("<script>"))
        #expect(!answer.text.contains("alert(1)</script>"))
        #expect(!answer.text.contains("mailto:\""))
      }
    }
  }

  @Test func headersOfEveryPage() async throws {
    try await HTTPGateway(routes: [Route.test(host: "wallet.example.com")]).run { client in
      let headers = [("Accept", "text/html")]
      for path in [
        "/auth/login", "/auth/register", "/auth/verify?id=x", "/auth/logout", "/auth/error", "/auth/nothing",
      ] {
        let page = try await client.send(.get, path, headers: headers)
        let policy = try #require(page.header("Content-Security-Policy"))
        #expect(
          policy.hasPrefix(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self' "
          ))
        #expect(policy.hasSuffix("; base-uri 'none'; frame-ancestors 'none'"))
        #expect(policy.contains("http://wallet.example.com:8080"))
        #expect(!policy.contains("unsafe"))
        #expect(page.header("Cache-Control") == "no-store")
        #expect(page.header("X-Content-Type-Options") == "nosniff")
        #expect(page.header("Referrer-Policy") == "no-referrer")
        #expect(page.header("X-Frame-Options") == "DENY")
        #expect(page.text.hasPrefix("<!doctype html>\n<html lang=\"en\" dir=\"ltr\">"))
        #expect(page.text.contains("width=device-width"))
        for inline in ["<script>", "<style", " style=", " onclick", "javascript:"] {
          #expect(!page.text.contains(inline))
        }
      }
    }
  }

  @Test(arguments: [("stylesheet", "text/css; charset=utf-8", "#0d7377"), ("icon", "image/svg+xml", "<svg")])
  func assetsAreNamedByTheirContent(_ relation: String, _ type: String, _ part: String) async throws {
    try await HTTPGateway().run { client in
      let page = try await client.send(.get, "/auth/login")
      let link = try #require(page.text.components(separatedBy: "<link rel=\"\(relation)\"").last)
      let asset = try await client.send(.get, try #require(Browser.attribute("href", link)))
      #expect(asset.status == 200)
      #expect(asset.header("Content-Type") == type)
      #expect(asset.header("Cache-Control") == "public, max-age=31536000, immutable")
      #expect(asset.text.contains(part))
      #expect(!asset.text.contains("@import") && !asset.text.contains("url("))
    }
  }

  @Test(
    "assets are compressed if accepted; pages never, since they mix text from the address with secrets",
    arguments: [
      ("gzip, deflate, br", true), ("br, GZIP;q=0.5", true), ("*", true), ("", false), ("gzip;q=0, *", false),
      ("br", false),
    ])
  func packed(_ accepted: String, _ isPacked: Bool) async throws {
    try await HTTPGateway().run { client in
      let headers = [("Accept-Encoding", accepted), ("Accept", "text/html")]
      let page = try await client.send(.get, "/auth/login", headers: headers)
      #expect(page.header("Content-Encoding") == nil)
      let link = try #require(page.text.components(separatedBy: "<link rel=\"stylesheet\"").last)
      let address = try #require(Browser.attribute("href", link))
      let asset = try await client.send(.get, address, headers: headers)
      #expect(asset.header("Content-Encoding") == (isPacked ? "gzip" : nil))
      #expect(asset.header("Vary") == "Accept-Encoding")
      let bytes = asset.bytes
      #expect(bytes.starts(with: [0x1f, 0x8b]) == isPacked)
      let whole = try await client.send(.get, address)
      #expect(whole.text.hasPrefix("/*") && (bytes.count * 2 < whole.text.utf8.count) == isPacked)
    }
  }

  @Test(arguments: [
    ("hi", "hi"), ("fr, hi;q=0.5, en;q=0.1", "hi"), ("HI-in", "hi"), ("fr", "en"), ("hi;q=0, en", "en"), ("", "en"),
    ("*, hi", "en"),
    (";;,,q=1", "en"),
  ])
  func browserLanguageIsUsed(_ wish: String, _ tag: String) async throws {
    try await HTTPGateway().run { client in
      let page = try await client.send(.get, "/auth/login", headers: [("Accept-Language", wish)])
      #expect(page.text.contains("<html lang=\"\(tag)\""))
      #expect(page.header("Content-Language") == tag)
      #expect(page.setCookies == [])
      let chosen = try await client.send(.get, "/auth/login?language=hi", headers: [("Accept-Language", wish)])
      #expect(chosen.setCookies == ["moongate-language=hi; Path=/auth; Max-Age=31536000; SameSite=Lax"])
      let kept = try await client.send(
        .get, "/auth/login", headers: [("Accept-Language", wish), ("Cookie", "moongate-language=hi")])
      #expect(kept.text.contains("फिर से स्वागत है!"))
      // Arbitrary text becomes neither a cookie nor a language.
      #expect(try await client.send(.get, "/auth/login?language=hi%3Bx").setCookies == [])
    }
  }

  @Test func refusalsInAnotherLanguage() async throws {
    try await HTTPGateway().run { client in
      let headers = [
        ("Accept", "text/html"), ("Accept-Language", "hi"), ("Origin", "http://localhost:8080"),
        ("Content-Type", "application/x-www-form-urlencoded"),
      ]
      for (phone, sentence) in [("99999%2099999", "खाता नहीं मिला। नया बनाएँ?"), ("12", "कृपया 10 अंकों का मान्य मोबाइल नंबर लिखें")] {
        let refused = try await client.send(.post, "/auth/login", headers: headers, body: "phone=\(phone)")
        #expect(refused.text.contains(sentence))
      }
    }
  }

  @Test func pageScriptsReceiveTheNextAddress() async throws {
    try await HTTPGateway().run { client in
      let headers = [
        ("Accept", "text/html"), ("Origin", "http://localhost:8080"),
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Moongate-Page", "script"), ("Cookie", "moongate-flow=" + String(repeating: "A", count: 43)),
      ]
      // A browser that stores no cookies could not enter the code.
      let without = try await client.send(
        .post, "/auth/register", headers: Array(headers.dropLast()), body: "phone=9999999999")
      #expect(
        without.status == 403 && without.text.contains("Your browser blocks cookies for this site.")
          && without.setCookies.count == 1)
      #expect(client.gateway.sent == 0)
      let sent = try await client.send(.post, "/auth/register", headers: headers, body: "phone=9999999999")
      #expect(sent.status == 200)
      #expect((sent["next"] as? String)?.hasPrefix("/auth/verify?id=fl_") == true)
      #expect(sent.setCookies.count == 1)
      let refused = try await client.send(.post, "/auth/login", headers: headers, body: "phone=9876543210")
      #expect(refused.status == 404)
      #expect(refused.text.contains("data-code=\"account_not_found\""))
    }
  }

  @Test func theProxysRefusalsAsPages() throws {
    let pages = try PageRenderer(logger: CapturedLog().logger)
    let refusal = Refusal(.unauthenticated, decision: DecisionID(text: "dc_x"))
    let generation = TestGeneration(gateway: .test(), flows: [], policies: [])
    let html = pages.html(for: refusal, languages: nil, generation: generation)
    #expect(!html.contains("<script"))
    #expect(html.contains("<a class=\"button\" href=\"http://localhost:8080/auth/login\">Sign in</a>"))
    #expect(html.contains("Reference: dc_x"))
    let late = Refusal(.upstreamTimeout, decision: DecisionID(text: "dc_y"))
    let told = pages.html(for: late, languages: "fr", generation: generation)
    #expect(
      told.contains("The service took too long to answer.")
        && told.contains("<a class=\"button\" href=\"\">Try again</a>"))
    let hindi = pages.html(for: late, languages: "hi-IN, en;q=0.5", generation: generation)
    #expect(hindi.contains("<html lang=\"hi\" dir=\"ltr\">") && hindi.contains("<title>सेवा बहुत धीमी है"))
    #expect(hindi.contains("सेवा ने उत्तर देने में बहुत समय लिया।"))
  }

  @Test func errorsAreRenderedAsPageOrJSON() async throws {
    try await HTTPGateway().run { client in
      let page = try await client.send(.get, "/auth/error?code=too_many_attempts", headers: [("Accept", "text/html")])
      #expect(page.status == 429)
      #expect(page.text.contains("Too many attempts. Please try again later."))
      #expect(page.text.contains("Reference: dc_"))
      let unknown = try await client.send(.get, "/auth/error?code=made_up", headers: [("Accept", "text/html")])
      #expect(unknown.status == 400)
      #expect(!unknown.text.contains("made_up"))
      #expect(try await client.send(.get, "/auth/nothing", headers: [("Accept", "*/*")]).problem() == "not_found")
      #expect(
        try await client.send(.get, "/auth/nothing", headers: [("Accept", "application/json, TEXT/HTML;q=0.9")]).text
          .contains("<h1>Not found</h1>"))
      #expect(
        try await client.send(.get, "/api/auth/nothing", headers: [("Accept", "text/html")]).problem() == "not_found")
    }
  }

  @Test(arguments: [(1, "00:01"), (45, "00:45"), (599, "09:59")])
  func countdowns(_ seconds: Int, _ text: String) async throws {
    let gateway = try HTTPGateway { generation in
      generation.policies = generation.policies.mapValues {
        .test($0.provider, resendAfter: [.seconds(seconds)], limits: [])
      }
    }
    try await gateway.run { client in
      let browser = Browser(client)
      try await browser.visit("/auth/register")
      let sent = try await browser.submit(["phone": "9999999999"])
      #expect(try await browser.visit(try #require(sent.header("Location"))).text.contains(">\(text)</span>"))
    }
  }
}

extension Route {
  /// A proxied route.
  static func test(host: String?, below folder: String? = nil, requirement: Requirement? = nil) -> Route {
    let segments = (folder.map { [PathPattern.Segment.glob(Array($0.utf8))] } ?? []) + [.anySegments]
    return Route(
      host: host, path: PathPattern(text: folder.map { "/\($0)/**" } ?? "/**", segments: segments), methods: nil,
      upstreams: [Upstream(isSecure: false, host: "127.0.0.1", port: 3000)], isOpen: false, flow: "login",
      requirement: requirement, decide: nil,
      timeout: .seconds(30), allowsUpgrade: false, headers: [], bodyLimit: nil,
      location: MoongateCore.SourceLocation(file: "routes.lua", line: 1))
  }
}
