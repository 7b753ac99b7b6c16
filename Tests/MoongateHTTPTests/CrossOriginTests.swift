import HTTPTypes
import MoongateCore
import MoongateTesting
import Testing

/// Web pages of other origins that call `/api/auth` (`cors_origins`).
@Suite struct CrossOriginTests {
  static let page = "https://spa.example.com"

  private func gateway(_ origins: [String] = [page]) throws -> HTTPGateway {
    var settings = GatewaySettings.test()
    settings.corsOrigins = origins
    return try HTTPGateway(settings: settings)
  }

  @Test func configuredOriginMayCallTheAPI() async throws {
    try await gateway().run { client in
      let ask = [
        ("Origin", Self.page), ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "content-type"),
      ]
      let preflight = try await client.send(.options, "/api/auth/flows", headers: ask)
      #expect(preflight.status == 204)
      #expect(preflight.header("Access-Control-Allow-Origin") == Self.page)
      #expect(preflight.header("Access-Control-Allow-Credentials") == "true")
      #expect(preflight.header("Access-Control-Allow-Methods") == "POST")
      #expect(preflight.header("Access-Control-Allow-Headers")?.contains("content-type") == true)
      #expect(preflight.header("Vary") == "Origin")

      let created = try await client.call(
        .post, "/api/auth/flows", #"{"flow":"login"}"#, headers: [("Origin", Self.page)])
      #expect(created.status == 201)
      #expect(created.header("Access-Control-Allow-Origin") == Self.page)
      #expect(created.header("Access-Control-Expose-Headers")?.contains("Retry-After") == true)
      let refused = try await client.call(.get, "/api/auth/session", headers: [("Origin", Self.page)])
      #expect(refused.problem() == "unauthenticated")
      #expect(refused.header("Access-Control-Allow-Origin") == Self.page)
    }
  }

  @Test func configuredOriginMaySendTheSessionCookie() async throws {
    try await gateway().run { client in
      let token = try await client.register().token
      let cookie = ("Cookie", "moongate=\(token)")
      #expect(
        try await client.call(
          .post, "/api/auth/logout", "{}", headers: [cookie, ("Origin", "https://evil.example.com")]
        ).problem()
          == "origin_refused")
      #expect(
        try await client.call(.post, "/api/auth/logout", "{}", headers: [cookie, ("Origin", Self.page)]).status == 204)
    }
  }

  @Test(
    arguments: [
      "null", "https://spa.example.com.evil.com", "https://evilspa.example.com", "https://xspa.example.com",
      "https://spa.example.com:8443",
      "http://spa.example.com", "https://SPA.example.com", "https://spa.example.com/", "https://spa.example.co", "*",
      "",
      "https://spa.example.com ,x",
      "https://sub.spa.example.com",
    ])
  func otherOriginsAreRefused(_ origin: String) async throws {
    try await gateway().run { client in
      let ask = [("Origin", origin), ("Access-Control-Request-Method", "POST")]
      let preflight = try await client.send(.options, "/api/auth/flows", headers: ask)
      #expect(preflight.status == 405)
      let answer = try await client.call(.get, "/api/auth/session", headers: [("Origin", origin)])
      for answer in [preflight, answer] {
        #expect(answer.header("Access-Control-Allow-Origin") == nil)
        #expect(answer.header("Access-Control-Allow-Credentials") == nil)
        #expect(answer.header("Vary") == "Origin")
      }
      let token = try await client.register().token
      let signOut = try await client.call(
        .delete, "/api/auth/session", headers: [("Cookie", "moongate=\(token)"), ("Origin", origin)])
      #expect(signOut.problem() == "origin_refused")
    }
  }

  @Test func duplicateOriginHeadersAreIgnored() async throws {
    try await gateway(["https://a.example.com", Self.page]).run { client in
      let answer = try await client.call(
        .get, "/api/auth/session", headers: [("Origin", Self.page), ("Origin", "https://a.example.com")])
      #expect(answer.header("Access-Control-Allow-Origin") == nil)
    }
  }

  @Test func pagesAndOtherAddressesHaveNoCORSHeaders() async throws {
    try await gateway().run { client in
      for path in ["/auth/login", "/.well-known/moongate/jwks.json"] {
        let answer = try await client.send(.get, path, headers: [("Origin", Self.page), ("Accept", "text/html")])
        #expect(answer.status == 200)
        #expect(answer.header("Access-Control-Allow-Origin") == nil)
      }
      let ask = [("Origin", Self.page), ("Access-Control-Request-Method", "POST")]
      #expect(try await client.send(.options, "/auth/login", headers: ask).status == 405)
      let headers = [
        ("Origin", Self.page), ("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "text/html"),
      ]
      #expect(try await client.send(.post, "/auth/logout", headers: headers, body: "").status == 403)
    }
  }

  @Test func withoutOriginsNoHeaderIsSent() async throws {
    try await gateway([]).run { client in
      let answer = try await client.call(.get, "/api/auth/session", headers: [("Origin", Self.page)])
      #expect(answer.header("Vary") == nil)
      #expect(answer.header("Access-Control-Allow-Origin") == nil)
    }
  }
}
