import Foundation
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import PhoneOTP
import Testing

/// Tokens for programs: the admin API, the API for their owners, and the pages.
@Suite struct TokenTests {
  private static func route(_ tokens: RouteTokens?) -> Route {
    Route(
      host: nil, path: PathPattern(text: "/dav/**", segments: [.glob(Array("dav".utf8)), .anySegments]), methods: nil,
      upstreams: [Upstream(isSecure: false, host: "127.0.0.1", port: 1)], isOpen: false, flow: "login",
      requirement: nil, decide: nil,
      timeout: .seconds(1), allowsUpgrade: false, headers: [], bodyLimit: nil, tokens: tokens,
      location: SourceLocation(file: "routes.lua", line: 1))
  }

  private func gateway(_ tokens: RouteTokens? = RouteTokens(takesPersonal: true)) throws -> HTTPGateway {
    try HTTPGateway(routes: [Self.route(tokens)]) { generation in
      generation.flows["step_up"] = .test("step_up", account: .existing, steps: [.test("phone_otp")])
    }
  }

  @Test func anOperatorCreatesListsRotatesAndRevokes() async throws {
    try await AdminTests.run(try AdminTests.gateway()) { admin in
      let made = try await admin.call(.post, "/tokens", #"{"name":"ci","expires":"90d","networks":["10.1.2.3/8"]}"#)
      #expect(made.status == 201)
      let secret = try #require(made["token"] as? String)
      #expect(
        secret.hasPrefix("mgt_") && made["networks"] as? [String] == ["10.0.0.0/8"] && made["expired"] as? Bool == false
      )
      let taken = try await admin.call(.post, "/tokens", #"{"name":"ci"}"#)
      #expect(taken.status == 409 && taken.problem() == "already_set")
      for (body, field) in [
        (#"{}"#, "name"), (#"{"name":"C I"}"#, "name"), (#"{"name":"x","groups":["ops"]}"#, "groups"),
        (#"{"name":"x","groups":"ops"}"#, "groups"),
        (#"{"name":"x","expires":"soon"}"#, "expires"), (#"{"name":"x","expires":5}"#, "expires"),
        (#"{"name":"x","networks":["here"]}"#, "networks"),
      ] {
        let wrong = try await admin.call(.post, "/tokens", body)
        #expect(wrong.status == 422 && wrong["field"] as? String == field, "\(body)")
      }
      let listed = try await admin.send(.get, "/tokens")
      #expect(
        listed.text.contains(#""name":"ci""#) && !listed.text.contains("mgt_") && !listed.text.contains("\"token\""))
      let rotated = try await admin.call(.post, "/tokens/ci/rotate", #"{"overlap":"1h"}"#)
      #expect(
        rotated.status == 200 && rotated["token"] as? String != secret && rotated["previous_until"] as? String != nil)
      #expect(try await admin.call(.post, "/tokens/ci/rotate", #"{"overlap":"x"}"#)["field"] as? String == "overlap")
      #expect(try await admin.call(.post, "/tokens/nobody/rotate", "{}").problem() == "not_found")
      #expect(try await admin.send(.delete, "/tokens/ci").status == 204)
      #expect(try await admin.send(.delete, "/tokens/ci").problem() == "not_found")
      #expect(try await admin.send(.get, "/tokens").text == "[]\n")
    }
  }

  @Test func userCreatesAndRevokesTokensByTheAPI() async throws {
    try await gateway().run { client in
      let session = try await client.register().token
      let bearer = [("Authorization", "Bearer \(session)")]
      let made = try await client.call(
        .post, "/api/auth/tokens", #"{"name":"laptop","expires":"30d"}"#, headers: bearer)
      #expect(made.status == 201)
      let (id, secret) = (try #require(made["id"] as? String), try #require(made["token"] as? String))
      let listed = try await client.call(.get, "/api/auth/tokens", headers: bearer)
      #expect(listed.status == 200 && listed.text.contains(id) && !listed.text.contains("mgt_"))
      // Attack: a token is used to create more tokens, or to read or change the account.
      for (method, path) in [
        (HTTPRequest.Method.get, "/api/auth/session"), (.get, "/api/auth/tokens"), (.delete, "/api/auth/account"),
      ] {
        #expect(
          try await client.call(method, path, headers: [("Authorization", "Bearer \(secret)")]).problem()
            == "unauthenticated")
      }
      #expect(
        try await client.call(.post, "/api/auth/tokens", #"{"name":"laptop"}"#, headers: bearer).problem()
          == "invalid_input")
      #expect(
        try await client.call(.post, "/api/auth/tokens", #"{"name":"other","expires":"400d"}"#, headers: bearer)[
          "field"] as? String == "expires")
      #expect(try await client.call(.post, "/api/auth/tokens", #"{"name":"other"}"#).problem() == "unauthenticated")
      client.gateway.clock.advance(by: .seconds(700))
      let late = try await client.call(.post, "/api/auth/tokens", #"{"name":"other"}"#, headers: bearer)
      #expect(late.status == 403 && late.problem() == "step_up_required" && late["provider"] as? String == "phone_otp")
      #expect(try await client.call(.delete, "/api/auth/tokens/\(id)", headers: bearer).status == 204)
      #expect(try await client.call(.delete, "/api/auth/tokens/\(id)", headers: bearer).problem() == "not_found")
    }
  }

  @Test func userCreatesAndRevokesTokensOnThePages() async throws {
    try await gateway().run { client in
      let browser = try await Browser.owner(client)
      let account = try await browser.visit("/auth/account")
      #expect(
        account.text.contains("Access tokens") && account.text.contains("/dav/**")
          && account.text.contains("href=\"/auth/account/tokens\""))
      let form = try await browser.visit("/auth/account/tokens")
      #expect(form.status == 200 && form.text.contains("90 days") && form.text.contains("365 days"))
      #expect(try await browser.turns(to: "hi", ["name": "Laptop", "expires": "30"]).text.contains("value=\"Laptop\""))
      #expect(try await browser.post("/auth/account/tokens", ["name": " ", "expires": "30"]).status == 422)
      let made = try await browser.post("/auth/account/tokens", ["name": "<b>laptop", "expires": "30"])
      let secret = try #require(made.text.firstMatch(of: /mgt_[A-Za-z0-9_-]{43}/)).output
      #expect(
        made.status == 200 && made.text.contains("data-keep=\"text\"") && made.header("Cache-Control") == "no-store")
      #expect(
        try await browser.post("/auth/account/tokens", ["name": "<b>laptop", "expires": "30"]).text.contains("problem"))
      let listed = try await browser.visit("/auth/account")
      #expect(
        listed.text.contains("&lt;b&gt;laptop") && !listed.text.contains(secret) && !listed.text.contains("<b>laptop"))
      let id = try #require(listed.text.firstMatch(of: /name="token" value="(tk_[A-Za-z0-9_-]+)"/)).output.1
      #expect(
        try await browser.post("/auth/account", ["action": "revoke_token", "token": String(id)]).header("Location")
          == "/auth/account?done=token_revoked")
      #expect(try await browser.visit("/auth/account?done=token_revoked").text.contains("class=\"notice\""))
      client.gateway.clock.advance(by: .seconds(700))
      #expect(
        try await browser.visit("/auth/account/tokens").header("Location")?.hasPrefix("/auth/step?flow=step_up")
          ?? false)
    }
  }

  @Test func accountPageHidesTokensIfNoRouteAcceptsThem() async throws {
    try await gateway(nil).run { client in
      let browser = try await Browser.owner(client)
      #expect(try await !browser.visit("/auth/account").text.contains("/auth/account/tokens"))
      #expect(try await browser.visit("/auth/account/tokens").status == 403)
      let anonymous = Browser(client)
      #expect(try await anonymous.visit("/auth/account/tokens").header("Location")?.hasPrefix("/auth/login") ?? false)
    }
  }
}
