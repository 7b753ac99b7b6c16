import Foundation
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

/// `/auth/openid/logout` (OpenID Connect RP-Initiated Logout 1.0).
@Suite struct AppSignOutTests {
  private static func address(_ fields: [String: String]) -> String { "/auth/openid/logout?" + TestApp.form(fields) }

  private func isSignedIn(_ browser: Browser, _ client: Client) async throws -> Bool {
    try await client.send(.get, "/api/auth/session", headers: browser.cookieHeader).status == 200
  }

  @Test func hintOfTheSessionSignsOutAtOnce() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let browser = try await Browser.owner(client)
      let hint = try #require(try await browser.tokens()["id_token"] as? String)
      let cookies = browser.cookieHeader
      let answer = try await browser.visit(
        Self.address(["id_token_hint": hint, "post_logout_redirect_uri": TestApp.afterwards, "state": "a b"]))
      #expect(answer.header("Location") == TestApp.afterwards + "?state=a%20b", "\(answer.status) \(answer.text)")
      #expect(try await client.send(.get, "/api/auth/session", headers: cookies).status == 401)
    }
  }

  /// Attack: a link or an image of another site signs users out.
  @Test func otherwiseAPageAsks() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let browser = try await Browser.owner(client)
      let asked = try await browser.visit(
        Self.address(["client_id": "grafana", "post_logout_redirect_uri": TestApp.afterwards, "state": "s"]))
      #expect(asked.status == 200 && asked.text.contains("action=\"/auth/openid/logout/confirm\""))
      #expect(try await isSignedIn(browser, client))
      // Attack: another site sends the form.
      let fields = [
        "action": "sign_out", "client_id": "grafana", "post_logout_redirect_uri": TestApp.afterwards, "state": "s",
      ]
      for origin in [[("Origin", "https://evil.example")], []] {
        let forged = try await client.form(
          "/auth/openid/logout/confirm", fields, headers: browser.cookieHeader + origin)
        #expect(forged.status == 403)
      }
      #expect(try await isSignedIn(browser, client))
      let cancelled = try await browser.submit(["action": "cancel"])
      #expect(cancelled.header("Location") == "/auth/account")
      #expect(try await isSignedIn(browser, client))
      try await browser.visit(
        Self.address(["client_id": "grafana", "post_logout_redirect_uri": TestApp.afterwards, "state": "s"]))
      let done = try await browser.submit(["action": "sign_out"])
      #expect(done.header("Location") == TestApp.afterwards + "?state=s")
      #expect(!(try await isSignedIn(browser, client)))
    }
  }

  /// Attack: an open redirect after the sign-out.
  @Test(arguments: [
    "https://evil.example/", "https://grafana.example.com", "https://grafana.example.com/?x=1",
    "https://grafana.example.com@evil.example/", "//grafana.example.com/", "https://grafana.example.com/#",
    TestApp.redirect, "javascript:alert(1)",
  ])
  func otherAddressGetsNothing(_ address: String) async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let browser = try await Browser.owner(client)
      let hint = try #require(try await browser.tokens()["id_token"] as? String)
      for more in [["id_token_hint": hint], ["client_id": "grafana"], [:]] {
        let fields = more.merging(["post_logout_redirect_uri": address]) { $1 }
        let answer = try await browser.visit(Self.address(fields))
        #expect(answer.status == 400 && answer.header("Location") == nil)
        let confirmed = try await browser.post(
          "/auth/openid/logout/confirm", fields.merging(["action": "sign_out"]) { $1 })
        #expect(confirmed.status == 400)
      }
      #expect(try await isSignedIn(browser, client))
    }
  }

  /// Attack: a forged hint signs somebody out, or leads elsewhere.
  @Test func forgedHintLeadsNowhere() async throws {
    try await TestApp.gateway([TestApp.confidential(), TestApp.confidential("other")]).run { client async throws in
      let browser = try await Browser.owner(client)
      let tokens = try await browser.tokens()
      let hint = try #require(tokens["id_token"] as? String)
      let parts = hint.split(separator: ".").map(String.init)
      let none = Base64URL.encode(#"{"alg":"none"}"#.utf8)
      let access = try #require(tokens["access_token"] as? String)
      for forged in ["\(none).\(parts[1]).", "\(parts[0]).\(parts[1]).AAAA", "x", access] {
        let answer = try await browser.visit(
          Self.address([
            "id_token_hint": forged, "client_id": "grafana", "post_logout_redirect_uri": TestApp.afterwards,
          ]))
        // The links to other languages repeat the request.
        let page = answer.text.split(separator: "class=\"languages\"").first ?? ""
        #expect(answer.status == 200 && !page.contains("grafana.example.com"), "\(forged)")
      }
      // Attack: the hint of one app with the id of another one.
      let mixed = try await browser.visit(Self.address(["id_token_hint": hint, "client_id": "other"]))
      #expect(mixed.status == 400)
      #expect(try await isSignedIn(browser, client))
    }
  }

  /// The hint names another session of the same user: the page asks.
  @Test func hintOfAnotherSessionAsks() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let browser = try await Browser.owner(client)
      let hint = try #require(try await browser.tokens()["id_token"] as? String)
      client.gateway.clock.advance(by: .seconds(61))
      let second = Browser(client)
      try await second.visit("/auth/login")
      _ = try await second.signIn()
      let asked = try await second.visit(
        Self.address(["id_token_hint": hint, "post_logout_redirect_uri": TestApp.afterwards]))
      #expect(asked.status == 200 && asked.text.contains("value=\"grafana\""))
      #expect(try await isSignedIn(second, client))
      #expect(try await isSignedIn(browser, client))
    }
  }

  /// Attack: an image of another site deletes what services have stored in the browser. Browsers add no cookies to it.
  @Test func requestWithoutASessionDeletesNothing() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let named = Self.address(["client_id": "grafana", "post_logout_redirect_uri": TestApp.afterwards])
      for (path, place) in [(named, TestApp.afterwards), ("/auth/openid/logout", "/auth/login")] {
        let answer = try await client.send(.get, path, headers: [("Accept", "text/html")])
        #expect(answer.header("Location") == place && answer.setCookies.isEmpty, "\(answer.setCookies)")
        #expect(answer.header("Clear-Site-Data") == nil)
      }
    }
  }

  /// The page in another language still knows where the app wants the browser to go.
  @Test func languageOfTheQuestionChanges() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let browser = try await Browser.owner(client)
      let page = try await browser.visit(
        Self.address(["client_id": "grafana", "post_logout_redirect_uri": TestApp.afterwards, "state": "s"]))
      let hindi = try await browser.visit(try Browser.language("hi", of: page))
      #expect(hindi.text.contains("lang=\"hi\"") && hindi.text.contains("value=\"\(TestApp.afterwards)\""))
    }
  }

  /// Browsers apply `form-action` to the app's own redirects too, so scripts get the address and open it themselves.
  @Test func scriptsGetTheAddress() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let browser = try await Browser.owner(client)
      let page = try await browser.visit(
        Self.address(["client_id": "grafana", "post_logout_redirect_uri": TestApp.afterwards]))
      #expect(page.text.contains("data-form=\"entrance\""))
      let done = try await client.form(
        "/auth/openid/logout/confirm",
        ["action": "sign_out", "client_id": "grafana", "post_logout_redirect_uri": TestApp.afterwards],
        headers: browser.cookieHeader + [("Origin", browser.origin), ("Moongate-Page", "script")])
      #expect(done["next"] as? String == TestApp.afterwards, "\(done.status) \(done.text)")
    }
  }

  @Test func formOfTheAppContinuesByGet() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let sent = try await client.form(
        "/auth/openid/logout", ["client_id": "grafana", "post_logout_redirect_uri": TestApp.afterwards],
        headers: [("Origin", "https://grafana.example.com")])
      #expect(sent.status == 303)
      #expect(sent.header("Location")?.hasPrefix("/auth/openid/logout?client_id=grafana") ?? false)
    }
  }
}
