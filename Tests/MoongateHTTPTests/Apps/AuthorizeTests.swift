import Foundation
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

/// `/auth/openid/authorize` and its continuation.
@Suite struct AuthorizeTests {
  @Test func signedInUserIsSentBackAtOnce() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let answer = try await Browser.owner(client).visit(TestApp.authorize())
      let fields = try #require(answer.answer(), "\(answer.status) \(answer.text)")
      #expect(Set(fields.keys) == ["code", "state", "iss"])
      #expect(fields["state"] == "st" && fields["iss"] == TestApp.issuer)
      #expect(answer.header("Cache-Control") == "no-store")
    }
  }

  @Test func othersSignInFirst() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      _ = try await Browser.owner(client)
      client.gateway.clock.advance(by: .seconds(61))
      let browser = Browser(client)
      let begun = try await browser.authorize()
      let page = try #require(begun.header("Location"))
      #expect(page.hasPrefix("/auth/login?return_to=%2Fauth%2Fopenid%2Fcontinue%3Frequest%3D"))
      #expect(browser.cookies["moongate-flow"] != nil && begun.setCookies.isEmpty)
      try await browser.visit(page)
      let done = try await browser.signIn()
      let back = try #require(done.header("Location"), "\(done.text)")
      #expect(back.hasPrefix("/auth/openid/continue?request="))
      #expect(try await browser.visit(back).answer()?["code"] != nil)
    }
  }

  /// The whole way: tokens, userinfo, introspection, revocation.
  @Test func codeGivesTokens() async throws {
    try await TestApp.gateway([TestApp.confidential(), TestApp.confidential("other")]).run { client async throws in
      let browser = try await Browser.owner(client)
      let tokens = try await browser.tokens()
      #expect(tokens.status == 200, "\(tokens.text)")
      #expect(tokens["token_type"] as? String == "Bearer" && tokens["refresh_token"] is String)
      #expect((tokens["id_token"] as? String)?.split(separator: ".").count == 3)
      let access = try #require(tokens["access_token"] as? String)
      let bearer = [("Authorization", "Bearer \(access)")]
      let user = try await client.send(.get, "/auth/openid/userinfo", headers: bearer)
      #expect(user.status == 200 && user["sub"] is String, "\(user.text)")
      #expect(try await client.form("/auth/openid/userinfo", ["access_token": access]).status == 200)
      let own = [("Authorization", TestApp.basic())]
      let active = try await client.form("/auth/openid/introspect", ["token": access], headers: own)
      #expect(active["active"] as? Bool == true && active["client_id"] as? String == "grafana")
      // Attack: another app asks what a token is worth.
      let others = [("Authorization", TestApp.basic("other"))]
      let foreign = try await client.form("/auth/openid/introspect", ["token": access], headers: others)
      #expect(foreign.json.count == 1 && foreign["active"] as? Bool == false)
      // Attack: another app ends the tokens.
      #expect(try await client.form("/auth/openid/revoke", ["token": access], headers: others).status == 200)
      #expect(try await client.send(.get, "/auth/openid/userinfo", headers: bearer).status == 200)
      #expect(try await client.form("/auth/openid/revoke", ["token": access], headers: own).status == 200)
      let ended = try await client.send(.get, "/auth/openid/userinfo", headers: bearer)
      #expect(ended.status == 401)
      #expect(ended.header("WWW-Authenticate")?.contains("error=\"invalid_token\"") ?? false)
    }
  }

  /// Attack: a token in an address, which browsers and proxies store.
  @Test func tokenInTheAddressIsRefused() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let access = try #require(try await Browser.owner(client).tokens()["access_token"] as? String)
      let answer = try await client.send(.get, "/auth/openid/userinfo?access_token=\(access)")
      #expect(answer.status == 400 && answer["error"] as? String == "invalid_request")
      let none = try await client.send(.get, "/auth/openid/userinfo")
      #expect(none.status == 401 && none.header("WWW-Authenticate") == "Bearer realm=\"localhost\"")
    }
  }

  // MARK: - Before the app is verified

  /// Attack: an open redirect, or a code for a stranger.
  @Test(arguments: [
    "https://grafana.example.com@evil.example/login/generic_oauth",
    "https://user@grafana.example.com/login/generic_oauth", "https://grafana.example.com./login/generic_oauth",
    "https://GRAFANA.example.com/login/generic_oauth", "https://grafana.example.com/login/generic_oauth/",
    "https://grafana.example.com/login/../login/generic_oauth", "https://grafana.example.com/login/%67eneric_oauth",
    "https://grafana.example.com/login/generic_oauth?next=//evil.example",
    "https://grafana.example.com/login/generic_oauth#x", "https://grafana.example.com:444/login/generic_oauth",
    "http://grafana.example.com/login/generic_oauth", "https://grafana.example.com.evil.example/login/generic_oauth",
    "//grafana.example.com/login/generic_oauth", "https:grafana.example.com/login/generic_oauth",
    "https://grafana.example.com\\@evil.example/login/generic_oauth", "javascript:alert(1)", "",
  ])
  func otherRedirectURIGetsNothing(_ redirect: String) async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let browser = try await Browser.owner(client)
      for changes in [["redirect_uri": redirect], ["redirect_uri": redirect, "response_type": "token"]] {
        let answer = try await browser.visit(TestApp.authorize(changes))
        #expect(answer.status == 400 && answer.header("Location") == nil, "\(redirect)")
      }
    }
  }

  @Test func unknownAppGetsNothing() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let answer = try await Browser.owner(client).visit(TestApp.authorize(["client_id": "grafan"]))
      #expect(answer.status == 400 && answer.header("Location") == nil)
      #expect(answer.header("Content-Type")?.hasPrefix("text/html") ?? false)
    }
  }

  /// Attack: two programs read different ones of repeated parameters.
  @Test(arguments: ["redirect_uri=https%3A%2F%2Fevil.example", "client_id=grafana", "state=x", "scope=openid"])
  func repeatedParameterIsRefused(_ repeated: String) async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let answer = try await Browser.owner(client).visit(TestApp.authorize() + "&" + repeated)
      #expect(answer.status == 400 && answer.header("Location") == nil)
    }
  }

  // MARK: - Errors for the app

  @Test(
    arguments: [
      (["response_type": "token"], "unsupported_response_type"), (["response_type": nil], "invalid_request"),
      (["response_type": "code id_token"], "unsupported_response_type"),
      (["response_mode": "fragment"], "invalid_request"), (["request": "e30.e30."], "request_not_supported"),
      (["request_uri": "https://grafana.example.com/r"], "request_uri_not_supported"),
      (["registration": "{}"], "registration_not_supported"), (["scope": "admin"], "invalid_scope"),
      (["prompt": "none login"], "invalid_request"), (["prompt": "create"], "invalid_request"),
      (["max_age": "-1"], "invalid_request"), (["claims": "[]"], "invalid_request"),
      (["id_token_hint": "e30.e30.x"], "invalid_request"),
      (["nonce": String(repeating: "n", count: 513)], "invalid_request"),
    ] as [([String: String?], String)])
  func errorGoesToTheApp(_ changes: [String: String?], _ error: String) async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let answer = try await Browser.owner(client).visit(TestApp.authorize(changes))
      let fields = try #require(answer.answer(), "\(answer.status) \(answer.text)")
      #expect(fields["error"] == error && fields["state"] == "st" && fields["iss"] == TestApp.issuer)
      #expect(fields["code"] == nil)
    }
  }

  /// Attack: PKCE is left out or weakened, so that whoever reads the code can redeem it.
  @Test(
    arguments: [
      ["code_challenge": nil, "code_challenge_method": nil], ["code_challenge_method": "plain"],
      ["code_challenge_method": nil], ["code_challenge": nil], ["code_challenge": "short"],
    ] as [[String: String?]])
  func weakPKCEIsRefused(_ changes: [String: String?]) async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let answer = try await Browser.owner(client).visit(TestApp.authorize(changes))
      #expect(answer.answer()?["error"] == "invalid_request")
    }
  }

  @Test func appMayLeavePKCEOut() async throws {
    try await TestApp.gateway([TestApp.confidential(pkceIsOptional: true)]).run { client async throws in
      let browser = try await Browser.owner(client)
      let plain = try await browser.visit(TestApp.authorize(["code_challenge_method": "plain"]))
      #expect(plain.answer()?["error"] == "invalid_request")
      let without: [String: String?] = ["code_challenge": nil, "code_challenge_method": nil]
      let code = try #require(try await browser.visit(TestApp.authorize(without)).answer()?["code"])
      #expect(try await client.redeem(code, ["code_verifier": nil]).status == 200)
    }
  }

  /// Attack: `state` with a line break adds a header, or with `#` and `&` other parameters.
  @Test func stateIsNoHeader() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let browser = try await Browser.owner(client)
      let broken = try await browser.visit(TestApp.authorize(["state": "x\r\nSet-Cookie: a=b"]))
      #expect(broken.status == 400 && broken.header("Location") == nil)
      let odd = "a&code=mine#\"<>ä;=+ %0d"
      let answer = try await browser.visit(TestApp.authorize(["state": odd]))
      #expect(answer.answer()?["state"] == odd)
      #expect(answer.header("Location")?.utf8.allSatisfy { (0x21...0x7e).contains($0) && $0 != 0x23 } ?? false)
    }
  }

  /// Attack: a huge `state` is carried through every page.
  @Test func hugeStateIsRefused() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let browser = try await Browser.owner(client)
      let fields = try #require(
        try await browser.visit(TestApp.authorize(["state": String(repeating: "s", count: 2049)])).answer())
      #expect(fields["error"] == "invalid_request" && fields["state"] == nil)
      let longest = String(repeating: "s", count: 2048)
      #expect(try await browser.visit(TestApp.authorize(["state": longest])).answer()?["state"] == longest)
    }
  }

  // MARK: - Prompts

  @Test func promptNoneShowsNothing() async throws {
    let apps = try [TestApp.confidential(), TestApp.confidential("asks", consent: .always)]
    try await TestApp.gateway(apps).run { client async throws in
      let silent = TestApp.authorize(["prompt": "none"])
      #expect(try await Browser(client).authorize(["prompt": "none"]).answer()?["error"] == "login_required")
      let owner = try await Browser.owner(client)
      #expect(try await owner.visit(silent).answer()?["code"] != nil)
      let asks = try await owner.visit(TestApp.authorize(["prompt": "none", "client_id": "asks"]))
      #expect(asks.answer()?["error"] == "consent_required")
      client.gateway.clock.advance(by: .seconds(10))
      let old = try await owner.visit(TestApp.authorize(["prompt": "none", "max_age": "5"]))
      #expect(old.answer()?["error"] == "login_required")
    }
  }

  @Test(arguments: [["prompt": "login"], ["prompt": "select_account"], ["max_age": "0"]] as [[String: String?]])
  func signedInUserSignsInAgain(_ changes: [String: String?]) async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let browser = try await Browser.owner(client)
      client.gateway.clock.advance(by: .seconds(61))
      let before = browser.cookies["moongate"]
      let begun = try await browser.visit(TestApp.authorize(changes))
      let page = try #require(begun.header("Location"), "\(begun.text)")
      #expect(page.hasPrefix("/auth/login?") && page.hasSuffix("%26again%3D1"))
      let shown = try await browser.visit(page)
      #expect(shown.status == 200 && shown.text.contains("name=\"phone\""))
      // Attack: the user does not sign in again, and opens the continuation.
      let back = try #require(PercentEncoding.fields(in: page.split(separator: "?")[1].utf8)?["return_to"])
      let early = try await browser.visit(back)
      #expect(early.header("Location")?.hasPrefix("/auth/login?") ?? false)
      try await browser.visit(page)
      let done = try await browser.signIn()
      #expect(done.header("Location") == back, "\(done.text)")
      #expect(browser.cookies["moongate"] != before)
      #expect(try await browser.visit(back).answer()?["code"] != nil)
    }
  }

  @Test func promptConsentAsks() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let answer = try await Browser.owner(client).visit(TestApp.authorize(["prompt": "consent"]))
      #expect(answer.header("Location")?.hasPrefix("/auth/openid/consent?request=") ?? false)
    }
  }

  @Test func pageIsInTheWantedLanguage() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let browser = Browser(client)
      let answer = try await browser.authorize(["ui_locales": "xx hi-IN en"])
      let address = try #require(answer.header("Location"))
      #expect(address.hasSuffix("&app_language=hi"))
      // Attack: an app chooses the language of all later sign-ins.
      let page = try await browser.visit(address)
      #expect(page.text.contains("lang=\"hi\""))
      #expect(page.setCookies == ["moongate-language=hi; Path=/auth; Max-Age=3600; SameSite=Lax"])
      let phone = try await Browser(client).authorize(["login_hint": "+919999999999"])
      #expect(phone.header("Location")?.contains("phone=%2B919999999999") ?? false)
    }
  }

  // MARK: - The browser

  /// Attack: login CSRF. An attacker begins an authorization, and a victim's browser continues it.
  @Test func continuationOfAnotherBrowserIsRefused() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let owner = try await Browser.owner(client)
      let page = try #require(try await Browser(client).authorize().header("Location"))
      let back = try #require(PercentEncoding.fields(in: page.split(separator: "?")[1].utf8)?["return_to"])
      let answer = try await owner.visit(back)
      #expect(answer.status == 404 && answer.header("Location") == nil)
      #expect(try await owner.visit("/auth/openid/continue?request=AAAA").status == 410)
      #expect(try await owner.visit(back + "&cancel=1").header("Location") == nil)
    }
  }

  @Test func continuationEndsAfterAnHour() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let browser = Browser(client)
      let page = try #require(try await browser.authorize().header("Location"))
      let back = try #require(PercentEncoding.fields(in: page.split(separator: "?")[1].utf8)?["return_to"])
      #expect(try await browser.visit(back + "&cancel=1").answer()?["error"] == "access_denied")
      client.gateway.clock.advance(by: .seconds(3600))
      #expect(try await browser.visit(back).status == 410)
    }
  }

  /// A group that the user is not in: a page says why, and its link takes the error to the app.
  @Test func unmetRequirementIsExplained() async throws {
    let staff = GroupRequirement(anyOf: [try #require(GroupName(rawValue: "staff"))])
    let app = try TestApp.confidential(requirement: AppRequirement(groups: staff))
    try await TestApp.gateway([app]).run { client async throws in
      let browser = try await Browser.owner(client)
      let page = try await browser.visit(TestApp.authorize())
      #expect(page.status == 403 && page.text.contains("Grafana"))
      let link = try #require(
        page.text.components(separatedBy: "href=\"").first { $0.hasPrefix("/auth/openid/continue?") })
      let address = try #require(Browser.attribute("href", "href=\"" + link))
      let hindi = try await browser.visit(try Browser.language("hi", of: page))
      #expect(hindi.status == 403 && hindi.text.contains("lang=\"hi\""))
      #expect(try await browser.visit(address).answer()?["error"] == "access_denied")
      let silent = try await browser.visit(TestApp.authorize(["prompt": "none"]))
      #expect(silent.answer()?["error"] == "access_denied")
    }
  }

  // MARK: - Forms

  /// The form leads to the app only, and works without scripts.
  @Test func formPostLeadsToTheApp() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let page = try await Browser.owner(client).visit(
        TestApp.authorize(["response_mode": "form_post", "state": "<\"&'>"]))
      #expect(page.status == 200)
      #expect(page.text.contains("action=\"\(TestApp.redirect)\""))
      #expect(page.text.contains("name=\"code\"") && page.text.contains("name=\"iss\""))
      #expect(page.text.contains("value=\"&lt;&quot;&amp;"))
      #expect(page.header("Content-Security-Policy")?.contains("https://grafana.example.com") ?? false)
    }
  }

  @Test func requestByPostContinuesByGet() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let owner = try await Browser.owner(client)
      let foreign = [("Origin", "https://grafana.example.com"), ("Accept", "text/html")]
      let sent = try await client.form("/auth/openid/authorize", TestApp.request(), headers: foreign)
      let address = try #require(sent.header("Location"), "\(sent.status) \(sent.text)")
      #expect(sent.status == 303 && address.hasPrefix("/auth/openid/authorize?"))
      #expect(try await owner.visit(address).answer()?["code"] != nil)
      let wrong = try await client.form(
        "/auth/openid/authorize", TestApp.request(["response_type": "token"]), headers: foreign)
      #expect(wrong.answer()?["error"] == "unsupported_response_type")
      let stranger = try await client.form(
        "/auth/openid/authorize", TestApp.request(["redirect_uri": "https://evil.example/"]), headers: foreign)
      #expect(stranger.status == 400)
    }
  }

  // MARK: - Pushed requests

  @Test func pushedRequestIsUsedOnce() async throws {
    try await TestApp.gateway([TestApp.confidential(), TestApp.confidential("other")]).run { client async throws in
      let browser = try await Browser.owner(client)
      let pushed = try await client.form(
        "/auth/openid/par", TestApp.request(), headers: [("Authorization", TestApp.basic())])
      #expect(pushed.status == 201 && pushed["expires_in"] as? Int == 90, "\(pushed.text)")
      let uri = try #require(pushed["request_uri"] as? String)
      let address = { (client: String) in
        "/auth/openid/authorize?" + TestApp.form(["client_id": client, "request_uri": uri])
      }
      // Attack: the reference of another app.
      let foreign = try await browser.visit(address("other"))
      #expect(foreign.status == 410 && foreign.header("Location") == nil)
      #expect(try await browser.visit(address("grafana")).answer()?["code"] != nil)
      // Attack: a reference that was used.
      let again = try await browser.visit(address("grafana"))
      #expect(again.status == 410 && again.header("Location") == nil)
    }
  }

  @Test func pushedRequestNeedsTheSecret() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      #expect(try await client.form("/auth/openid/par", TestApp.request()).status == 401)
      let own = [("Authorization", TestApp.basic())]
      let elsewhere = TestApp.request(["redirect_uri": "https://evil.example/"])
      #expect(try await client.form("/auth/openid/par", elsewhere, headers: own).status == 400)
      let nested = TestApp.request(["request_uri": "urn:ietf:params:oauth:request_uri:x"])
      #expect(try await client.form("/auth/openid/par", nested, headers: own).status == 400)
    }
  }

  /// Attack: the ID token of one user brings the app the session of another one.
  @Test func hintOfAnotherUser() async throws {
    try await TestApp.gateway([TestApp.confidential(), TestApp.confidential("other")]).run { client async throws in
      let owner = try await Browser.owner(client)
      let hint = try #require(try await owner.tokens()["id_token"] as? String)
      let own = try await owner.visit(TestApp.authorize(["id_token_hint": hint, "prompt": "none"]))
      #expect(own.answer()?["code"] != nil)
      // Attack: a hint that was made for another app.
      let foreign = try await owner.visit(TestApp.authorize(["id_token_hint": hint, "client_id": "other"]))
      #expect(foreign.answer()?["error"] == "invalid_request")
      let (token, _) = try await client.register("+918888888888")
      let stranger = try await client.send(
        .get, TestApp.authorize(["id_token_hint": hint]),
        headers: [
          ("Cookie", "moongate=\(token); moongate-flow=\(String(repeating: "A", count: 43))"), ("Accept", "text/html"),
        ])
      #expect(stranger.answer()?["error"] == "login_required")
    }
  }

  /// Attack: an app asks for one user by `claims`, and gets the tokens of another one.
  @Test func claimsMayNameTheUser() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let owner = try await Browser.owner(client)
      let account = try #require(try await client.gateway.store.accounts(after: nil, limit: 9).first)
      func error(_ subject: String, _ more: [String: String?] = [:]) async throws -> String? {
        let claims: [String: String?] = ["claims": #"{"id_token":{"sub":{"value":"\#(subject)"}}}"#]
        let answer = try await owner.visit(TestApp.authorize(more.merging(claims) { $1 }))
        return try #require(answer.answer(), "\(answer.status) \(answer.text)")["error"]
      }
      #expect(try await error(account.id) == nil)
      #expect(try await error("ac_other") == "login_required")
      let hint = try #require(try await owner.tokens()["id_token"] as? String)
      #expect(try await error(account.id, ["id_token_hint": hint]) == nil)
      #expect(try await error("ac_other", ["id_token_hint": hint]) == "login_required")
    }
  }

  // MARK: - Cookies

  /// Two apps are opened at once in a browser without cookies. The later cookie replaces the earlier one.
  @Test func twoAppsAtOnceBothContinue() async throws {
    try await TestApp.gateway([TestApp.confidential(), TestApp.confidential("other")]).run { client async throws in
      let browser = Browser(client)
      let accept = [("Accept", "text/html")]
      let first = try await client.send(.get, TestApp.authorize(), headers: accept)
      #expect(first.setCookies.count == 1)
      let second = try await browser.visit(TestApp.authorize(["client_id": "other"]))
      var places: [String] = []
      for answer in [first, second] {
        let again = try #require(answer.header("Location"))
        #expect(again.hasPrefix("/auth/openid/authorize?") && again.hasSuffix("&greeted=1"))
        let page = try #require(try await browser.visit(again).header("Location"))
        places.append(try #require(PercentEncoding.fields(in: page.split(separator: "?")[1].utf8)?["return_to"]))
      }
      for place in places {
        #expect(try await browser.visit(place).header("Location")?.hasPrefix("/auth/login?") ?? false)
      }
      // A browser that stores no cookies is led on once, and not again and again.
      let again = try #require(first.header("Location"))
      let page = try await client.send(.get, again, headers: accept)
      #expect(page.header("Location")?.hasPrefix("/auth/login?") ?? false)
    }
  }

  @Test func pushedRequestIsNotSpentBeforeTheCookie() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let pushed = try await client.form(
        "/auth/openid/par", TestApp.request(), headers: [("Authorization", TestApp.basic())])
      let uri = try #require(pushed["request_uri"] as? String)
      let address = "/auth/openid/authorize?" + TestApp.form(["client_id": "grafana", "request_uri": uri])
      let browser = Browser(client)
      let again = try #require(try await browser.visit(address).header("Location"))
      #expect(try await browser.visit(again).header("Location")?.hasPrefix("/auth/login?") ?? false)
    }
  }

  /// Attack: a form with a reference makes the gateway send a huge address.
  @Test func formWithAReferenceKeepsOnlyTheReference() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let uri = "urn:ietf:params:oauth:request_uri:x"
      let fields = TestApp.request(["request_uri": uri, "state": String(repeating: "<", count: 20_000)])
      let sent = try await client.form("/auth/openid/authorize", fields)
      #expect(
        sent.header("Location") == "/auth/openid/authorize?"
          + PercentEncoding.form([("client_id", "grafana"), ("request_uri", uri)]), "\(sent.status)")
      let long = ["client_id": String(repeating: "<", count: 20_000), "request_uri": uri]
      #expect(try await client.form("/auth/openid/authorize", long).status == 400)
    }
  }
}
