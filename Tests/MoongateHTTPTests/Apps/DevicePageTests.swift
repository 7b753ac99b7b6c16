import Foundation
import HTTPTypes
import MoongateCore
import MoongateHTTP
import MoongateSDK
import MoongateTesting
import Testing

/// `/auth/openid/device` and `/auth/device`: signing in on a device without a browser (RFC 8628).
@Suite struct DevicePageTests {
  /// What the device got.
  private struct Codes {
    let device: String
    let user: String
    let complete: String
  }

  private func gateway(_ app: App) throws -> HTTPGateway {
    try HTTPGateway { $0.apps = AppTable([app], own: nil) }
  }

  private func post(_ client: Client, _ path: String, _ fields: KeyValuePairs<String, String?>) async throws -> Answer {
    try await client.send(
      .post, path, headers: [("Content-Type", "application/x-www-form-urlencoded")],
      body: String(FormFields.address("", fields).dropFirst()))
  }

  private func asks(_ client: Client, scope: String = "openid email") async throws -> Codes {
    let answer = try await post(client, "/auth/openid/device", ["client_id": "notes", "scope": scope])
    #expect(answer.status == 200 && answer.header("Cache-Control") == "no-store", "\(answer.text)")
    #expect(answer["verification_uri"] as? String == "http://localhost:8080/auth/device")
    #expect(answer["interval"] as? Int == 5 && (answer["expires_in"] as? Int ?? 0) > 60)
    return Codes(
      device: try #require(answer["device_code"] as? String), user: try #require(answer["user_code"] as? String),
      complete: try #require(answer["verification_uri_complete"] as? String))
  }

  private func poll(_ client: Client, _ codes: Codes) async throws -> Answer {
    client.gateway.clock.advance(by: .seconds(10))
    return try await post(
      client, "/auth/openid/token",
      [
        "grant_type": GrantType.deviceCode.rawValue, "device_code": codes.device, "client_id": "notes",
      ])
  }

  /// The code without eight letters that are wrong for certain.
  private func wrong(_ codes: Codes) -> String { codes.user.hasPrefix("BBBB") ? "CCCC-CCCC" : "BBBB-BBBB" }

  @Test func aUserSignsInOnADevice() async throws {
    try await gateway(try .asking()).run { client in
      let codes = try await asks(client)
      #expect(codes.user.wholeMatch(of: /[B-DF-HJ-NP-TV-Z]{4}-[B-DF-HJ-NP-TV-Z]{4}/) != nil)
      #expect(try await poll(client, codes)["error"] as? String == "authorization_pending")
      let browser = try await Browser.owner(client)
      let page = try await browser.visit("/auth/device")
      #expect(page.status == 200 && page.text.contains("<h1>Connect a device</h1>"))
      #expect(page.text.contains("<label for=\"user_code\">Code</label>") && page.text.contains("someone else"))
      // People type small letters and other separators.
      let asked = try await browser.submit(["user_code": codes.user.lowercased().replacing("-", with: " ")])
      #expect(asked.status == 200)
      for text in [
        "<h1>Connect Notes?</h1>", codes.user, "See your email address", "<dt>Asked at</dt>", "<dt>Asked from</dt>",
        "You are signed in as", "aria-describedby=\"warning\"",
      ] { #expect(asked.text.contains(text), "\(text)") }
      let done = try await browser.submit(["action": "allow"])
      #expect(done.status == 200 && done.text.contains("You can continue on your device."))
      let tokens = try await poll(client, codes)
      #expect(tokens.status == 200 && tokens["access_token"] is String, "\(tokens.text)")
      #expect(try await poll(client, codes).status == 400, "a code is used once")
    }
  }

  @Test func aRefusalIsTold() async throws {
    try await gateway(try .asking()).run { client in
      let codes = try await asks(client)
      let browser = try await Browser.owner(client)
      try await browser.visit("/auth/device")
      try await browser.submit(["user_code": codes.user])
      #expect(try await browser.submit(["action": "cancel"]).text.contains("<h1>Not connected</h1>"))
      #expect(try await poll(client, codes)["error"] as? String == "access_denied")
      try await browser.visit("/auth/device")
      #expect(try await browser.submit(["user_code": codes.user]).status == 401, "it was decided")
    }
  }

  /// Attack: the attacker's device asks, and its user sends the link with the code to a victim (RFC 8628 section 5.4).
  /// The link only fills in the code. The page then names the app, the time and the address, and warns.
  @Test func aLinkDecidesNothing() async throws {
    try await gateway(try .asking()).run { client in
      let codes = try await asks(client)
      let path = try #require(codes.complete.components(separatedBy: "http://localhost:8080").last)
      let stranger = Browser(client)
      let redirected = try await stranger.visit(path)
      let signIn = "/auth/login?return_to=%2Fauth%2Fdevice%3Fuser_code%3D\(codes.user)"
      #expect(redirected.header("Location") == signIn)
      let victim = try await Browser.owner(client)
      let page = try await victim.visit(path)
      #expect(page.text.contains("value=\"\(codes.user)\"") && !page.text.contains("Notes"))
      #expect(try await poll(client, codes)["error"] as? String == "authorization_pending")
      let asked = try await victim.submit(["user_code": codes.user])
      #expect(asked.text.contains("they would get into your account") && asked.text.contains("Notes"))
      #expect(asked.text.contains("<time class=\"value\" datetime="))
      #expect(try await poll(client, codes)["error"] as? String == "authorization_pending")
    }
  }

  /// Attack: a link puts a text of the attacker's on the page.
  @Test func textOfALinkIsNotShown() async throws {
    try await gateway(try .asking()).run { client in
      let browser = try await Browser.owner(client)
      for text in ["Call 555 0199", "<script>x</script>", "BCDFGHJKL", "BCDF", String(repeating: "B", count: 999)] {
        let page = try await browser.visit(FormFields.address("/auth/device", ["user_code": text]))
        #expect(page.status == 200 && page.text.contains("name=\"user_code\"") && page.text.contains("value=\"\""))
        #expect(!page.text.contains("555 0199") && !page.text.contains("<script>x"))
      }
    }
  }

  /// Attack: a page of another site enters the attacker's code and agrees for the user (CSRF).
  @Test func anotherSiteCannotConnectADevice() async throws {
    try await gateway(try .asking()).run { client in
      let codes = try await asks(client)
      let browser = try await Browser.owner(client)
      let account = try #require(try await client.gateway.store.accounts(after: nil, limit: 9).first)
      let foreign = try await client.send(
        .post, "/auth/device",
        headers: browser.cookieHeader + [
          ("Origin", "https://evil.example"), ("Content-Type", "application/x-www-form-urlencoded"),
        ], body: "user_code=\(codes.user)&action=allow&account=\(account.id)")
      #expect(foreign.status == 403 && foreign.problem() == "origin_refused")
      #expect(try await poll(client, codes)["error"] as? String == "authorization_pending")
    }
  }

  /// Attack: the user agrees for one account, and the browser has been signed in to another one meanwhile.
  @Test func agreementCountsForTheAccountThatThePageShowed() async throws {
    try await gateway(try .asking()).run { client in
      let codes = try await asks(client)
      let browser = try await Browser.owner(client)
      let other = try await browser.post(
        "/auth/device", ["user_code": codes.user, "action": "allow", "account": "ac_other"])
      #expect(other.status == 200 && other.text.contains("<h1>Connect Notes?</h1>"))
      #expect(try await poll(client, codes)["error"] as? String == "authorization_pending")
    }
  }

  /// Attack: guessing the codes of other people's devices (RFC 8628 section 5.1). After too many wrong ones, a right
  /// one is refused too.
  @Test func guessesAreLimited() async throws {
    try await gateway(try .asking()).run { client in
      let codes = try await asks(client)
      let browser = try await Browser.owner(client)
      for _ in 0..<61 {
        let answer = try await browser.post("/auth/device", ["user_code": wrong(codes)])
        #expect(answer.status == 401 && answer.text.contains("This code is wrong or has expired."))
      }
      #expect(try await browser.post("/auth/device", ["user_code": codes.user]).status == 401)
    }
  }

  /// Attack: HTML in the name of an app, and an invisible frame around the question.
  @Test func theQuestionIsTextInNoFrame() async throws {
    try await gateway(try .asking("<img src=x>")).run { client in
      let codes = try await asks(client)
      let browser = try await Browser.owner(client)
      let asked = try await browser.post("/auth/device", ["user_code": codes.user])
      #expect(asked.text.contains("Connect &lt;img src=x&gt;?") && !asked.text.contains("<img src=x>"))
      #expect(asked.header("X-Frame-Options") == "DENY")
      // The answer stays here: the page leads to no app.
      #expect(asked.header("Content-Security-Policy")?.contains("notes.example.com") == false)
    }
  }

  /// Attack: someone who may not use the app connects a device of theirs.
  @Test func requirementsOfTheAppHold() async throws {
    let group = try #require(GroupName(rawValue: "staff"))
    let app = try App.asking(requirement: AppRequirement(groups: GroupRequirement(anyOf: [group])))
    try await gateway(app).run { client in
      let codes = try await asks(client)
      let browser = try await Browser.owner(client)
      let account = try #require(try await client.gateway.store.accounts(after: nil, limit: 9).first)
      for fields in [
        ["user_code": codes.user], ["user_code": codes.user, "action": "allow", "account": account.id],
      ] {
        #expect(try await browser.post("/auth/device", fields).status == 403)
      }
      #expect(try await poll(client, codes)["error"] as? String == "authorization_pending")
    }
  }

  @Test func onlyAppsWithTheGrantHaveThePage() async throws {
    let app = App(
      id: "notes", name: "Notes", redirectURIs: [try RedirectURI("https://notes.example.com/in")], consent: .once)
    try await gateway(app).run { client in
      let browser = try await Browser.owner(client)
      #expect(try await browser.visit("/auth/device").status == 404)
      let refused = try await post(client, "/auth/openid/device", ["client_id": "notes"])
      #expect(refused.status == 400 && refused["error"] as? String == "unauthorized_client")
    }
  }
}
