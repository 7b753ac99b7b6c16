import Crypto
import Foundation
import HTTPTypes
import MoongateCore
import MoongateHTTP
import MoongateSDK
import MoongateTesting
import Testing

extension App {
  /// A public app that asks for consent and serves devices.
  static func asking(
    _ name: String = "Notes", consent: Consent = .once, scopes: Set<String> = AppScope.standard,
    requirement: AppRequirement = AppRequirement()
  ) throws -> App {
    App(
      id: "notes", name: name, redirectURIs: [try RedirectURI("https://notes.example.com/in")], consent: consent,
      requirement: requirement, scopes: scopes, grants: [.authorizationCode, .refreshToken, .deviceCode],
      signing: .es256)
  }
}

extension Browser {
  /// Begins a sign-in of an app in this browser, as `/auth/openid/authorize` does.
  /// - Returns: the sealed request.
  func begin(
    _ app: App, scopes: [String] = ["openid", "email"], change: (inout AuthorizationRequest) -> Void = { _ in }
  ) throws -> String {
    let cookie = try #require(cookies["moongate-flow"])
    let challenge = Base64URL.encode(SHA256.hash(data: Data(String(repeating: "v", count: 43).utf8)))
    let grant = try #require(Grant(app: app, redirect: app.redirectURIs[0].text, challenge: challenge, scopes: scopes))
    var request = AuthorizationRequest(
      grant: grant, browser: TokenHash(of: cookie.utf8), beganAt: client.gateway.clock.now(),
      random: client.gateway.random)
    change(&request)
    return try client.gateway.keys.sealed(request)
  }
}

/// `/auth/openid/consent`: the page that names an app and what it asks for.
@Suite struct ConsentPageTests {
  private func gateway(_ app: App?, pages: [PageFile] = []) throws -> HTTPGateway {
    try HTTPGateway { generation in
      generation.apps = AppTable(app.map { [$0] } ?? [], own: nil)
      generation.pages = pages
    }
  }

  private func address(_ sealed: String) -> String { "/auth/openid/consent?request=\(sealed)" }

  /// The sealed request of a continuation, and its other fields.
  private func continuation(_ answer: Answer) throws -> FormFields {
    let target = try #require(answer.header("Location"), "\(answer.status) \(answer.text)")
    let parts = target.split(separator: "?", maxSplits: 1)
    #expect(answer.status == 303 && parts.first == "/auth/openid/continue")
    let query = try #require(parts.last)
    return try #require(FormFields(query.utf8))
  }

  private func actions(_ page: Answer) throws -> [Substring] {
    let policy = try #require(page.header("Content-Security-Policy"))
    let directive = try #require(policy.split(separator: "; ").first { $0.hasPrefix("form-action ") })
    return directive.split(separator: " ").dropFirst().map { $0 }
  }

