import Foundation
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateHTTP

/// One sign-in for several root domains: `domains` in gateway.lua.
@Suite struct HandoffTests {
  @Test func signedInUserReturnsWithoutInput() async throws {
    try await DomainWorld.run { client in
      let browser = try await DomainBrowser.owner(client)
      #expect(try await !browser.isSignedIn(DomainWorld.app))
      let begun = try await browser.visit(
        "\(DomainWorld.app)/auth/handoff?return_to=\(PercentEncoding.encode("/x?a=1&b=%2F"))")
      let nonce = try #require(browser.value("__Host-moongate-flow", "app.example.org"))
      #expect(begun.setCookies == ["__Host-moongate-flow=\(nonce); Path=/; HttpOnly; SameSite=Lax; Secure"])
      let challenge = Base64URL.encode(TokenHash(of: nonce.utf8).bytes)
      let back = "https://app.example.org/x?a=1&b=%2F"
      #expect(
        begun.header("Location")
          == "https://auth.example.com/auth/handoff?return_to=\(PercentEncoding.encode(back))&challenge=\(challenge)")
      let issued = try await browser.visit(try #require(begun.header("Location")))
      let code = try #require(issued.header("Location"))
      #expect(code.hasPrefix("https://app.example.org/auth/handoff?code=") && issued.setCookies.isEmpty)
      let redeemed = try await browser.visit(code)
      #expect(redeemed.header("Location") == back)
      let token = try #require(browser.value("__Secure-moongate", ".example.org"))
      #expect(
        redeemed.setCookies.last
          == "__Secure-moongate=\(token); Path=/; HttpOnly; SameSite=Lax; Secure; Domain=example.org")
      for answer in [begun, issued, redeemed] {
        #expect(
          answer.status == 303 && answer.header("Cache-Control") == "no-store"
            && answer.header("Referrer-Policy") == "no-referrer")
        #expect(
          answer.header("Content-Security-Policy")?.contains("default-src 'none'") == true
            && answer.header("X-Frame-Options") == "DENY")
      }
      #expect(try await browser.isSignedIn(DomainWorld.app))
      #expect(try await browser.isSignedIn("https://shop.example.org"))
      #expect(try await !browser.isSignedIn("https://app.example.net"))
      #expect(!client.gateway.log.lines.contains { $0.contains(code.suffix(40)) || $0.contains(token) })
    }
  }

  /// The cookie of a further domain lives as long as that of the sign-in.
  @Test(arguments: [false, true]) func aFurtherDomainKeepsTheCookieAsLong(_ isRemembered: Bool) async throws {
    let times = RememberedTimes(lifetime: .seconds(90 * 86_400), idle: .seconds(30 * 86_400))
    let register = FlowDefinition.test("register", account: .new, steps: [.test("phone_otp")], remember: times)
    try await DomainWorld.run(change: { $0.flows["register"] = register }) { client in
      let flow = try await client.call(
        .post, "/api/auth/flows", #"{"flow":"register","remember":\#(isRemembered)}"#)
      let id = try #require(flow["id"] as? String)
      _ = try await client.call(.post, "/api/auth/flows/\(id)/begin", #"{"phone":"+919999999999"}"#)
      let code = try #require(client.gateway.code(for: "+919999999999"))
      let done = try await client.call(.post, "/api/auth/flows/\(id)/submit", #"{"code":"\#(code)"}"#)
      let token = try #require((done["session"] as? [String: Any])?["token"] as? String)
      client.gateway.clock.advance(by: .seconds(60))
      let browser = DomainBrowser(client)
      browser.cookies.append(
        DomainBrowser.Cookie(name: "__Secure-moongate", value: token, scope: ".example.com"))
      let redeemed = try await browser.visit(try await browser.fetchCode())
      let cookie = try #require(redeemed.setCookies.last)
      #expect(cookie.hasPrefix("__Secure-moongate=") && cookie.contains("Domain=example.org"), "\(cookie)")
      #expect(cookie.hasSuffix("; Max-Age=7775940") == isRemembered && cookie.contains("Max-Age") == isRemembered)
    }
  }

  @Test func anonymousUserSignsInBeforeTheHandoff() async throws {
    try await DomainWorld.run { client in
      _ = try await client.register()
      client.gateway.clock.advance(by: .seconds(900))
      let browser = DomainBrowser(client)
      let begun = try #require(
        try await browser.visit("\(DomainWorld.app)/auth/handoff?return_to=%2Fx").header("Location"))
      let login = try #require(try await browser.visit(begun).header("Location"))
      #expect(login.hasPrefix("/auth/login?return_to=%2Fauth%2Fhandoff%3F"))
      let returnTo = try #require(URLComponents(string: login)?.queryItems?.first { $0.name == "return_to" }?.value)
      let sent = try await browser.post(
        "\(DomainWorld.home)/auth/login", ["phone": "9999999999", "return_to": returnTo])
      let page = try #require(sent.header("Location"))
      let done = try await browser.post(
        DomainWorld.home + page, ["code": try #require(client.gateway.code(for: "+919999999999"))])
      #expect(done.header("Location") == returnTo)
      #expect(try await browser.follow(DomainWorld.home + returnTo).last == "https://app.example.org/x")
      #expect(try await browser.isSignedIn(DomainWorld.app))
    }
  }

  /// A browser that stores no cookies would otherwise be sent to sign in again and again.
  @Test func browserWithoutCookiesGetsAnExplanation() async throws {
    try await DomainWorld.run { client in
      let browser = DomainBrowser(client)
      let begun = try #require(
        try await browser.visit("\(DomainWorld.app)/auth/handoff?return_to=%2Fx").header("Location"))
      browser.cookies = []
      let page = try await browser.visit(begun + "&signed_in=true")
      #expect(page.status == 403 && page.header("Location") == nil && page.text.contains("Allow cookies for this site"))
      let owner = try await DomainBrowser.owner(client)
      let code = try await owner.fetchCode()
      owner.cookies.removeAll { $0.name == "__Host-moongate-flow" }
      let refused = try await owner.visit(code)
      #expect(
        refused.status == 403 && refused.text.contains("Allow cookies for this site")
          && refused.header("Referrer-Policy") == "no-referrer")
    }
  }

  /// Every return address that is accepted fits in a code.
  @Test(arguments: [1_900, 3_500, 8_000, 16_300]) func longAddressesArrive(length: Int) async throws {
    try await DomainWorld.run { client in
      let browser = try await DomainBrowser.owner(client)
      let target = "/x?q=" + String(repeating: "a", count: length)
      let led = try await browser.follow("\(DomainWorld.app)/auth/handoff?return_to=\(PercentEncoding.encode(target))")
      #expect(led.last == DomainWorld.app + target, "\(led.last?.prefix(80) ?? "none")")
      #expect(try await browser.isSignedIn(DomainWorld.app))
    }
  }

  /// A path that only the routes of the further domain take (`encoded`) arrives byte for byte.
  @Test(arguments: ["/@scope%2fname?x=%2F", "/queues/%2F/name", "/web/http://a.example//x", "/a%5Cb"])
  func encodedPathsArrive(_ target: String) async throws {
    let change: @Sendable (inout TestGeneration) -> Void = { generation in
      generation.routes = RouteTable(
        routes: DomainWorld.routes.map { route in
          var route = route
          if route.host == "app.example.org" { route.encoded = .all }
          return route
        })
    }
    try await DomainWorld.run(change: change) { client in
      let owner = try await DomainBrowser.owner(client)
      let address = "\(DomainWorld.app)/auth/handoff?return_to=\(PercentEncoding.encode(target))"
      #expect(try await owner.follow(address).last == DomainWorld.app + target)
      let other = "https://shop.example.org/auth/handoff?return_to=\(PercentEncoding.encode(target))"
      #expect(try await owner.follow(other).last == "https://shop.example.org/", "its route does not take the path")
      // Signs in first.
      let stranger = DomainBrowser(client)
      let login = try #require(try await stranger.follow(address).last)
      let returnTo = try #require(URLComponents(string: login)?.queryItems?.first { $0.name == "return_to" }?.value)
      #expect(
        FormFields(returnTo.utf8.drop { $0 != UInt8(ascii: "?") }.dropFirst())?["return_to"] == DomainWorld.app + target
      )
    }
  }

  @Test func severalTabsCompleteTheirHandoffs() async throws {
    try await DomainWorld.run { client in
      let browser = try await DomainBrowser.owner(client)
      let codes = [try await browser.fetchCode(target: "/one"), try await browser.fetchCode(target: "/two")]
      #expect(try await browser.visit(codes[1]).header("Location") == "https://app.example.org/two")
      #expect(try await browser.visit(codes[0]).header("Location") == "https://app.example.org/one")
      #expect(try await browser.isSignedIn(DomainWorld.app))
    }
  }

  /// Attack: a stolen token of one domain is sent to another one, as a cookie or as Bearer; or a domain's token is used
  /// to create others.
  @Test func tokenIsRefusedOnOtherDomains() async throws {
    try await DomainWorld.run { client in
      let browser = try await DomainBrowser.owner(client)
      _ = try await browser.follow("\(DomainWorld.app)/auth/handoff?return_to=%2Fx")
      let (own, other) = (
        try #require(browser.value("__Secure-moongate", ".example.com")),
        try #require(browser.value("__Secure-moongate", ".example.org"))
      )
      for (token, host, isGood) in [
        (own, "auth.example.com", true), (own, "app.example.com", true), (own, "app.example.org", false),
        (own, "app.example.net", false),
        (other, "app.example.org", true), (other, "shop.example.org", true), (other, "auth.example.com", false),
        (other, "app.example.com", false),
        (other, "app.example.net", false), (other, "evil-example.org", false),
      ] {
        let place = [("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", host)]
        for credential in [("Cookie", "__Secure-moongate=\(token)"), ("Authorization", "Bearer \(token)")] {
          let answer = try await client.call(.get, "/api/auth/session", headers: place + [credential])
          #expect(answer.status == (isGood ? 200 : 401), "\(credential.0) at \(host)")
        }
      }
      let thief = DomainBrowser(client)
      thief.cookies = [DomainBrowser.Cookie(name: "__Secure-moongate", value: other, scope: ".example.com")]
      #expect(
        try await thief.fetchCode("https://app.example.net").hasPrefix("/auth/login"),
        "the token is not valid at public_url")
      let found = try #require(try await client.gateway.store.session(TokenHash(of: other.utf8))?.session)
      let code = try client.gateway.engine.handoffs.issue(
        for: found, to: "https://app.example.net", target: "/", challenge: found.token)
      #expect(code == nil)
    }
  }

  @Test func signOutOnOneDomainEndsTheSessionOnAllDomains() async throws {
    try await DomainWorld.run { client in
      for place in ["https://app.example.org", "https://auth.example.com"] {
        let browser = try await DomainBrowser.owner(client, place.contains("org") ? "+919999999991" : "+919999999992")
        for origin in [DomainWorld.app, "https://app.example.net"] {
          _ = try await browser.follow("\(origin)/auth/handoff?return_to=%2Fx")
        }
        let everywhere = [DomainWorld.home, DomainWorld.app, "https://app.example.net"]
        for origin in everywhere { #expect(try await browser.isSignedIn(origin)) }
        let kept = browser.cookies
        #expect(try await browser.post("\(place)/auth/logout", [:]).status == 303)
        #expect(browser.value("__Secure-moongate", place.contains("org") ? ".example.org" : ".example.com") == nil)
        // Attack: copies of the cookies are sent on every domain.
        browser.cookies = kept
        for origin in everywhere {
          #expect(try await !browser.isSignedIn(origin), "\(origin) after a sign-out at \(place)")
        }
      }
    }
  }

  @Test func apiSignOutOnAFurtherDomainEndsTheSession() async throws {
    try await DomainWorld.run { client in
      for call in [("DELETE", "/api/auth/session"), ("POST", "/api/auth/logout")] {
        let browser = try await DomainBrowser.owner(client, call.0 == "POST" ? "+919999999991" : "+919999999992")
        _ = try await browser.follow("\(DomainWorld.app)/auth/handoff?return_to=%2Fx")
        // Attack: the request comes from another site's page.
        let method = call.0 == "POST" ? HTTPRequest.Method.post : .delete
        let json = [("Content-Type", "application/json")]
        #expect(
          try await browser.send(
            method, DomainWorld.app + call.1, json + [("Origin", "https://evil.example")], body: "{}"
          ).status == 403)
        #expect(
          try await browser.send(method, DomainWorld.app + call.1, json + [("Origin", DomainWorld.app)], body: "{}")
            .status == 204)
        #expect(
          try await !browser.isSignedIn(DomainWorld.home) && browser.value("__Secure-moongate", ".example.org") == nil)
      }
    }
  }

  /// Attack: a page or a call on a further domain changes the account, or begins a step-up with that domain's token.
  @Test func pagesAndAccountCallsAreServedOnlyAtPublicURL() async throws {
    try await DomainWorld.run { client in
      let browser = try await DomainBrowser.owner(client)
      _ = try await browser.follow("\(DomainWorld.app)/auth/handoff?return_to=%2Fx")
      for path in ["/auth/login?return_to=%2Fx", "/auth/account", "/auth/register"] {
        let answer = try await browser.visit(DomainWorld.app + path)
        #expect(answer.status == 303 && answer.header("Location") == DomainWorld.home + path)
      }
      #expect(try await browser.post("\(DomainWorld.app)/auth/login", ["phone": "9999999999"]).status == 404)
      for (method, path) in [
        (HTTPRequest.Method.post, "/api/auth/flows"), (.delete, "/api/auth/account"),
        (.get, "/api/auth/account/export"),
        (.delete, "/api/auth/sessions"),
      ] {
        let answer = try await browser.send(
          method, DomainWorld.app + path, [("Origin", DomainWorld.app), ("Content-Type", "application/json")],
          body: "{}")
        #expect(
          answer.status == 404 && answer.problem() == "not_found" && answer.detail?.contains(DomainWorld.home) == true,
          "\(path)")
      }
    }
  }

  @Test func sessionListShowsABrowserOnce() async throws {
    try await DomainWorld.run { client in
      let browser = try await DomainBrowser.owner(client)
      for origin in [DomainWorld.app, "https://app.example.net"] {
        _ = try await browser.follow("\(origin)/auth/handoff?return_to=%2Fx")
      }
      let list = try await browser.visit("\(DomainWorld.home)/api/auth/sessions")
      #expect(list.text.components(separatedBy: #""id":""#).count == 2)
      #expect(
        try await client.gateway.store.events(limit: 100).filter { $0.kind == .sessionExtended }.map {
          $0.detail["domain"]
        } == [
          "example.net", "example.org",
        ])
    }
  }

  /// Signing in as another person on one domain replaces the previous person on the others too.
  @Test func handoffReplacesThePreviousUserOfTheBrowser() async throws {
    try await DomainWorld.run { client in
      let browser = try await DomainBrowser.owner(client)
      _ = try await browser.follow("\(DomainWorld.app)/auth/handoff?return_to=%2Fx")
      let first = try #require(browser.value("__Secure-moongate", ".example.com"))
      let second = try await client.register("+919999999998").token
      browser.cookies.removeAll { $0.scope == ".example.com" }
      browser.cookies.append(DomainBrowser.Cookie(name: "__Secure-moongate", value: second, scope: ".example.com"))
      _ = try await browser.follow("\(DomainWorld.app)/auth/handoff?return_to=%2Fx")
      let account = { (answer: Answer) in (answer["account"] as? [String: Any])?["phone"] as? String }
      #expect(account(try await browser.visit("\(DomainWorld.app)/api/auth/session")) == "+919999999998")
      #expect(
        try await client.gateway.store.session(TokenHash(of: first.utf8)) == nil, "the replaced session has ended")
    }
  }
}
