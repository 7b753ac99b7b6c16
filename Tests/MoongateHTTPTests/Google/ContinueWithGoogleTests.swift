import Foundation
import HTTPTypes
import MoongateCore
import DemoGoogle
import MoongateSDK
import MoongateTesting
import Testing

@Suite("Continue with Google") struct ContinueWithGoogleTests {
  let world: GoogleWorld

  init() throws { world = try GoogleWorld() }

  @Test(
    "a new person gets an account, and the same one the next time, from both pages",
    arguments: ["/auth/login", "/auth/register"])
  func newAndKnown(path: String) async throws {
    try await world.run { client in
      let browser = Browser(client)
      let away = try await browser.continuesWithGoogle(path)
      #expect(away.hasPrefix("https://google.test/authorize?"))
      let first = try await browser.returns(try await world.google.choose(away, ["account": GoogleWorld.asha]))
      #expect(first.status == 303)
      #expect(first.header("Location") == "/profile-setup")
      #expect(browser.isSignedIn)
      let account = try #require(try await browser.account())
      #expect(account["email"] as? String == "asha@gmail.com")
      #expect(account["is_email_verified"] as? Bool == true)
      #expect(account["first_name"] as? String == "Asha")

      let other = Browser(client)
      let again = try await other.continuesWithGoogle(path, returnTo: "/pay/now?x=1")
      #expect(
        try await other.returns(try await world.google.choose(again, ["account": GoogleWorld.asha])).header("Location")
          == "/pay/now?x=1")
      #expect(try await other.account()?["id"] as? String == account["id"] as? String)
    }
  }

  @Test(
    "a cancelled or failed sign-in returns to the page with its message",
    arguments: [
      ("cancel", "Sign-in cancelled", "oauth_cancelled"),
      ("error", "Google sign-in failed. Try again.", "oauth_failed"),
    ])
  func refused(action: String, sentence: String, code: String) async throws {
    try await world.run { client in
      let browser = Browser(client)
      let away = try await browser.continuesWithGoogle()
      let back = try await browser.returns(try await world.google.choose(away, ["action": action]))
      #expect(back.status == 303)
      #expect(back.header("Location") == "/auth/login?refused=\(code)")
      #expect(try await browser.visit("/auth/login?refused=\(code)").text.contains(sentence))
      #expect(!browser.isSignedIn)
      let next = try await browser.continuesWithGoogle()
      _ = try await browser.returns(try await world.google.choose(next, ["account": GoogleWorld.asha]))
      #expect(browser.isSignedIn, "a new sign-in works")

      // The original target is kept.
      let other = Browser(client)
      let wanted = try await other.continuesWithGoogle(returnTo: "/pay?x=1")
      let refused = try await other.returns(try await world.google.choose(wanted, ["action": action]))
      #expect(refused.header("Location") == "/auth/login?refused=\(code)&return_to=%2Fpay%3Fx%3D1")
    }
  }

  @Test(
    "the page shows only its own messages", arguments: ["denied%20now", "<b>", "flow_expired", "store_unavailable"])
  func sentences(code: String) async throws {
    try await world.run { client in
      let page = try await Browser(client).visit("/auth/login?refused=" + PercentEncoding.encode(code))
      #expect(page.status == 200)
      #expect(!page.text.contains("class=\"problem\""))
    }
  }

  @Test("an address verified by Google joins the account that has it verified; an unverified one does not")
  func joining() async throws {
    try await world.run { client in
      let first = Browser(client)
      _ = try await first.returns(
        try await world.google.choose(try await first.continuesWithGoogle(), ["account": GoogleWorld.asha]))
      let account = try #require(try await first.account()?["id"] as? String)
      // Another identity at Google with the same verified address: the same account.
      let second = Browser(client)
      let away = try await second.continuesWithGoogle()
      let verified = try await world.google.choose(
        away, ["account": "other", "name": "Asha R", "email": "ASHA@gmail.com", "verified": "1"])
      #expect(try await second.returns(verified).header("Location") == "/home")
      #expect(try await second.account()?["id"] as? String == account)
      // Attack: an identity that claims the address without having verified it.
      let third = Browser(client)
      let forged = try await world.google.choose(
        try await third.continuesWithGoogle(), ["account": "other", "name": "Mallory", "email": "asha@gmail.com"])
      _ = try await third.returns(forged)
      let other = try #require(try await third.account())
      #expect(other["id"] as? String != account)
      #expect(other["is_email_verified"] as? Bool == false)
      // The victim's next sign-in still opens the victim's account.
      let fourth = Browser(client)
      _ = try await fourth.returns(
        try await world.google.choose(try await fourth.continuesWithGoogle(), ["account": GoogleWorld.asha]))
      #expect(try await fourth.account()?["id"] as? String == account)
    }
  }

  @Test("new signing keys at Google are picked up") func rotation() async throws {
    try await world.run { client in
      for _ in 0..<3 {
        let browser = Browser(client)
        let away = try await browser.continuesWithGoogle()
        try await world.google.provider.rotateKeys()
        _ = try await browser.returns(try await world.google.choose(away, ["account": GoogleWorld.asha]))
        #expect(browser.isSignedIn)
        world.gateway.clock.advance(by: .seconds(30))
      }
    }
  }

  @Test("where Google is not configured the page does not offer it") func notOffered() async throws {
    try await HTTPGateway().run { client in
      let browser = Browser(client)
      let page = try await browser.visit("/auth/login")
      #expect(!page.text.contains("Google"))
      #expect(try await browser.visit("/auth/callback/google_oauth?state=a").status == 404)
      #expect(try await browser.visit("/auth/callback/phone_otp?state=a").status == 404)
    }
  }

  @Test("when Google does not answer, the person is told so") func down() async throws {
    let world = try GoogleWorld { $0.gateway.providers["google_oauth"]?.texts["issuer"] = "https://other.test" }
    try await world.run { client in
      let browser = Browser(client)
      try await browser.visit("/auth/login")
      let answer = try await browser.submit(["provider": "google_oauth"])
      #expect(answer.status == 503)
      #expect(answer.text.contains("Google sign-in failed. Try again."))
    }
  }
}