  @Test func itSaysWhatTheAppGetsAndWhereItGoes() async throws {
    let app = try App.asking()
    try await gateway(app).run { client in
      let browser = try await Browser.owner(client)
      let sealed = try browser.begin(app, scopes: ["openid", "email", "groups", "unknown"])
      let page = try await browser.visit(address(sealed))
      #expect(page.status == 200)
      for text in [
        "<h1>Notes asks to use your account</h1>", "Recognise you when you come back", "See your email address",
        "See the groups that you belong to", "https://notes.example.com", "You are signed in as", "Sign in as someone",
        "aria-labelledby=\"scopes\"",
      ] { #expect(page.text.contains(text), "\(text)") }
      #expect(!page.text.contains("unknown") && !page.text.contains("See your phone number"))
      #expect(page.text.components(separatedBy: "<h1>").count == 2)
      // Another account signs in and continues here.
      #expect(page.text.contains("/auth/logout?return_to=%2Fauth%2Fopenid%2Fcontinue%3Frequest%3D"))
    }
  }

  @Test func agreementIsPartOfTheRequest() async throws {
    let app = try App.asking()
    try await gateway(app).run { client in
      let browser = try await Browser.owner(client)
      let sealed = try browser.begin(app)
      try await browser.visit(address(sealed))
      let answer = try continuation(try await browser.submit(["action": "allow"]))
      let (keys, now) = (client.gateway.keys, client.gateway.clock.now())
      let text = try #require(answer["request"])
      let agreed = try #require(keys.authorizationRequest(text, at: now))
      var asked = try #require(keys.authorizationRequest(sealed, at: now))
      let account = try #require(try await client.gateway.store.accounts(after: nil, limit: 9).first)
      asked.agreed = account.id
      #expect(agreed == asked && answer["cancel"] == nil)
    }
  }

  /// Browsers apply `form-action` to the app's own redirects as well, so scripts open the address themselves.
  @Test func scriptsGetTheAddress() async throws {
    let app = try App.asking()
    try await gateway(app).run { client in
      let browser = try await Browser.owner(client)
      let sealed = try browser.begin(app)
      let page = try await browser.visit(address(sealed))
      #expect(page.text.contains("data-form=\"entrance\" data-way=\"step\" data-whole"))
      let account = try #require(try await client.gateway.store.accounts(after: nil, limit: 9).first)
      let sent = try await client.form(
        address(sealed), ["action": "allow", "account": account.id],
        headers: browser.cookieHeader + [("Origin", browser.origin), ("Moongate-Page", "script")])
      let next = try #require(sent["next"] as? String, "\(sent.status) \(sent.text)")
      #expect(next.hasPrefix("/auth/openid/continue?request="))
    }
  }

  @Test func refusalGoesBackToTheApp() async throws {
    let app = try App.asking()
    try await gateway(app).run { client in
      let browser = try await Browser.owner(client)
      let sealed = try browser.begin(app)
      try await browser.visit(address(sealed))
      let answer = try continuation(try await browser.submit(["action": "cancel"]))
      #expect(answer["cancel"] == "1" && answer["request"] == sealed)
    }
  }

  /// Attack: HTML in the name of an app or of a scope, and characters that end an attribute.
  @Test func namesAreText() async throws {
    let app = try App.asking("<script>alert(1)</script> & \"Co\"", scopes: ["openid", "<b>\"x"])
    try await gateway(app).run { client in
      let browser = try await Browser.owner(client)
      let page = try await browser.visit(address(try browser.begin(app, scopes: ["openid", "<b>\"x"])))
      #expect(page.text.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;Co&quot; asks"))
      #expect(page.text.contains("Use “&lt;b&gt;&quot;x”"))
      #expect(!page.text.contains("<script>alert") && !page.text.contains("<b>\""))
    }
  }

  /// Attack: the page is shown in an invisible frame, where the victim presses its button (clickjacking).
  ///
  /// Attack: markup in the page sends its form elsewhere. Forms lead to the gateway and back to this app only.
  @Test func itIsNotFramedAndLeadsOnlyToItsApp() async throws {
    let app = try App.asking()
    try await gateway(app).run { client in
      let browser = try await Browser.owner(client)
      let before = try actions(try await browser.visit("/auth/account"))
      let page = try await browser.visit(address(try browser.begin(app)))
      #expect(page.header("X-Frame-Options") == "DENY")
      let policy = try #require(page.header("Content-Security-Policy"))
      #expect(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"))
      #expect(try actions(page) == before + ["https://notes.example.com"])
      let after = try actions(try await browser.visit("/auth/account"))
      #expect(after == before)
    }
  }

  /// Attack: a page of another site agrees for the user (CSRF).
  @Test func anotherSiteCannotAgree() async throws {
    let app = try App.asking()
    try await gateway(app).run { client in
      let browser = try await Browser.owner(client)
      let sealed = try browser.begin(app)
      let account = try #require(try await client.gateway.store.accounts(after: nil, limit: 9).first)
      let foreign = try await client.send(
        .post, address(sealed),
        headers: browser.cookieHeader + [
          ("Origin", "https://evil.example"), ("Content-Type", "application/x-www-form-urlencoded"),
        ], body: "action=allow&account=\(account.id)")
      #expect(foreign.status == 403 && foreign.problem() == "origin_refused")
    }
  }

  /// Attack: a link to the consent of a sign-in that the attacker has begun, so that the attacker's app session gets
  /// the victim's account.
  @Test func onlyTheBrowserThatBeganItIsAsked() async throws {
    let app = try App.asking()
    try await gateway(app).run { client in
      let attacker = Browser(client)
      try await attacker.visit("/auth/register")
      _ = try await attacker.submit(["phone": "9999999998"])
      let sealed = try attacker.begin(app)
      let victim = try await Browser.owner(client)
      #expect(try await victim.visit(address(sealed)).status == 404)
      #expect(try await victim.post(address(sealed), ["action": "allow"]).status == 404)
    }
  }

  /// Attack: the user agrees for one account, and another one has been signed in meanwhile, whose data the app gets.
  @Test func agreementCountsForTheAccountThatThePageShowed() async throws {
    let app = try App.asking()
    try await gateway(app).run { client in
      let browser = try await Browser.owner(client)
      let sealed = try browser.begin(app)
      let other = try await browser.post(address(sealed), ["action": "allow", "account": "ac_other"])
      #expect(other.status == 200 && other.text.contains("Notes asks to use your account"))
      #expect(try await browser.post(address(sealed), ["action": "allow"]).status == 200)
    }
  }

  /// Attack: consent to one scope is used for more: the request is changed after the page has shown it.
  @Test func aChangedRequestIsRefused() async throws {
    let app = try App.asking()
    try await gateway(app).run { client in
      let browser = try await Browser.owner(client)
      let sealed = try browser.begin(app, scopes: ["openid"])
      var bytes = Array(sealed.utf8)
      bytes[bytes.count / 2] = bytes[bytes.count / 2] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      for forged in [String(decoding: bytes, as: UTF8.self), String(sealed.dropLast(4)), "x", ""] {
        #expect(try await browser.visit(address(forged)).status == 410, "\(forged)")
      }
      client.gateway.clock.advance(by: .seconds(3601))
      #expect(try await browser.visit(address(sealed)).status == 410, "an hour later")
    }
  }

  @Test func aRemovedAppIsNotAskedAbout() async throws {
    let app = try App.asking()
    let moved = App(
      id: app.id, name: app.name, redirectURIs: [try RedirectURI("https://notes.example.com/other")], consent: .once)
    for current in [App(id: "other", name: "Other", redirectURIs: app.redirectURIs, consent: .once), moved] {
      try await gateway(current).run { client in
        let browser = try await Browser.owner(client)
        let sealed = try browser.begin(app)
        #expect(try await browser.visit(address(sealed)).status == 410)
      }
    }
  }

  @Test func aUserWhoHasSignedOutSignsInFirst() async throws {
    let app = try App.asking()
    try await gateway(app).run { client in
      let browser = Browser(client)
      try await browser.visit("/auth/register")
      _ = try await browser.submit(["phone": "9999999999"])
      let sealed = try browser.begin(app)
      let opened = try continuation(try await browser.visit(address(sealed)))
      let sent = try continuation(try await browser.post(address(sealed), ["action": "allow"]))
      #expect(opened["request"] == sealed && sent["request"] == sealed)
    }
  }

  @Test func operatorsNameTheirOwnScopes() async throws {
    let app = try App.asking(scopes: ["openid", "orders", "other"])
    let words = PageFile(name: "en.words", bytes: Array("scope_orders = Read your orders\n".utf8))
    #expect(PageRenderer.problems(of: [words]) == [])
    try await gateway(app, pages: [words]).run { client in
      let browser = try await Browser.owner(client)
      let page = try await browser.visit(address(try browser.begin(app, scopes: ["openid", "orders", "other"])))
      #expect(page.text.contains("Read your orders") && page.text.contains("Use “other”"))
    }
  }

  @Test func theLanguageChangesOnThePage() async throws {
    let app = try App.asking()
    try await gateway(app).run { client in
      let browser = try await Browser.owner(client)
      let page = try await browser.visit(address(try browser.begin(app)))
      let hindi = try await browser.visit(try Browser.language("hi", of: page))
      #expect(hindi.status == 200 && hindi.text.contains("आपका ईमेल पता देखना"))
    }
  }

  /// Attack: markup in `state`, on the page that posts the answer to the app.
  @Test func theAnswerIsPostedWithoutScriptsToo() async throws {
    let app = try App.asking()
    try await gateway(app).run { client in
      let browser = try await Browser.owner(client)
      let account = try #require(try await client.gateway.store.accounts(after: nil, limit: 9).first)
      let before = try actions(try await browser.visit("/auth/account"))
      let sealed = try browser.begin(app) { request in
        request.responseMode = .formPost
        request.state = "\"><script>x</script>"
        request.agreed = account.id
      }
      let page = try await browser.visit("/auth/openid/continue?request=\(sealed)")
      #expect(page.status == 200, "\(page.text)")
      for text in [
        "<form method=\"post\" action=\"https://notes.example.com/in\" data-posts>", "name=\"code\" value=\"",
        "name=\"state\" value=\"&quot;&gt;&lt;script&gt;x", "name=\"iss\" value=\"http://localhost:8080\"",
        "<button type=\"submit\"",
      ] { #expect(page.text.contains(text), "\(text)") }
      #expect(!page.text.contains("<script>x"))
      // The app may redirect to another site of its own, to which browsers apply the directive as well.
      #expect(try actions(page) == before + ["https://notes.example.com", "https:"])
      // The page in another language has an answer as well.
      let hindi = try await browser.visit(try Browser.language("hi", of: page))
      #expect(hindi.status == 200 && hindi.text.contains("name=\"code\" value=\""))
    }
  }

  // MARK: The pages before it

  /// Attack: the victim's sign-in page does not say that an app receives the result.
  @Test func eachPageOfTheSignInNamesTheApp() async throws {
    let app = try App.asking("<b>Notes</b>")
    try await gateway(app).run { client in
      let browser = Browser(client)
      let before = try actions(try await browser.visit("/auth/register"))
      _ = try await browser.submit(["phone": "9999999998"])
      let sealed = try browser.begin(app)
      let named = "To continue to &lt;b&gt;Notes&lt;/b&gt;"
      let path = FormFields.address("/auth/register", ["return_to": "/auth/openid/continue?request=\(sealed)"])
      let opened = try await browser.visit(path)
      #expect(opened.text.contains(named))
      #expect(try actions(opened) == before + ["https://notes.example.com"])
      #expect(try await browser.submit(["phone": "12"]).text.contains(named), "after a mistake")
      try await browser.visit(path)
      let sent = try await browser.submit(["phone": "9999999999"])
      let entering = try await browser.visit(try #require(sent.header("Location"), "\(sent.status) \(sent.text)"))
      #expect(entering.text.contains(named))
      #expect(try actions(entering) == before + ["https://notes.example.com"])
      #expect(try await browser.submit(["code": "000000"]).text.contains(named), "after a wrong code")
      // A sign-in of the browser's own does not.
      #expect(!(try await browser.visit("/auth/register").text.contains(named)))
    }
  }

  /// Attack: a link with a sign-in that the attacker has begun names an app on the victim's page, and lets its forms
  /// lead there.
  @Test func pagesOfAnotherBrowserDoNotNameIt() async throws {
    let app = try App.asking()
    try await gateway(app).run { client in
      let attacker = Browser(client)
      try await attacker.visit("/auth/register")
      _ = try await attacker.submit(["phone": "9999999998"])
      let sealed = try attacker.begin(app)
      let victim = Browser(client)
      let before = try actions(try await victim.visit("/auth/login"))
      for path in ["/auth/openid/continue?request=\(sealed)", "/auth/openid/continue?request=x", "/auth/account"] {
        let page = try await victim.visit(FormFields.address("/auth/login", ["return_to": path]))
        #expect(page.status == 200 && !page.text.contains("To continue to"))
        #expect(try actions(page) == before)
      }
    }
  }
}
