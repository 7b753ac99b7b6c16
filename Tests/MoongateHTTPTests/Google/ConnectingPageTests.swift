import Foundation
import HTTPTypes
import MoongateCore
import DemoGoogle
import MoongateSDK
import MoongateTesting
import Testing

/// Connecting Google on the account page, and attacks on the redirects there and back.
@Suite("Connecting Google") struct ConnectingPageTests {
  let world: GoogleWorld

  init() throws {
    world = try GoogleWorld { generation in
      generation.flows["google_oauth_join"] = .test(
        "google_oauth_join", purpose: .join(.federated), account: .existing, steps: [.test("google_oauth")])
      generation.flows["step_up"] = .test("step_up", account: .existing, steps: [.test("phone_otp", "google_oauth")])
    }
  }

  private static let ravi = "100000000000000000002"

  /// A browser signed in to an account registered with a phone number.
  private func owner(_ client: Client, _ phone: String = "9999999999") async throws -> Browser {
    let browser = Browser(client)
    try await browser.visit("/auth/register")
    try await browser.visit(try #require(try await browser.submit(["phone": phone]).header("Location")))
    _ = try await browser.submit(["code": try #require(client.gateway.code(for: "+91" + phone))])
    #expect(browser.isSignedIn)
    return browser
  }

  private func identities(_ browser: Browser) async throws -> [String] {
    let id = try #require(try await browser.account()?["id"] as? String)
    return try #require(try await world.gateway.store.account(id)).identifiers.filter {
      $0.identifier.kind == .federated
    }.map(\.identifier.value)
  }

  @Test("it can be used to sign in from then on, and its email address is not added to the account") func connects()
    async throws
  {
    try await world.run { client in
      let browser = try await owner(client)
      let page = try await browser.visit("/auth/account")
      #expect(page.text.contains("Not connected") && page.text.contains("aria-label=\"Connect: Google\""))
      let before = browser.cookies["moongate"]
      let away = try await browser.connectsGoogle()
      #expect(field("prompt", of: away) == "select_account")
      let back = try await browser.returns(try await world.google.choose(away, ["account": GoogleWorld.asha]))
      #expect(back.header("Location") == "/auth/account?done=google_oauth_join")
      #expect(browser.cookies["moongate"] != before, "a new token")
      let done = try await browser.visit("/auth/account?done=google_oauth_join")
      #expect(
        done.text.contains("Google is connected. You can sign in with it from now on.")
          && done.text.contains("Disconnect: Google"))
      let account = try #require(try await browser.account())
      #expect(account["email"] is NSNull && account["first_name"] is NSNull)
      let other = Browser(client)
      _ = try await other.returns(
        try await world.google.choose(try await other.continuesWithGoogle(), ["account": GoogleWorld.asha]))
      #expect(try await other.account()?["id"] as? String == account["id"] as? String)
    }
  }

  @Test("an identity of another account is refused with a text of its own") func taken() async throws {
    try await world.run { client in
      let victim = Browser(client)
      _ = try await victim.returns(
        try await world.google.choose(try await victim.continuesWithGoogle(), ["account": GoogleWorld.asha]))
      let thief = try await owner(client)
      let back = try await thief.returns(
        try await world.google.choose(try await thief.connectsGoogle(), ["account": GoogleWorld.asha]))
      #expect(back.header("Location") == "/auth/account?refused=already_registered&by=google_oauth")
      let page = try await thief.visit("/auth/account?refused=already_registered&by=google_oauth")
      #expect(page.text.contains("This Google account already belongs to another account here. Nothing was changed."))
      #expect(try await identities(thief).isEmpty)
      #expect(try await identities(victim).count == 1)
    }
  }

  /// Attack: the thief begins a connection, and the victim finishes it with their identity at Google. The victim's next
  /// sign-in with Google would open the thief's account.
  @Test("the link of another person's connection works only in their browser") func anotherBrowser() async throws {
    try await world.run { client in
      let thief = try await owner(client)
      let back = try await world.google.choose(try await thief.connectsGoogle(), ["account": GoogleWorld.asha])
      let victim = try await owner(client, "8888888888")
      for browser in [Browser(client), victim] { #expect(try await browser.returns(back).status == 404) }
      #expect(try await identities(thief).isEmpty)
      #expect(try await identities(victim).isEmpty)
    }
  }

  /// Attack (RFC 9700, section 4.5): the thief's code in the answer to the victim's flow connects the thief's identity
  /// to the victim's account.
  @Test("another flow's code with one's own state connects nothing", arguments: ["connect", "sign in"])
  func injected(from: String) async throws {
    try await world.run { client in
      let thief = from == "connect" ? try await owner(client) : Browser(client)
      let away = from == "connect" ? try await thief.connectsGoogle() : try await thief.continuesWithGoogle()
      let theirs = try await world.google.choose(away, ["account": Self.ravi])
      let victim = try await owner(client, "8888888888")
      let own = try await world.google.choose(try await victim.connectsGoogle(), ["account": GoogleWorld.asha])
      let answer = try await victim.returns(changing("code", to: field("code", of: theirs), in: own))
      #expect(answer.header("Location") == "/auth/account?refused=oauth_failed&by=google_oauth")
      #expect(try await identities(victim).isEmpty)
      #expect(
        try await victim.visit("/auth/account?refused=oauth_failed&by=google_oauth").text.contains(
          "Google sign-in failed. Try again."))
    }
  }

  @Test(
    "a state that is forged, or was used, connects nothing", arguments: ["", "st_abc", "cut", "of a sign-in", "used"])
  func state(what: String)
    async throws
  {
    try await world.run { client in
      let browser = try await owner(client)
      let back = try await world.google.choose(try await browser.connectsGoogle(), ["account": GoogleWorld.asha])
      let state = try #require(field("state", of: back))
      var forged: String
      switch what {
      case "cut": forged = changing("state", to: String(state.dropLast(4)), in: back)
      case "of a sign-in":
        forged = changing("state", to: field("state", of: try await Browser(client).continuesWithGoogle()), in: back)
      case "used":
        // A cancelled flow has used up its state.
        _ = try await browser.returns(changing("code", to: nil, in: back) + "&error=access_denied")
        forged = back
      default: forged = changing("state", to: what, in: back)
      }
      #expect([400, 404, 409].contains(try await browser.returns(forged).status))
      #expect(try await identities(browser).isEmpty)
    }
  }

  /// Attack: on a shared computer, the previous person's identity is connected to the next person's account.
  @Test("after a sign-out, or a sign-in to another account, nothing is connected", arguments: [true, false])
  func sessionChanged(isSomebody: Bool)
    async throws
  {
    try await world.run { client in
      let browser = try await owner(client)
      let first = try #require(try await browser.account()?["id"] as? String)
      let back = try await world.google.choose(try await browser.connectsGoogle(), ["account": GoogleWorld.asha])
      try await browser.post("/auth/logout", [:])
      if isSomebody {
        try await browser.visit("/auth/register")
        try await browser.visit(try #require(try await browser.submit(["phone": "8888888888"]).header("Location")))
        _ = try await browser.submit(["code": try #require(client.gateway.code(for: "+918888888888"))])
      }
      let answer = try await browser.returns(back)
      #expect([401, 404, 409].contains(answer.status))
      #expect(try await world.gateway.store.account(first)?.identifiers.count == 1)
      if isSomebody { #expect(try await identities(browser).isEmpty) }
    }
  }

  @Test("another site cannot begin a connection") func crossSite() async throws {
    try await world.run { client in
      let browser = try await owner(client)
      let headers = [
        ("Accept", "text/html"), ("Origin", "https://evil.example.com"),
        ("Content-Type", "application/x-www-form-urlencoded"),
      ]
      let answer = try await client.send(
        .post, "/auth/account", headers: headers + browser.cookieHeader, body: "action=connect&provider=google_oauth")
      #expect(answer.status == 403)
    }
  }

  @Test("without a recent proof the person is redirected to a step-up, and back") func proof() async throws {
    try await world.run { client in
      let browser = try await owner(client)
      world.gateway.clock.advance(by: .seconds(660))
      try await browser.visit("/auth/account")
      let answer = try await browser.submit(["provider": "google_oauth"])
      #expect(answer.status == 303)
      #expect(
        answer.header("Location")?.hasPrefix(
          "/auth/step?flow=step_up&return_to=%2Fauth%2Faccount%3Fdone%3Dconfirmed&for=change") == true)
    }
  }

  @Test("cancelling returns to the account page with a message; only our own messages are shown") func cancelled()
    async throws
  {
    try await world.run { client in
      let browser = try await owner(client)
      let back = try await browser.returns(
        try await world.google.choose(try await browser.connectsGoogle(), ["action": "cancel"]))
      #expect(back.header("Location") == "/auth/account?refused=oauth_cancelled&by=google_oauth")
      #expect(
        try await browser.visit("/auth/account?refused=oauth_cancelled&by=google_oauth").text.contains(
          "Sign-in cancelled"))
      for query in [
        "refused=denied%20now&by=google_oauth", "refused=%3Cb%3E&by=google_oauth",
        "refused=already_registered&by=nobody",
      ] {
        #expect(!(try await browser.visit("/auth/account?" + query).text.contains("class=\"problem")))
      }
      #expect(try await browser.visit("/auth/login?flow=google_oauth_join").header("Location") == "/auth/account")
      #expect(try await browser.post("/auth/account", ["action": "connect", "provider": "phone_otp"]).status == 400)
    }
  }

  @Test("when Google does not answer, the account page says so") func down() async throws {
    let world = try GoogleWorld {
      $0.gateway.providers["google_oauth"]?.texts["issuer"] = "https://other.test"
      $0.flows["google_oauth_join"] = .test(
        "google_oauth_join", purpose: .join(.federated), account: .existing, steps: [.test("google_oauth")])
    }
    try await world.run { client in
      let browser = try await owner(client)
      try await browser.visit("/auth/account")
      let answer = try await browser.submit(["provider": "google_oauth"])
      #expect(
        answer.status == 503 && answer.text.contains("Google sign-in failed. Try again.")
          && answer.text.contains("Connect: Google"))
    }
  }
}

extension Browser {
  /// Presses "Connect" next to Google on the account page.
  /// - Returns: The address at Google.
  fileprivate func connectsGoogle() async throws -> String {
    try await visit("/auth/account")
    let answer = try await submit(["provider": "google_oauth"])
    #expect(answer.status == 200, "\(answer.text)")
    return try #require(Self.address(on: answer))
  }
}
