import Foundation
import HTTPTypes
import MoongateCore
import MoongateTesting
import Testing

/// Sessions by cookie and by Bearer token.
@Suite struct SessionCookieTests {
  @Test func cookiesOfEveryDamagedShape() async throws {
    try await HTTPGateway().run { client in
      let token = try await client.register().token
      let good = "moongate=\(token)"
      for cookie in [
        good, "a=b; \(good)", "\(good);c", " \(good) ", "x; \(good); y=", "a=;\(good)", "moongatex=1; \(good)",
      ] {
        #expect(
          try await client.call(.get, "/api/auth/session", headers: [("Cookie", cookie)]).status == 200, "\(cookie)")
      }
      let other = String(repeating: "A", count: 43)
      for cookie in [
        "moongate=", "moongate", "moongate=\(token.dropLast())", "moongate=\(token)A", "moongate=\(other)",
        "moongate=\"\(token)\"",
        "moongate=\(token)=", "moongate=\(token)%20",
        "moongate=\(String(repeating: "x", count: 20_000))", "moongate=é", "Moongate=\(token)",
        "__Host-moongate=\(token)",
        "__Secure-moongate=\(token)", "=moongate=\(token)",
        "\(good); moongate=\(token)", "\(good); moongate=\(other)", "moongate=; \(good)", "\(good), moongate=\(token)",
        "moongate=\(token),x",
        "moongate-flow=\(token)", "moongate=..%2f", ";;;", "",
      ] {
        let answer = try await client.call(.get, "/api/auth/session", headers: [("Cookie", cookie)])
        #expect(answer.status == 401, "\(cookie)")
        #expect(answer.problem() == "unauthenticated")
      }
      // Two Cookie fields, as HTTP/2 clients send them, form one list.
      #expect(
        try await client.call(.get, "/api/auth/session", headers: [("Cookie", "a=b"), ("Cookie", good)]).status == 200)
      #expect(
        try await client.call(.get, "/api/auth/session", headers: [("Cookie", good), ("Cookie", good)]).status == 401)
    }
  }

  @Test func bearer() async throws {
    try await HTTPGateway().run { client in
      let token = try await client.register().token
      let other = try await client.register("+919999999998").token
      let status = { (headers: [(String, String)]) async throws in
        try await client.call(.get, "/api/auth/session", headers: headers).status
      }
      for value in ["Bearer \(token)", "bearer \(token)", "BEARER   \(token)"] {
        #expect(try await status([("Authorization", value)]) == 200)
      }
      for value in [
        "Bearer", "Bearer ", "Bearer x", "Bearer \(token) ", "Basic \(token)", token, "Bearer\(token)",
        "Bearer \(token),\(token)",
      ]
      where value != "Bearer \(token) " {
        #expect(try await status([("Authorization", value)]) == 401, "\(value)")
      }
      #expect(try await status([("Authorization", "Bearer \(token)"), ("Cookie", "moongate=\(token)")]) == 200)
      // Other authentication schemes are ignored.
      #expect(try await status([("Authorization", "Basic eA=="), ("Cookie", "moongate=\(token)")]) == 200)
      for headers in [
        [("Authorization", "Bearer \(token)"), ("Cookie", "moongate=\(other)")],
        [("Authorization", "Bearer \(token)"), ("Cookie", "moongate=x")],
        [("Authorization", "Bearer \(token)"), ("Authorization", "Bearer \(token)")],
      ] {
        let answer = try await client.call(.get, "/api/auth/session", headers: headers)
        #expect(answer.status == 400)
        #expect(answer.problem() == "bad_request")
      }
    }
  }

  @Test func endingSessions() async throws {
    try await HTTPGateway().run { client in
      let first = try await client.register().token
      client.gateway.clock.advance(by: .seconds(900))
      let flow = try await client.begin()
      let code = try #require(client.gateway.code(for: "+919999999999"))
      let done = try await client.call(
        .post, "/api/auth/flows/\(flow)/submit", #"{"code":"\#(code)"}"#, headers: [("User-Agent", "Phone")])
      let second = try #require((done["session"] as? [String: Any])?["token"] as? String)
      #expect(first != second)
      let bearer = { (token: String) in [("Authorization", "Bearer \(token)")] }
      let list = try await client.call(.get, "/api/auth/sessions", headers: bearer(second))
      #expect(list.text.hasPrefix("["))
      #expect(!list.text.contains(first) && !list.text.contains(second))
      let ids = list.text.components(separatedBy: #""id":""#).dropFirst().map { String($0.prefix { $0 != "\"" }) }
      #expect(ids.count == 2)
      #expect(list.text.components(separatedBy: #""current":true"#).count == 2)
      // Another account's session is reported as not found.
      let stranger = try await client.register("+919999999998").token
      #expect(
        try await client.call(.delete, "/api/auth/sessions/\(ids[0])", headers: bearer(stranger)).problem()
          == "not_found")
      let ended = try await client.call(.delete, "/api/auth/sessions/\(ids[1])", headers: bearer(second))
      #expect(ended.status == 204)
      #expect(ended.setCookies == [])
      #expect(try await client.call(.get, "/api/auth/session", headers: bearer(first)).status == 401)
      #expect(try await client.call(.delete, "/api/auth/sessions/\(ids[1])", headers: bearer(second)).status == 404)
      let out = try await client.call(.delete, "/api/auth/session", headers: bearer(second))
      #expect(out.status == 204)
      #expect(out.setCookies == ["moongate=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"])
      #expect(try await client.call(.get, "/api/auth/session", headers: bearer(second)).status == 401)
      #expect(try await client.call(.delete, "/api/auth/session", headers: bearer(second)).status == 401)
    }
  }

  @Test func sessionsEndByTime() async throws {
    try await HTTPGateway().run { client in
      let token = try await client.register().token
      client.gateway.clock.advance(by: .seconds(3598))
      #expect(
        try await client.call(.get, "/api/auth/session", headers: [("Authorization", "Bearer \(token)")]).status == 200)
      client.gateway.clock.advance(by: .seconds(1))
      #expect(
        try await client.call(.get, "/api/auth/session", headers: [("Authorization", "Bearer \(token)")]).status == 401)
    }
  }

  @Test func originsOfUnsafeCallsWithACookie() async throws {
    try await HTTPGateway().run { client in
      let token = try await client.register().token
      for name in ["moongate=\(token)", "moongate-flow=x", "__Host-moongate-device=x", "moongate="] {
        for origin in [
          nil, "null", "https://evil.example", "http://localhost:8081", "https://localhost:8080",
          "http://localhost:8080.evil.example",
          "http://localhost:8080/", "HTTP://LOCALHOST:8080",
        ] {
          let headers = [("Cookie", name)] + (origin.map { [("Origin", $0)] } ?? [])
          for (method, path) in [
            (HTTPRequest.Method.post, "/api/auth/flows"), (.delete, "/api/auth/session"), (.post, "/api/auth/logout"),
            (.delete, RefusalTests.unknownFlow),
          ] {
            let answer = try await client.call(
              method, path, method == .post ? #"{"flow":"login"}"# : nil, headers: headers)
            #expect(answer.status == 403)
            #expect(answer.problem() == "origin_refused")
            #expect(answer.detail == "This request came from another site and was refused.")
          }
        }
      }
      let cookie = ("Cookie", "moongate=\(token)")
      let twice = [cookie, ("Origin", "http://localhost:8080"), ("Origin", "http://localhost:8080")]
      #expect(try await client.call(.delete, "/api/auth/session", headers: twice).problem() == "origin_refused")
      // None of these requests ended the session. Reading needs no Origin; for a change, the request's own host is
      // accepted.
      #expect(
        try await client.call(.get, "/api/auth/session", headers: [cookie, ("Origin", "https://evil.example")]).status
          == 200)
      #expect(
        try await client.call(.delete, "/api/auth/session", headers: [cookie, ("Origin", "http://localhost")]).status
          == 204)
    }
  }

  @Test(
    arguments: [
      (
        PublicURL(isSecure: false, host: "localhost", port: 8080), nil, "moongate=T; Path=/; HttpOnly; SameSite=Lax",
        ["moongate=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"]
      ),
      (
        PublicURL(isSecure: true, host: "auth.example.com", port: 443), nil,
        "__Host-moongate=T; Path=/; HttpOnly; SameSite=Lax; Secure",
        [
          "__Host-moongate=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0",
          "__Secure-moongate=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0",
        ]
      ),
      (
        PublicURL(isSecure: true, host: "auth.example.com", port: 443), "example.com",
        "__Secure-moongate=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0|__Secure-moongate=T; Path=/; HttpOnly; SameSite=Lax; Secure; Domain=example.com",
        [
          "__Host-moongate=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0",
          "__Secure-moongate=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0",
          "__Secure-moongate=; Path=/; HttpOnly; SameSite=Lax; Secure; Domain=example.com; Max-Age=0",
        ]
      ),
      (
        PublicURL(isSecure: false, host: "auth.example.com", port: 80), nil,
        "moongate=; Path=/; HttpOnly; SameSite=Lax; Domain=auth.example.com; Max-Age=0|moongate=; Path=/; HttpOnly; SameSite=Lax; Domain=example.com; Max-Age=0|moongate=T; Path=/; HttpOnly; SameSite=Lax",
        [
          "moongate=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0",
          "moongate=; Path=/; HttpOnly; SameSite=Lax; Domain=auth.example.com; Max-Age=0",
          "moongate=; Path=/; HttpOnly; SameSite=Lax; Domain=example.com; Max-Age=0",
        ]
      ),
      (
        PublicURL(isSecure: false, host: "127.0.0.1", port: 80), nil, "moongate=T; Path=/; HttpOnly; SameSite=Lax",
        ["moongate=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"]
      ),
    ] as [(PublicURL, String?, String, [String])])
  func namesAndAttributes(_ url: PublicURL, _ domain: String?, _ signIn: String, _ signOut: [String]) {
    let cookies = GatewayCookies(publicURL: url, cookieDomain: domain)
    #expect(cookies.signIn(SecretText("T")).joined(separator: "|") == signIn)
    #expect(cookies.signOut() == signOut)
    let names = Set(GatewayCookies.allNames.map(\.description))
    #expect(names.isSuperset(of: [cookies.session, cookies.flow, cookies.device]))
    let framed = GatewayCookies(publicURL: url, cookieDomain: domain, isFramed: true)
    #expect(framed.isFramed == url.isSecure, "without https, there are only the usual ones")
    #expect(names.isSuperset(of: [framed.session, framed.flow, framed.device]))
    if !url.isSecure { #expect(framed.signIn(SecretText("T")) == cookies.signIn(SecretText("T"))) }
    #expect(
      cookies.begin(SecretText("B"))
        == (url.isSecure
          ? "__Host-moongate-flow=B; Path=/; HttpOnly; SameSite=Lax; Secure"
          : "moongate-flow=B; Path=/; HttpOnly; SameSite=Lax"))
  }

  /// The cookies of frames have names of their own, so that the gateway knows them without `SameSite`.
  @Test func namesAndAttributesOfFrames() {
    let url = PublicURL(isSecure: true, host: "auth.example.com", port: 443)
    let scope = "Path=/; HttpOnly; SameSite=None; Secure; Partitioned"
    let own = GatewayCookies(publicURL: url, cookieDomain: nil, isFramed: true)
    #expect(own.signIn(SecretText("T"), for: .seconds(60)) == ["__Host-moongate-framed=T; \(scope); Max-Age=60"])
    #expect(
      own.signOut() == [
        "__Host-moongate-framed=; \(scope); Max-Age=0", "__Secure-moongate-framed=; \(scope); Max-Age=0",
      ])
    #expect(own.begin(SecretText("B")) == "__Host-moongate-flow-framed=B; \(scope)")
    #expect(own.beginHandoff(SecretText("B")) == [own.begin(SecretText("B"))])
    #expect(own.remember(SecretText("D")).hasPrefix("__Host-moongate-device-framed=D; \(scope); Max-Age="))
    let shared = GatewayCookies(publicURL: url, cookieDomain: "example.com", isFramed: true)
    #expect(
      shared.signIn(SecretText("T")) == [
        "__Secure-moongate-framed=; \(scope); Max-Age=0",
        "__Secure-moongate-framed=T; \(scope); Domain=example.com",
      ])
    #expect(shared.signOut().contains("__Secure-moongate-framed=; \(scope); Domain=example.com; Max-Age=0"))
    let usual = GatewayCookies(publicURL: url, cookieDomain: nil)
    #expect(Set([usual.session, usual.flow, usual.device]).isDisjoint(with: [own.session, own.flow, own.device]))
  }
}
