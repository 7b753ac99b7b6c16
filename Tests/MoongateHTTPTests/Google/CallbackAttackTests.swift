import Foundation
import HTTPTypes
import MoongateCore
import DemoGoogle
import MoongateSDK
import MoongateTesting
import Testing

/// Attacks on the callback: changed, replayed and injected answers, and answers in another browser.
@Suite("Attacks at the callback") struct CallbackAttackTests {
  let world: GoogleWorld

  init() throws { world = try GoogleWorld() }

  /// The text with a different first character.
  private static func flipped(_ text: String) -> String { (text.hasPrefix("A") ? "B" : "A") + text.dropFirst() }

  private static let changes: [(String, @Sendable (String) -> String)] = [
    ("no state", { changing("state", to: nil, in: $0) }), ("an empty state", { changing("state", to: "", in: $0) }),
    ("a made-up state", { changing("state", to: "st_abc", in: $0) }),
    ("a longer state", { changing("state", to: (field("state", of: $0) ?? "") + "A", in: $0) }),
    ("a cut state", { changing("state", to: String((field("state", of: $0) ?? "").dropLast(4)), in: $0) }),
    ("a changed state", { changing("state", to: flipped(field("state", of: $0) ?? ""), in: $0) }),
    ("a huge state", { changing("state", to: String(repeating: "A", count: 4000), in: $0) }),
    ("two states", { $0 + "&state=x" }),
    ("another issuer", { changing("iss", to: "https://evil.example.com", in: $0) }),
    ("no issuer where Google names itself", { changing("iss", to: nil, in: $0) }),
    ("no code", { changing("code", to: nil, in: $0) }),
    ("a made-up code", { changing("code", to: "abc", in: $0) }), ("two codes", { $0 + "&code=x" }),
    ("another provider", { $0.replacing("callback/google_oauth", with: "callback/phone_otp") }),
    ("a provider that is none", { $0.replacing("callback/google_oauth", with: "callback/..%2fgoogle_oauth") }),
  ]

  @Test("a changed answer signs in no user", arguments: changes.map(\.0)) func changed(what: String)
    async throws
  {
    let change = try #require(Self.changes.first { $0.0 == what }?.1)
    try await world.run { client in
      let browser = Browser(client)
      let back = try await world.google.choose(try await browser.continuesWithGoogle(), ["account": GoogleWorld.asha])
      let answer = try await browser.visit(String(change(back).dropFirst("http://localhost:8080".count)))
      #expect(!browser.isSignedIn)
      if answer.status == 303 {
        #expect(answer.header("Location") == "/auth/login?refused=oauth_failed")
      } else {
        #expect([400, 404].contains(answer.status))
      }
    }
  }

  @Test("the link of another person's sign-in works only in their browser") func anotherBrowser() async throws {
    try await world.run { client in
      let attacker = Browser(client)
      let back = try await world.google.choose(try await attacker.continuesWithGoogle(), ["account": GoogleWorld.asha])
      let bare = Browser(client)
      #expect(try await bare.returns(back).status == 404)
      #expect(!bare.isSignedIn)
      // Nor in a browser with a sign-in of its own in progress.
      let victim = Browser(client)
      _ = try await victim.continuesWithGoogle()
      #expect(try await victim.returns(back).status == 404)
      #expect(!victim.isSignedIn)
      #expect(try await attacker.returns(back).status == 303, "their own still works")
    }
  }

  @Test("another session's code with one's own state") func injected() async throws {
    try await world.run { client in
      let attacker = Browser(client)
      let victim = Browser(client)
      let theirs = try await world.google.choose(
        try await attacker.continuesWithGoogle(), ["account": GoogleWorld.asha])
      let own = try await world.google.choose(
        try await victim.continuesWithGoogle(), ["account": "100000000000000000002"])
      let mixed = changing("code", to: field("code", of: theirs), in: own)
      #expect(try await victim.returns(mixed).header("Location") == "/auth/login?refused=oauth_failed")
      #expect(!victim.isSignedIn)
    }
  }

  @Test("an answer is accepted once", arguments: [true, false]) func reused(isGood: Bool) async throws {
    try await world.run { client in
      let browser = Browser(client)
      let back = try await world.google.choose(try await browser.continuesWithGoogle(), ["account": GoogleWorld.asha])
      let first = isGood ? back : changing("code", to: "abc", in: back)
      _ = try await browser.returns(first)
      let signedIn = browser.cookies["moongate"]
      #expect((signedIn != nil) == isGood)
      let again = try await browser.returns(back)
      #expect([404, 409].contains(again.status))
      #expect(browser.cookies["moongate"] == signedIn)
    }
  }

  @Test("two tabs of one browser both work, in any order") func twoTabs() async throws {
    try await world.run { client in
      let browser = Browser(client)
      let first = try await browser.continuesWithGoogle()
      let second = try await browser.continuesWithGoogle()
      #expect(field("state", of: first) != field("state", of: second))
      #expect(field("nonce", of: first) != field("nonce", of: second))
      for away in [second, first] {
        let back = try await world.google.choose(away, ["account": GoogleWorld.asha])
        #expect(try await browser.returns(back).status == 303)
        #expect(browser.isSignedIn)
      }
    }
  }

  @Test(
    "no parameter redirects to another site",
    arguments: [
      "//evil.example.com", "/\\evil.example.com", "https://evil.example.com", "javascript:alert(1)",
      "https:evil.example.com",
    ])
  func openRedirect(target: String) async throws {
    try await world.run { client in
      let browser = Browser(client)
      let away = try await browser.continuesWithGoogle(returnTo: target)
      let back = try await world.google.choose(away, ["account": GoogleWorld.asha])
      let more = ["return_to", "next", "redirect_uri", "redirect_to"].map { "&\($0)=\(PercentEncoding.encode(target))" }
        .joined()
      #expect(try await browser.returns(back + more).header("Location") == "/profile-setup")
    }
  }

  @Test("a HEAD request uses up nothing") func head() async throws {
    try await world.run { client in
      let browser = Browser(client)
      let back = try await world.google.choose(try await browser.continuesWithGoogle(), ["account": GoogleWorld.asha])
      let path = String(back.dropFirst("http://localhost:8080".count))
      #expect(try await client.send(.head, path, headers: browser.cookieHeader).status == 405)
      #expect(try await browser.returns(back).header("Location") == "/profile-setup")
    }
  }

  @Test("neither code nor state nor secret is in the log") func quiet() async throws {
    try await world.run { client in
      let browser = Browser(client)
      let away = try await browser.continuesWithGoogle()
      let back = try await world.google.choose(away, ["account": GoogleWorld.asha])
      _ = try await browser.returns(changing("code", to: "abc", in: back))
      let secrets = [field("state", of: away), field("nonce", of: away), field("code", of: back), "s3cret"].compactMap(
        \.self)
      #expect(secrets.count == 4)
      let log = world.gateway.log.lines.joined()
      for secret in secrets { #expect(!log.contains(secret)) }
    }
  }

  @Test("the page on the way is ours, cannot be framed and is not stored") func leaving() async throws {
    try await world.run { client in
      let browser = Browser(client)
      try await browser.visit("/auth/login")
      let answer = try await browser.submit(["provider": "google_oauth"])
      #expect(answer.header("Cache-Control") == "no-store")
      #expect(answer.header("Content-Security-Policy")?.contains("frame-ancestors 'none'") == true)
      // Attack: another site's form begins a sign-in here.
      let foreign = Browser(client, origin: "https://evil.example.com")
      #expect(try await foreign.post("/auth/login", ["provider": "google_oauth"]).status == 403)
    }
  }
}
