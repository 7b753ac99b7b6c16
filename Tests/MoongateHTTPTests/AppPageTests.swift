import Crypto
import Foundation
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

/// `/auth/app`: the page that names the app and asks, before an app receives the result of a sign-in.
@Suite struct AppPageTests {
  private static let verifier = String(repeating: "v", count: 43)
  private static let challenge = Base64URL.encode(SHA256.hash(data: Data(verifier.utf8)))
  private static let redirect = "com.example.app:/in"
  private static let name = "<script>alert(1)</script> & \"Co\""

  private func gateway(_ consent: App.Consent, redirect: String = redirect) throws -> HTTPGateway {
    let uri = try RedirectURI(redirect)
    return try HTTPGateway { generation in
      generation.apps = AppTable(
        [App(id: "mobile", name: Self.name, redirectURIs: [uri], consent: consent)], own: nil)
    }
  }

  private func created(_ client: Client, redirect: String = redirect) async throws -> String {
    let created = try await client.call(
      .post, "/api/auth/flows",
      #"{"flow":"enter","code_challenge":"\#(Self.challenge)","redirect_to":"\#(redirect)"}"#)
    #expect(created.status == 201, "\(created.text)")
    return try #require(created["id"] as? String)
  }

  /// Signs in with the phone number on the flow's pages.
  /// - Returns: the answer to the code.
  private func signIn(_ browser: Browser, _ id: String) async throws -> Answer {
    try await browser.visit("/auth/login?id=\(id)")
    let sent = try await browser.submit(["phone": "9999999999"])
    try await browser.visit(try #require(sent.header("Location"), "\(sent.status) \(sent.text)"))
    let code = try #require(browser.client.gateway.code(for: "+919999999999"))
    browser.client.gateway.clock.advance(by: .seconds(61))
    return try await browser.submit(["code": code])
  }

  /// The sources of the page's `form-action`.
  private func actions(_ page: Answer) throws -> [Substring] {
    let policy = try #require(page.header("Content-Security-Policy"))
    let directive = try #require(policy.split(separator: "; ").first { $0.hasPrefix("form-action ") })
    return directive.split(separator: " ").dropFirst().map { $0 }
  }

  /// The whole way of a native app: the page asks, the user signs in, and the app redeems the code.
  @Test(arguments: [redirect, "https://app.example.com/in", "http://127.0.0.1:4567/in?x=1"])
  func nativeApp(redirect: String) async throws {
    try await gateway(.once, redirect: redirect).run { client in
      let id = try await created(client, redirect: redirect)
      let browser = Browser(client)
      #expect(try await browser.visit("/auth/login?id=\(id)").header("Location") == "/auth/app?id=\(id)")
      try await browser.visit("/auth/app?id=\(id)")
      let agreed = try await browser.submit(["action": "allow"])
      #expect(agreed.status == 303 && agreed.header("Location") == "/auth/login?id=\(id)")
      let cookie = try #require(agreed.setCookies.first { $0.hasPrefix("moongate-apps=") })
      #expect(cookie.hasSuffix("; Path=/; HttpOnly; SameSite=Lax; Max-Age=31536000"))
      let done = try await signIn(browser, id)
      let target = try #require(done.header("Location"), "\(done.text)")
      #expect(target.hasPrefix(redirect + (redirect.contains("?") ? "&code=" : "?code=")))
      #expect(browser.cookies["moongate"] == nil, "the session is the app's")
      #expect(browser.cookies["moongate-device"] != nil, "the browser is a known device")
      let code = try #require(target.split(separator: "=").last)
      let redeemed = try await client.call(
        .post, "/api/auth/flows/\(id)/submit", #"{"code":"\#(code)","code_verifier":"\#(Self.verifier)"}"#)
      #expect((redeemed["session"] as? [String: Any])?["token"] is String, "\(redeemed.text)")
      #expect(redeemed["device_token"] == nil)
    }
  }

  /// An app begins the registration with an invitation, and the user continues on the pages, where a link or a cookie
  /// has none.
  @Test func anAppsInvitationIsGoodOnThePages() async throws {
    let uri = try RedirectURI(Self.redirect)
    let http = try HTTPGateway { generation in
      generation.apps = AppTable(
        [App(id: "mobile", name: "Mobile", redirectURIs: [uri], consent: .never)], own: nil)
      generation.accounts.registration = .invited()
    }
    try await http.run { client in
      let (code, now) = (InvitationCode(from: SystemRandom()), client.gateway.clock.now())
      let invitation = Invitation(
        id: "in_1", code: code.hash, identifier: nil, groups: [], createdAt: now, expiresAt: now + .seconds(600))
      _ = try await client.gateway.store.apply([.putInvitation(invitation)], at: now)
      let app = #""code_challenge":"\#(Self.challenge)","redirect_to":"\#(Self.redirect)""#
      let created = try await client.call(
        .post, "/api/auth/flows",
        #"{"flow":"register","invitation":"\#(code.secret.reveal())",\#(app)}"#)
      let id = try #require(created["id"] as? String, "\(created.text)")
      let browser = Browser(client)
      #expect(try await browser.visit("/auth/register").status == 403)
      #expect(try await browser.visit("/auth/register?id=fl_none").status == 403)
      #expect(try await browser.visit("/auth/register?id=\(id)").status == 200)
      let sent = try await browser.submit(["phone": "9999999999"])
      try await browser.visit(try #require(sent.header("Location"), "\(sent.status) \(sent.text)"))
      let done = try await browser.submit(["code": try #require(client.gateway.code(for: "+919999999999"))])
      #expect(done.header("Location")?.hasPrefix(Self.redirect) ?? false, "\(done.text)")
      #expect(try await client.gateway.store.accounts(after: nil, limit: 9).count == 1)
    }
  }

  /// Attack: HTML in the name of an app, and characters that end an attribute.
  @Test func nameIsText() async throws {
    try await gateway(.once).run { client in
      let id = try await created(client)
      let browser = Browser(client)
      try await browser.visit("/auth/login?id=\(id)")
      let asked = try await browser.visit("/auth/app?id=\(id)")
      #expect(asked.status == 200)
      #expect(asked.text.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;Co&quot;"))
      #expect(!asked.text.contains("<script>alert"))
      #expect(asked.text.contains("com.example.app:"))
    }
  }

  /// Attack: the victim's sign-in page does not say that an app receives the result.
  @Test func eachPageOfTheFlowNamesTheApp() async throws {
    try await gateway(.never).run { client in
      let id = try await created(client)
      let browser = Browser(client)
      let named = "&lt;script&gt;alert(1)&lt;/script&gt;"
      #expect(try await browser.visit("/auth/login?id=\(id)").text.contains(named))
      #expect(try await browser.submit(["phone": "12"]).text.contains(named), "after a mistake")
      try await browser.visit("/auth/login?id=\(id)")
      let sent = try await browser.submit(["phone": "9999999999"])
      #expect(try await browser.visit(try #require(sent.header("Location"))).text.contains(named))
      // A sign-in of the browser's own does not.
      #expect(!(try await browser.visit("/auth/login").text.contains(named)))
    }
  }

  /// Without scripts, browsers follow a form's redirect only to the sources of `form-action`.
  @Test(arguments: [
    (redirect, "com.example.app:"), ("https://app.example.com/in", "https://app.example.com"),
    ("http://127.0.0.1:4567/in", "http://127.0.0.1:4567"),
  ])
  func formsLeadBackToTheAppOnItsPagesOnly(redirect: String, source: String) async throws {
    try await gateway(.once, redirect: redirect).run { client in
      let id = try await created(client, redirect: redirect)
      let browser = Browser(client)
      let before = try actions(try await browser.visit("/auth/login"))
      #expect(!before.contains { $0 == source })
      try await browser.visit("/auth/login?id=\(id)")
      #expect(try actions(try await browser.visit("/auth/app?id=\(id)")) == before + [Substring(source)])
      _ = try await browser.submit(["action": "allow"])
      #expect(try actions(try await browser.visit("/auth/login?id=\(id)")) == before + [Substring(source)])
      #expect(try actions(try await browser.submit(["phone": "12"])) == before + [Substring(source)])
      #expect(try actions(try await browser.visit("/auth/login")) == before)
      #expect(try actions(try await browser.visit("/auth/error?code=denied")) == before)
    }
  }

  @Test func cancellingTellsTheApp() async throws {
    try await gateway(.once).run { client in
      let id = try await created(client)
      let browser = Browser(client)
      try await browser.visit("/auth/app?id=\(id)")
      let cancelled = try await browser.submit(["action": "cancel"])
      #expect(cancelled.status == 303 && cancelled.header("Location") == Self.redirect + "?error=access_denied")
      #expect(try await client.call(.get, "/api/auth/flows/\(id)").status == 404)
      #expect(browser.cookies["moongate-apps"] == nil)
    }
  }

  /// Attack: a page of another site agrees for the user, or the attacker agrees in a browser of their own.
  @Test func onlyTheFlowsBrowserAgrees() async throws {
    try await gateway(.once).run { client in
      let id = try await created(client)
      let victim = Browser(client)
      try await victim.visit("/auth/login?id=\(id)")
      let attacker = Browser(client)
      #expect(try await attacker.visit("/auth/app?id=\(id)").status == 404)
      #expect(try await attacker.post("/auth/app?id=\(id)", ["action": "allow"]).status == 404)
      let foreign = try await client.send(
        .post, "/auth/app?id=\(id)",
        headers: victim.cookieHeader + [
          ("Origin", "https://evil.example"), ("Content-Type", "application/x-www-form-urlencoded"),
        ], body: "action=allow")
      #expect(foreign.status == 403 && foreign.problem() == "origin_refused")
      // The form of the sign-in page does not continue before the answer either.
      #expect(try await victim.visit("/auth/login?id=\(id)").header("Location") == "/auth/app?id=\(id)")
    }
  }

  @Test func consentIsAskedOnceInABrowserOrAlways() async throws {
    for (consent, isAskedAgain) in [(App.Consent.once, false), (.always, true)] {
      try await gateway(consent).run { client in
        let browser = Browser(client)
        try await browser.visit("/auth/app?id=\(try await created(client))")
        _ = try await browser.submit(["action": "allow"])
        let again = try await created(client)
        let opened = try await browser.visit("/auth/login?id=\(again)")
        #expect((opened.header("Location") == "/auth/app?id=\(again)") == isAskedAgain)
        let other = Browser(client)
        let elsewhere = try await other.visit("/auth/app?id=\(again)")
        #expect(elsewhere.status != 200 && !elsewhere.text.contains("alert(1)"), "it belongs to the first browser")
        let third = try await created(client)
        #expect(try await other.visit("/auth/login?id=\(third)").header("Location") == "/auth/app?id=\(third)")
      }
    }
  }
}
