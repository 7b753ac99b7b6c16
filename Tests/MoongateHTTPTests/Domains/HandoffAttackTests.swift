import Foundation
import HTTPTypes
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore
@testable import MoongateHTTP

/// Attacks on handoffs.
@Suite struct HandoffAttackTests {
  /// Expects a refusal that sets no cookie, redirects nowhere and records its reason in the audit trail.
  private func expectRefused(
    _ answer: Answer, _ why: HandoffRefusal?, _ client: Client, status: Int = 403,
    _ location: Testing.SourceLocation = #_sourceLocation
  ) async throws {
    #expect(answer.status == status && answer.header("Location") == nil, sourceLocation: location)
    #expect(
      !answer.setCookies.contains { $0.contains("__Secure-moongate=") && !$0.contains("Max-Age=0") },
      sourceLocation: location)
    guard let why else { return }
    let id = try #require(answer.text.firstMatch(of: /dc_[A-Za-z0-9_-]+/), sourceLocation: location)
    let event = try await client.gateway.audit.event(DecisionID(text: String(id.0)))
    #expect(event?.detail["reason"] == why.rawValue, sourceLocation: location)
  }

  /// Attack: a code seen in a history, in a log or on a screen is used again, later or at the same time.
  @Test func codeIsRedeemedOnce() async throws {
    try await DomainWorld.run { client in
      let browser = try await DomainBrowser.owner(client)
      let code = try await browser.fetchCode()
      #expect(try await browser.visit(code).header("Location") == "https://app.example.org/x")
      try await expectRefused(try await browser.visit(code), .spent, client)
      let second = try await browser.fetchCode()
      let nonce = try #require(browser.value("__Host-moongate-flow", "app.example.org"))
      let outcomes = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<20 {
          group.addTask {
            let thief = DomainBrowser(client)
            thief.cookies = [DomainBrowser.Cookie(name: "__Host-moongate-flow", value: nonce, scope: "app.example.org")]
            return try await thief.visit(second).status
          }
        }
        return try await group.reduce(into: [Int]()) { $0.append($1) }
      }
      #expect(outcomes.filter { $0 == 303 }.count == 1 && outcomes.filter { $0 == 403 }.count == 19)
    }
  }

  /// Attack: a stolen code in the thief's browser, with no nonce, with its own, or with two. Every attempt uses up the
  /// code.
  @Test func codeIsRefusedInAnotherBrowser() async throws {
    try await DomainWorld.run { client in
      let owner = try await DomainBrowser.owner(client)
      let other = String(repeating: "N", count: 43)
      for nonces in [[], [other], [other, "right"], ["right", "right"], ["x"]] {
        let code = try await owner.fetchCode()
        let right = try #require(owner.value("__Host-moongate-flow", "app.example.org"))
        let thief = DomainBrowser(client)
        thief.cookies = nonces.map {
          DomainBrowser.Cookie(
            name: "__Host-moongate-flow", value: $0 == "right" ? right : $0, scope: "app.example.org")
        }
        try await expectRefused(try await thief.visit(code), .otherBrowser, client)
        try await expectRefused(try await owner.visit(code), .spent, client)
      }
      #expect(try await !owner.isSignedIn(DomainWorld.app))
    }
  }

  /// Attack: login CSRF. The victim opens a link with the attacker's code and then enters secrets into the attacker's
  /// account.
  @Test func attackersCodeIsRefusedInVictimsBrowser() async throws {
    try await DomainWorld.run { client in
      let attacker = try await DomainBrowser.owner(client, "+919999999991")
      let stranger = DomainBrowser(client)
      try await expectRefused(try await stranger.visit(try await attacker.fetchCode()), .otherBrowser, client)
      #expect(try await !stranger.isSignedIn(DomainWorld.app))
      // One victim has begun a handoff, another is signed in.
      try await stranger.visit("\(DomainWorld.app)/auth/handoff?return_to=%2F")
      try await expectRefused(try await stranger.visit(try await attacker.fetchCode()), .otherBrowser, client)
      let victim = try await DomainBrowser.owner(client, "+919999999992")
      _ = try await victim.follow("\(DomainWorld.app)/auth/handoff?return_to=%2Fx")
      let before = victim.value("__Secure-moongate", ".example.org")
      try await expectRefused(try await victim.visit(try await attacker.fetchCode()), .otherBrowser, client)
      #expect(
        try await victim.isSignedIn(DomainWorld.app) && victim.value("__Secure-moongate", ".example.org") == before)
    }
  }

  /// Attack: the attacker's challenge in the victim's browser. The code arrives at the right host, in a browser whose
  /// nonce does not match.
  @Test func codeForAnAttackersChallengeIsRefused() async throws {
    try await DomainWorld.run { client in
      let attacker = DomainBrowser(client)
      let begun = try #require(
        try await attacker.visit("\(DomainWorld.app)/auth/handoff?return_to=%2Fx").header("Location"))
      let victim = try await DomainBrowser.owner(client)
      let code = try #require(try await victim.visit(begun).header("Location"))
      try await expectRefused(try await victim.visit(code), .otherBrowser, client)
      try await expectRefused(try await attacker.visit(code), .spent, client)
    }
  }

  /// Attack: a code for one origin is used at another one: on the same domain, on another domain, or with a different
  /// Host.
  @Test func codeIsRefusedAtAnotherOrigin() async throws {
    try await DomainWorld.run { client in
      let browser = try await DomainBrowser.owner(client)
      for host in ["shop.example.org", "app.example.net"] {
        let code = try await browser.fetchCode()
        let nonce = try #require(browser.value("__Host-moongate-flow", "app.example.org"))
        browser.cookies.append(DomainBrowser.Cookie(name: "__Host-moongate-flow", value: nonce, scope: host))
        try await expectRefused(try await browser.send(.get, code, at: host), .otherOrigin, client)
      }
      for (host, status) in [
        ("auth.example.com", 400), ("unknown.example.org", 404), ("evil.example", 400), ("app.example.org:8443", 403),
      ] {
        let code = try await browser.fetchCode()
        try await expectRefused(try await browser.send(.get, code, at: host), nil, client, status: status)
        #expect(try await browser.visit(code).status == 303, "the wrong host did not use up the code, \(host)")
      }
      let plain = try await browser.fetchCode().replacingOccurrences(of: "https://", with: "http://")
      try await expectRefused(try await browser.visit(plain), nil, client)
    }
  }

  /// Attack: a code from a history or a log is used after it has expired, even in the browser that requested it.
  @Test func codeExpiresAfterThirtySeconds() async throws {
    try await DomainWorld.run { client in
      let browser = try await DomainBrowser.owner(client)
      let codes = [try await browser.fetchCode(), try await browser.fetchCode()]
      client.gateway.clock.advance(by: .milliseconds(29_999))
      #expect(try await browser.visit(codes[0]).status == 303)
      client.gateway.clock.advance(by: .milliseconds(1))
      try await expectRefused(try await browser.visit(codes[1]), .expired, client)
    }
  }

  /// Attack: a code fetched before its session was signed out, locked, stepped up or expired.
  @Test func codeIsRefusedAfterItsSessionHasEnded() async throws {
    try await DomainWorld.run { client in
      for (index, end) in ["sign out", "lock", "step up", "expiry"].enumerated() {
        let browser = try await DomainBrowser.owner(client, "+91999999999\(index)")
        let code = try await browser.fetchCode()
        let hash = TokenHash(of: try #require(browser.value("__Secure-moongate", ".example.com")).utf8)
        let session = try #require(try await client.gateway.store.session(hash)?.session)
        let now = client.gateway.clock.now()
        switch end {
        case "sign out": try await browser.post("\(DomainWorld.home)/auth/logout", [:])
        case "lock": _ = try await client.gateway.store.apply([.setLocked(account: session.account, true)], at: now)
        case "expiry":
          let brief = Session(
            id: session.id, token: hash, account: session.account, createdAt: session.createdAt,
            expiresAt: now + .seconds(10), idle: session.idle,
            lastSeenAt: session.lastSeenAt, passed: session.passed, userAgent: nil)
          _ = try await client.gateway.store.apply([.replaceSession(hash, by: brief)], at: now)
          client.gateway.clock.advance(by: .seconds(10))
        default:
          var grown = session
          grown.token = TokenHash(of: "grown".utf8)
          _ = try await client.gateway.store.apply([.replaceSession(hash, by: grown)], at: now)
        }
        try await expectRefused(try await browser.visit(code), .ended, client)
      }
    }
  }

  @Test func invalidCodesAreRefused() async throws {
    try await DomainWorld.run { client in
      let browser = try await DomainBrowser.owner(client)
      let whole = try await browser.fetchCode()
      let code = try #require(whole.components(separatedBy: "code=").last)
      let flipped = (code.first == "A" ? "B" : "A") + code.dropFirst()
      let texts = [
        String(code.dropLast()), String(code.dropLast(8)), code + "A", code + code, flipped, String(code.reversed()),
        "x",
        String(repeating: "A", count: 43), String(repeating: "A", count: 5000), String(repeating: "A", count: 20_000),
        "%00", "..%2f", "é",
      ]
      for text in texts {
        let answer = try await browser.visit("\(DomainWorld.app)/auth/handoff?code=\(text)")
        #expect([400, 403].contains(answer.status) && answer.header("Location") == nil, "\(text.prefix(60))")
      }
      for query in ["code=\(code)&code=\(code)", "code=\(code)&code=", "code=%zz"] {
        #expect(
          try await browser.visit("\(DomainWorld.app)/auth/handoff?\(query)").status == 400, "\(query.prefix(20))")
      }
      // A code of another installation that knows the session's hash.
      let hash = TokenHash(of: try #require(browser.value("__Secure-moongate", ".example.com")).utf8)
      let session = try #require(try await client.gateway.store.session(hash)?.session)
      let stranger = HandoffService(
        keys: try KeyRing(master: Array(repeating: 8, count: 32)), store: client.gateway.store,
        clock: client.gateway.clock,
        random: client.gateway.random)
      let forged = try #require(try stranger.issue(for: session, to: DomainWorld.app, target: "/x", challenge: hash))
      try await expectRefused(
        try await browser.visit("\(DomainWorld.app)/auth/handoff?code=\(forged.reveal())"), .malformed, client)
      for method in [HTTPRequest.Method.post, .put, .delete, .head] {
        let answer = try await browser.send(
          method, whole, [("Origin", DomainWorld.app), ("Content-Type", "application/x-www-form-urlencoded")],
          body: method == .head ? nil : "code=\(code)")
        #expect(answer.status == 405, "\(method)")
      }
      #expect(try await browser.visit(whole).status == 303, "none of the requests used up the code")
    }
  }

  /// Attack: an open redirect through a link to our own pages, before and after the sign-in.
  @Test func handoffDoesNotRedirectToForeignAddresses() async throws {
    try await DomainWorld.run { client in
      let browser = try await DomainBrowser.owner(client)
      for wanted in [
        "https://evil.example/", "//evil.example", "/\\evil.example", "/%5cevil.example", "http:evil.example",
        "https://app.example.org@evil.example/",
        "javascript:alert(1)", "/x\r\nSet-Cookie: a=b", "https://app.example.net/x",
        "https://auth.example.com/auth/logout", "", "x",
        "/" + String(repeating: "a", count: 16_384), "/../x", "/%2f%2fevil.example",
      ] {
        let answer = try await browser.visit(
          "\(DomainWorld.app)/auth/handoff?return_to=\(PercentEncoding.encode(wanted))")
        guard let begun = answer.header("Location") else {
          #expect(answer.status == 400, "\(wanted.prefix(40))")
          continue
        }
        #expect(
          begun.hasPrefix(
            "https://auth.example.com/auth/handoff?return_to=https%3A%2F%2Fapp.example.org%2F&challenge="),
          "\(wanted.prefix(40)): \(begun)")
      }
      let challenge = Base64URL.encode(TokenHash(of: "nonce".utf8).bytes)
      for wanted in [
        "https://evil.example/", "https://app.example.com/x", "https://auth.example.com/x", "http://app.example.org/x",
        "https://app.example.org:8443/x",
        "https://app.example.org@evil.example/", "https://evil.example/app.example.org", "https://unknown.example.org/",
        "https://example.org.evil.example/",
        "https://evil-example.org/", "//app.example.org/x", "/x", "https://app.example.org./x",
        "https://app.example.org/../x",
        "https://app.example.org//evil.example", "https:app.example.org", "", "https://app.example.org\\@evil.example/",
      ] {
        let address =
          "\(DomainWorld.home)/auth/handoff?return_to=\(PercentEncoding.encode(wanted))&challenge=\(challenge)"
        for person in [browser, DomainBrowser(client)] {
          let answer = try await person.visit(address)
          #expect(answer.status == 400 && answer.header("Location") == nil, "\(wanted)")
        }
      }
      let back = PercentEncoding.encode("https://app.example.org/x")
      for wrong in [
        "", "x", String(repeating: "A", count: 42), String(repeating: "A", count: 44),
        String(repeating: "!", count: 43),
      ] {
        #expect(
          try await browser.visit("\(DomainWorld.home)/auth/handoff?return_to=\(back)&challenge=\(wrong)").status == 400
        )
      }
    }
  }

  /// Attack: cookie tossing. A neighbouring host of the domain sets a nonce it knows, next to ours or before one
  /// exists. Possible only without HTTPS, where no prefix protects the name. Two cookies of one name count as none, and
  /// a new handoff removes the planted one.
  @Test func duplicateNonceCookiesAreIgnoredAndRemoved() async throws {
    try await DomainWorld.run(isSecure: false) { client in
      let attacker = DomainBrowser(client)
      attacker.cookies.append(
        DomainBrowser.Cookie(name: "moongate", value: try await client.register().token, scope: ".example.com"))
      let app = "http://app.example.org"
      let code = try await attacker.fetchCode(app)
      let known = try #require(attacker.value("moongate-flow", "app.example.org"))
      let victim = DomainBrowser(client)
      try await victim.visit("\(app)/auth/handoff?return_to=%2Fx")
      victim.cookies.append(DomainBrowser.Cookie(name: "moongate-flow", value: known, scope: ".example.org"))
      try await expectRefused(try await victim.visit(code), .otherBrowser, client)
      let begun = try await victim.visit("\(app)/auth/handoff?return_to=%2Fx")
      #expect(
        begun.setCookies.contains("moongate-flow=; Path=/; HttpOnly; SameSite=Lax; Domain=example.org; Max-Age=0"))
      #expect(victim.cookies.filter { $0.name == "moongate-flow" }.count == 1)
      // A duplicate session cookie counts as no session, and the handoff removes the planted one.
      let owner = DomainBrowser(client)
      owner.cookies.append(
        DomainBrowser.Cookie(
          name: "moongate", value: try await client.register("+919999999998").token, scope: ".example.com"))
      owner.cookies.append(
        DomainBrowser.Cookie(name: "moongate", value: String(repeating: "E", count: 43), scope: "app.example.org"))
      #expect(try await owner.follow("\(app)/auth/handoff?return_to=%2Fx").last == "\(app)/x")
      #expect(try await owner.isSignedIn(app))
    }
  }
}
