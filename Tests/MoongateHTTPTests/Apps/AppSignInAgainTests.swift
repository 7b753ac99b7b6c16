import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

/// What a new sign-in of a signed-in user means for the apps that the user has signed in to.
@Suite struct AppSignInAgainTests {
  private static func refresh(_ token: String, _ client: Client) async throws -> Answer {
    try await client.form(
      "/auth/openid/token", ["grant_type": "refresh_token", "refresh_token": token],
      headers: [("Authorization", TestApp.basic())])
  }

  /// Attack: an app asks for a new sign-in again and again, and so signs the user out of all other apps.
  @Test func otherAppsKeepTheirTokens() async throws {
    try await TestApp.gateway([TestApp.confidential(), TestApp.confidential("other")]).run { client async throws in
      let browser = try await Browser.owner(client)
      let first = try await browser.tokens()
      let token = try #require(first["refresh_token"] as? String)
      let hint = try #require(first["id_token"] as? String)
      let before = browser.cookieHeader
      client.gateway.clock.advance(by: .seconds(61))
      let begun = try await browser.visit(TestApp.authorize(["client_id": "other", "prompt": "login"]))
      try await browser.visit(try #require(begun.header("Location")))
      let back = try #require(try await browser.signIn().header("Location"))
      #expect(try await browser.visit(back).answer()?["code"] != nil)
      // Attack: session fixation. The token before is worth nothing.
      #expect(try await client.send(.get, "/api/auth/session", headers: before).status == 401)
      let answer = try await Self.refresh(token, client)
      #expect(answer.status == 200, "\(answer.text)")
      let now = client.gateway.clock.now()
      let store = client.gateway.store
      #expect(try await store.claimAppNotices(limit: 9, until: now + .seconds(30), at: now).isEmpty)
      // The app's ID token still names the session, so that its sign-out is not asked about.
      let leaving = ["id_token_hint": hint, "post_logout_redirect_uri": TestApp.afterwards]
      let out = try await browser.visit("/auth/openid/logout?" + TestApp.form(leaving))
      #expect(out.header("Location") == TestApp.afterwards, "\(out.status) \(out.text)")
      #expect(try await Self.refresh(token, client).status == 400)
    }
  }
}
