import Crypto
import Foundation
import HTTPTypes
import MoongateCore
import DemoGoogle
import MoongateSDK
import MoongateTesting
import Testing

/// Apps that sign in with Google: an ID token with our nonce, or a one-time code redeemed with PKCE.
@Suite("Apps with Google") struct AppSignInTests {
  let world: GoogleWorld

  init() throws { world = try GoogleWorld() }

  private static let verifier = String(repeating: "v", count: 43)
  private static let challenge = Base64URL.encode(SHA256.hash(data: Data(verifier.utf8)))
  private static let address = GoogleWorld.appAddress

  /// Begins a flow as an app does; returns its id and the address to open.
  private func begun(_ client: Client, _ fields: String = "") async throws -> (id: String, away: String) {
    let created = try await client.call(.post, "/api/auth/flows", #"{"flow":"login"\#(fields)}"#)
    #expect(created.status == 201, "\(created.text)")
    let id = try #require(created["id"] as? String)
    let begun = try await client.call(.post, "/api/auth/flows/\(id)/begin", #"{"provider":"google_oauth"}"#)
    let step = try #require(begun["step"] as? [String: Any], "\(begun.text)")
    #expect(begun.setCookies.isEmpty)
    return (id, try #require(step["redirect_to"] as? String))
  }

  private var app: String { #","code_challenge":"\#(Self.challenge)","redirect_to":"\#(Self.address)""# }

  /// Creates a flow whose result the app receives.
  private func created(_ client: Client) async throws -> String {
    let created = try await client.call(.post, "/api/auth/flows", #"{"flow":"login"\#(app)}"#)
    #expect(created.status == 201, "\(created.text)")
    return try #require(created["id"] as? String)
  }

  /// Opens the flow's page in the browser, agrees, and continues with Google.
  /// - Returns: the address at Google.
  private func continues(_ browser: Browser, _ id: String) async throws -> String {
    let asked = try await browser.visit("/auth/login?id=\(id)")
    #expect(asked.header("Location") == "/auth/app?id=\(id)")
    try await browser.visit("/auth/app?id=\(id)")
    let agreed = try await browser.submit(["action": "allow"])
    #expect(agreed.header("Location") == "/auth/login?id=\(id)", "\(agreed.text)")
    try await browser.visit("/auth/login?id=\(id)")
    return try #require(Browser.address(on: try await browser.submit(["provider": "google_oauth"])))
  }

  private func submit(_ client: Client, _ id: String, _ fields: [String: String]) async throws -> Answer {
    let json = String(decoding: try JSONSerialization.data(withJSONObject: fields), as: UTF8.self)
    return try await client.call(.post, "/api/auth/flows/\(id)/submit", json)
  }

  /// An ID token that the app has obtained from Google itself, with the flow's nonce.
  private func idToken(nonce: String) async throws -> String {
    let own =
      GoogleWorld.issuer
      + "/authorize?response_type=code&client_id=client&scope=openid%20email&code_challenge_method=S256"
      + "&code_challenge=\(Self.challenge)&redirect_uri=\(PercentEncoding.encode(GoogleWorld.callback))&nonce=\(nonce)&state=x"
    let back = try await world.google.choose(own, ["account": GoogleWorld.asha])
    let answer = await world.google.post(
      "/token",
      [
        "grant_type": "authorization_code", "code": try #require(field("code", of: back)),
        "redirect_uri": GoogleWorld.callback,
        "code_verifier": Self.verifier, "client_id": "client", "client_secret": "s3cret",
      ])
    let json = try JSONSerialization.jsonObject(with: Data(answer.1)) as? [String: Any]
    return try #require(json?["id_token"] as? String)
  }

  @Test("an ID token with our nonce signs in; with another, or a second time, it does not") func token() async throws {
    try await world.run { client in
      let (id, away) = try await begun(client)
      let nonce = try #require(field("nonce", of: away))
      let foreign = try await submit(client, id, ["id_token": try await idToken(nonce: "other")])
      #expect(foreign.status == 401)
      #expect(foreign.problem() == "oauth_failed")
      let good = try await idToken(nonce: nonce)
      let done = try await submit(client, id, ["id_token": good])
      #expect(done.status == 200, "\(done.text)")
      #expect((done["session"] as? [String: Any])?["token"] is String)
      #expect((done["account"] as? [String: Any])?["email"] as? String == "asha@gmail.com")
      #expect(try await submit(client, id, ["id_token": good]).status == 409)
      let (other, _) = try await begun(client)
      #expect(try await submit(client, other, ["id_token": good]).status == 401, "for another step")
    }
  }

  @Test("a flow that no browser began cannot be completed in one") func noBrowser() async throws {
    try await world.run { client in
      let (_, away) = try await begun(client)
      let victim = Browser(client)
      #expect(
        try await victim.returns(try await world.google.choose(away, ["account": GoogleWorld.asha])).status == 404)
      #expect(!victim.isSignedIn)
    }
  }

  @Test("a one-time code is sent to the app's address and redeemed once, with the challenge's verifier") func code()
    async throws
  {
    try await world.run { client in
      let id = try await created(client)
      let browser = Browser(client)
      let away = try await continues(browser, id)
      let back = try await browser.returns(try await world.google.choose(away, ["account": GoogleWorld.asha]))
      let target = try #require(back.header("Location"))
      #expect(target.hasPrefix(Self.address + "&code="))
      #expect(!browser.isSignedIn, "the session is the app's")
      let code = try #require(field("code", of: target))

      // Attack: a person who began the flow and sent its link to a victim reads the flow. It reveals neither the code
      // nor the account.
      let seen = try await client.call(.get, "/api/auth/flows/\(id)")
      #expect(!seen.text.contains(code))
      #expect(!seen.text.contains("asha@gmail.com"))
      #expect(seen["session"] is NSNull)

      #expect(
        try await submit(client, id, ["code": code, "code_verifier": String(repeating: "w", count: 43)]).status == 401)
      #expect(try await submit(client, id, ["code": "other", "code_verifier": Self.verifier]).status == 401)
      #expect(try await submit(client, id, ["code": code]).status == 409)
      let done = try await submit(client, id, ["code": code, "code_verifier": Self.verifier])
      #expect(done.status == 200, "\(done.text)")
      let token = try #require((done["session"] as? [String: Any])?["token"] as? String)
      #expect(
        try await client.call(.get, "/api/auth/session", headers: [("Authorization", "Bearer \(token)")]).status == 200)
      #expect(try await submit(client, id, ["code": code, "code_verifier": Self.verifier]).status == 409)
    }
  }

  @Test(
    "after a cancellation or a refusal the person returns to the app, not to a hosted page",
    arguments: [(["action": "cancel"], "oauth_cancelled"), (["action": "error"], "oauth_failed")])
  func refused(choice: [String: String], code: String) async throws {
    try await world.run { client in
      let id = try await created(client)
      let browser = Browser(client)
      let back = try await world.google.choose(try await continues(browser, id), choice)
      #expect(try await Browser(client).returns(back).status == 404, "in another browser")
      let answer = try await browser.returns(back)
      #expect(answer.status == 303)
      #expect(answer.header("Location") == Self.address + "&error=\(code)")
      #expect(try await client.call(.get, "/api/auth/flows/\(id)").status == 404, "the answer has used up the state")
      #expect(try await browser.returns(back).status == 404)
    }
  }

  /// Attack: an attacker creates a flow for an app, begins the step that leads to Google by the API, and sends the link
  /// of Google. The victim sees no page of the gateway and no name of an app, and the attacker redeems the code.
  @Test("the API gives out no address of another site for a flow of an app") func noPage() async throws {
    try await world.run { client in
      let id = try await created(client)
      let begin = { (headers: [(String, String)]) in
        try await client.call(
          .post, "/api/auth/flows/\(id)/begin", #"{"provider":"google_oauth"}"#, headers: headers)
      }
      let refused = try await begin([])
      #expect(refused.status == 409 && refused.problem() == "step_not_open")
      #expect(refused.detail?.contains("/auth/login?id=") == true)
      // The same after a browser has opened the page, with its own cookies too.
      let browser = Browser(client)
      try await browser.visit("/auth/login?id=\(id)")
      #expect(try await begin([]).status == 409)
      #expect(try await begin(browser.cookieHeader + [("Origin", browser.origin)]).status == 409)
    }
  }

  @Test("a one-time code lives for a minute") func expires() async throws {
    try await world.run { client in
      let id = try await created(client)
      let browser = Browser(client)
      let away = try await continues(browser, id)
      let back = try await browser.returns(try await world.google.choose(away, ["account": GoogleWorld.asha]))
      let code = try #require(back.header("Location").flatMap { field("code", of: $0) })
      world.gateway.clock.advance(by: .seconds(60))
      #expect(try await submit(client, id, ["code": code, "code_verifier": Self.verifier]).problem() == "code_expired")
    }
  }

  @Test(
    "only to an address that an app has registered, and only with a challenge",
    arguments: [
      // A host of redirect_hosts is no app, whatever the path, the query and the scheme.
      (#","redirect_to":"https://app.example.com/","code_challenge":"CHALLENGE""#, "redirect_to"),
      (#","redirect_to":"https://app.example.com/user/x/pixel.gif","code_challenge":"CHALLENGE""#, "redirect_to"),
      (#","redirect_to":"http://app.example.com/signed-in?from=google","code_challenge":"CHALLENGE""#, "redirect_to"),
      (#","redirect_to":"https://app.example.com/signed-in","code_challenge":"CHALLENGE""#, "redirect_to"),
      (
        #","redirect_to":"https://app.example.com/signed-in?from=google&to=http://evil.example/","code_challenge":"CHALLENGE""#,
        "redirect_to"
      ),
      (
        #","redirect_to":"https://app.example.com/signed-in?from=google\r\nSet-Cookie:x","code_challenge":"CHALLENGE""#,
        "redirect_to"
      ),
      (#","redirect_to":"https://evil.example.com/","code_challenge":"CHALLENGE""#, "redirect_to"),
      (#","redirect_to":"https://app.example.com.evil.com/","code_challenge":"CHALLENGE""#, "redirect_to"),
      (#","redirect_to":"https://app.example.com@evil.com/","code_challenge":"CHALLENGE""#, "redirect_to"),
      (#","redirect_to":"https://app.example.com:8443/","code_challenge":"CHALLENGE""#, "redirect_to"),
      (#","redirect_to":"//app.example.com/","code_challenge":"CHALLENGE""#, "redirect_to"),
      (#","redirect_to":"/home","code_challenge":"CHALLENGE""#, "redirect_to"),
      (#","redirect_to":"http://localhost:8080/home","code_challenge":"CHALLENGE""#, "redirect_to"),
      (#","redirect_to":"javascript:alert(1)","code_challenge":"CHALLENGE""#, "redirect_to"),
      (#","code_challenge":"CHALLENGE""#, "redirect_to"),
      (#","redirect_to":"https://app.example.com/signed-in?from=google""#, "code_challenge"),
      (
        #","redirect_to":"https://app.example.com/signed-in?from=google","code_challenge":"short""#, "code_challenge"
      ),
      (
        #","redirect_to":"https://app.example.com/signed-in?from=google","code_challenge":"CHALLENGE","code_challenge_method":"plain""#,
        "code_challenge_method"
      ),
      (#","redirect_to":1,"code_challenge":"CHALLENGE""#, "redirect_to"),
    ])
  func wrong(fields: String, name: String) async throws {
    try await world.run { client in
      let answer = try await client.call(
        .post, "/api/auth/flows", #"{"flow":"login"\#(fields.replacing("CHALLENGE", with: Self.challenge))}"#)
      #expect(answer.status == 422)
      #expect(answer["field"] as? String == name)
    }
  }
}
