import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Access tokens in the data path, byte by byte.
@Suite(.timeLimit(.minutes(2))) struct TokenTests {
  /// A gateway with routes for service tokens, for `ci` alone, for personal tokens, for users, and an open one.
  private func gateway(_ change: (inout GatewaySettings) -> Void = { _ in }) async throws -> (
    TestGateway, RecordingUpstream
  ) {
    let upstream = try await RecordingUpstream()
    let ports = [upstream.port]
    var settings = GatewaySettings.test()
    change(&settings)
    let routes: [Route] = [
      .test("/any/**", ports: ports, tokens: .services),
      .test("/ci/**", ports: ports, tokens: RouteTokens(names: ["ci"])),
      .test("/own/**", ports: ports, tokens: RouteTokens(takesPersonal: true)),
      .test("/strict/**", ports: ports, requirement: .passed("pin", within: nil), tokens: .services),
      .test("/open/**", ports: ports, open: true),
      .test("/people/**", ports: ports),
    ]
    return (try await TestGateway(routes: routes, settings: settings), upstream)
  }

  private static func basic(_ pair: String) -> String {
    "Authorization: Basic \(Data(pair.utf8).base64EncodedString())"
  }

  private func get(_ gateway: TestGateway, _ path: String, _ fields: String...) async throws -> String {
    let lines = ["GET \(path) HTTP/1.1", "Host: localhost"] + fields
    return try await gateway.talk(lines.joined(separator: "\r\n") + "\r\n\r\n")
  }

  private func status(_ answer: String) -> Int { Int(answer.dropFirst(9).prefix(3)) ?? 0 }

  @Test func bearerAndBasicAuthenticateTheToken() async throws {
    let (gateway, upstream) = try await gateway()
    let token = try await gateway.token()
    for field in [
      "Authorization: Bearer \(token.text)", "authorization: bearer  \(token.text)", Self.basic("any:\(token.text)"),
      Self.basic(":\(token.text)"),
      Self.basic("user@example.com:\(token.text)"),
      "Authorization: basic \(Data("x:\(token.text)".utf8).base64EncodedString())",
    ] {
      #expect(status(try await get(gateway, "/any/x", field)) == 200, "\(field)")
    }
    let seen = upstream.all
    #expect(seen.contains("Remote-User: token:ci\r\n"))
    #expect(!seen.contains("mgt_") && !seen.lowercased().contains("authorization:"), "the token goes nowhere")
    let assertion = try #require(seen.firstMatch(of: /X-Moongate-Assertion: [^.]+\.([^.]+)\./)).output.1
    let claims = try #require(
      try JSONSerialization.jsonObject(with: Data(Base64URL.decode(String(assertion)) ?? [])) as? [String: Any])
    #expect(claims["sub"] as? String == "token:ci" && claims["amr"] as? [String] == ["token"])
    await gateway.stop()
  }

  @Test func routeAcceptsOnlyItsNamedTokens() async throws {
    let (gateway, upstream) = try await gateway()
    let (ci, other) = (try await gateway.token("ci"), try await gateway.token("other"))
    #expect(status(try await get(gateway, "/ci/x", "Authorization: Bearer \(ci.text)")) == 200)
    let refused = try await get(gateway, "/ci/x", "Authorization: Bearer \(other.text)")
    #expect(status(refused) == 403 && refused.contains("\"code\":\"denied\""))
    #expect(
      status(try await get(gateway, "/own/x", "Authorization: Bearer \(ci.text)")) == 403,
      "a service token has no owner")
    // Attack: a token satisfies a requirement on the session.
    let strict = try await get(gateway, "/strict/x", "Authorization: Bearer \(ci.text)", "Accept: text/html")
    #expect(status(strict) == 403 && !strict.contains("Location:"))
    let told = try await get(gateway, "/strict/x", "Authorization: Bearer \(ci.text)")
    #expect(status(told) == 403 && told.contains("\"code\":\"step_up_required\""))
    #expect(!upstream.all.contains("/strict/"))
    await gateway.stop()
  }

  /// Attack: a token on a route for users or on an open route, whose service would receive it.
  @Test func routesForPeopleTakeNoTokenAndNoServiceSeesOne() async throws {
    let (gateway, upstream) = try await gateway()
    let token = try await gateway.token()
    let cookie = "Cookie: moongate=\(TestGateway.token)"
    for field in ["Authorization: Bearer \(token.text)", Self.basic("any:\(token.text)")] {
      let people = try await get(gateway, "/people/x", field)
      #expect(status(people) == 401 && !people.contains("WWW-Authenticate"))
      #expect(status(try await get(gateway, "/open/x", field)) == 200)
    }
    #expect(status(try await get(gateway, "/people/x", cookie, Self.basic("any:\(token.text)"))) == 200)
    #expect(
      !upstream.all.contains("mgt_") && !upstream.all.contains(Data("any:\(token.text)".utf8).base64EncodedString()))
    // Values that are not our tokens are forwarded, as usual.
    #expect(status(try await get(gateway, "/people/x", cookie, Self.basic("me:secret"))) == 200)
    #expect(status(try await get(gateway, "/any/x", cookie, Self.basic("me:secret"))) == 200)
    #expect(upstream.all.components(separatedBy: Self.basic("me:secret")).count == 3)
    await gateway.stop()
  }

  @Test func unauthorizedNamesTheSchemeAndRedirectsBrowsersToSignIn() async throws {
    let (gateway, _) = try await gateway()
    let answer = try await get(gateway, "/any/x")
    #expect(status(answer) == 401 && answer.components(separatedBy: "WWW-Authenticate:").count == 2)
    #expect(answer.contains("\r\nWWW-Authenticate: Basic realm=\"localhost\", charset=\"UTF-8\", Bearer\r\n"))
    #expect(
      try await get(gateway, "/any/x", "Accept: text/html").hasPrefix(
        "HTTP/1.1 302 Found\r\nLocation: /auth/login?return_to=%2Fany%2Fx"))
    let wrong = try await get(
      gateway, "/any/x", "Accept: text/html", "Authorization: Bearer mgt_\(String(repeating: "x", count: 43))")
    #expect(status(wrong) == 401, "a client that sends a token is not a browser")
    await gateway.stop()
  }

  /// Attack: tokens that are almost right.
  @Test func almostValidTokensAreRefused() async throws {
    let (gateway, upstream) = try await gateway()
    let token = try await gateway.token()
    let other = try KeyRing(master: Array(repeating: 9, count: 32))
    let foreign = AccessTokenSecret(from: SystemRandom()).text
    #expect(
      other.accessTokenHash(foreign) != gateway.keys.accessTokenHash(foreign), "another gateway's hash is another one")
    let wrong = [
      String(token.text.dropLast()), token.text + "A", token.text.replacing("mgt_", with: "MGT_"), "mgt_",
      "mgt_" + token.text,
      String(token.text.dropFirst(4)), foreign.reveal(), token.text.dropLast() + "=", token.text.dropLast() + " x",
    ]
    for text in wrong {
      for field in ["Authorization: Bearer \(text)", Self.basic("any:\(text)")] {
        let answer = try await get(gateway, "/any/x", field)
        #expect(status(answer) == 401 && answer.contains("\"code\":\"unauthenticated\""), "\(field)")
      }
    }
    for field in [
      "X-Token: \(token.text)", "Proxy-Authorization: Bearer \(token.text)", Self.basic("\(token.text):"),
      Self.basic("a:b:\(token.text)"),
    ] {
      #expect(status(try await get(gateway, "/any/x", field)) == 401, "\(field)")
    }
    #expect(
      status(try await get(gateway, "/any/x?access_token=\(token.text)&token=\(token.text)")) == 401, "not in the query"
    )
    #expect(upstream.all == "")
    await gateway.stop()
  }

  /// Attack: two credentials in one request, of which two programs use different ones.
  @Test func severalCredentialsAreRefused() async throws {
    let (gateway, upstream) = try await gateway()
    let token = try await gateway.token()
    let bearer = "Authorization: Bearer \(token.text)"
    let cookie = "Cookie: moongate=\(TestGateway.token)"
    for fields in [
      [bearer, bearer], [bearer, Self.basic("any:\(token.text)")], [cookie, bearer],
      [cookie, Self.basic("any:\(token.text)")],
      ["Cookie: moongate=a; moongate=b", bearer],
      ["Cookie: moongate=\(String(repeating: "X", count: 43))", Self.basic("any:\(token.text)")],
    ] {
      let answer = try await gateway.talk(
        "GET /any/x HTTP/1.1\r\nHost: localhost\r\n\(fields.joined(separator: "\r\n"))\r\n\r\n")
      #expect(status(answer) == 400 && answer.contains("\"code\":\"bad_request\""), "\(fields)")
    }
    #expect(upstream.all == "")
    await gateway.stop()
  }

  @Test func malformedBasicCredentialIsReported() async throws {
    let (gateway, upstream) = try await gateway()
    let token = try await gateway.token()
    let right = Data("any:\(token.text)".utf8).base64EncodedString()
    for value in [
      "Basic", "Basic ", "Basic !!!!", "Basic \(right.dropLast())", "Basic \(right)=", "Basic \(right) ",
      "Basic \(right.dropLast(2))\u{7e}\u{7e}",
      "Basic \(Data("no colon".utf8).base64EncodedString())",
      "Basic \(Data("nul\0:\(token.text)".utf8).base64EncodedString())",
      "Basic \(Data("line\r\n:\(token.text)".utf8).base64EncodedString())",
      "Basic \(Data("\(String(repeating: "u", count: 6000)):\(token.text)".utf8).base64EncodedString())",
      "Basic YWI6bWd0XwB=",
    ] {
      let answer = try await get(gateway, "/any/x", "Authorization: \(value)")
      if value == "Basic \(right) " {
        #expect(status(answer) == 200, "trailing space is not part of the value")
      } else {
        #expect(status(answer) == 400 && answer.contains("cannot be read as Basic"), "\(value.prefix(40)): \(answer)")
      }
    }
    #expect(upstream.received.joined().components(separatedBy: "GET /any").count <= 2)
    await gateway.stop()
  }

  @Test func tokenExpiresToTheMillisecond() async throws {
    let (gateway, _) = try await gateway()
    let token = try await gateway.token(expires: "10s")
    let bearer = "Authorization: Bearer \(token.text)"
    gateway.clock.advance(by: .milliseconds(9_999))
    try await Task.sleep(for: .milliseconds(10))
    #expect(status(try await get(gateway, "/any/x", bearer)) == 200)
    gateway.clock.advance(by: .milliseconds(1))
    // The event loops read the clock again after a few milliseconds.
    try await Task.sleep(for: .milliseconds(10))
    #expect(status(try await get(gateway, "/any/x", bearer)) == 401)
    await gateway.stop()
  }

  @Test func aRevokedTokenIsForgottenOnEveryEventLoop() async throws {
    let (gateway, _) = try await gateway()
    let token = try await gateway.token()
    let bearer = "Authorization: Bearer \(token.text)"
    for _ in 0..<20 { #expect(status(try await get(gateway, "/any/x", bearer)) == 200) }
    try await gateway.tokens.revoke("ci")
    await gateway.announce(token.id)
    for _ in 0..<20 { #expect(status(try await get(gateway, "/any/x", bearer)) == 401) }
    await gateway.stop()
  }

  @Test func oldSecretIsAcceptedDuringTheOverlap() async throws {
    let (gateway, _) = try await gateway()
    let old = try await gateway.token()
    let new = try await gateway.tokens.rotate("ci", overlap: .seconds(10))
    await gateway.announce(old.id)
    for text in [old.text, new.secret.reveal()] {
      #expect(status(try await get(gateway, "/ci/x", "Authorization: Bearer \(text)")) == 200)
    }
    gateway.clock.advance(by: .seconds(10))
    try await Task.sleep(for: .milliseconds(10))
    #expect(status(try await get(gateway, "/ci/x", "Authorization: Bearer \(old.text)")) == 401)
    #expect(status(try await get(gateway, "/ci/x", "Authorization: Bearer \(new.secret.reveal())")) == 200)
    await gateway.stop()
  }

  /// Attack: a leaked token is used outside its networks. The response does not reveal that it is valid elsewhere.
  @Test func aTokenIsBoundToItsNetworks() async throws {
    let (gateway, _) = try await gateway { $0.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)] }
    let token = try await gateway.token(networks: ["203.0.113.0/24"])
    let bearer = "Authorization: Bearer \(token.text)"
    #expect(status(try await get(gateway, "/any/x", bearer, "X-Forwarded-For: 203.0.113.9")) == 200)
    let elsewhere = try await get(gateway, "/any/x", bearer, "X-Forwarded-For: 198.51.100.1")
    #expect(status(elsewhere) == 401 && elsewhere.contains("It may have expired or been revoked"))
    await gateway.stop()
  }

  /// Attack: endless wrong tokens, to lock out the right one or other users of the address.
  @Test func wrongTokensLockOnlyTheirAddressAndOnlyForTokens() async throws {
    let (gateway, _) = try await gateway { $0.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)] }
    let token = try await gateway.token()
    let right = "Authorization: Bearer \(token.text)"
    let (mallory, office) = ("X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 203.0.113.9")
    for count in 0..<60 {
      let wrong = "Authorization: Bearer \(AccessTokenSecret(from: SystemRandom()).text.reveal())"
      #expect(status(try await get(gateway, "/any/x", wrong, mallory)) == 401, "\(count)")
    }
    for field in [right, "Authorization: Bearer mgt_\(String(repeating: "x", count: 43))"] {
      let locked = try await get(gateway, "/any/x", field, mallory)
      #expect(
        status(locked) == 429 && locked.contains("\"code\":\"too_many_attempts\"")
          && locked.contains("Retry-After: 900"))
    }
    #expect(status(try await get(gateway, "/any/x", right, office)) == 200, "the right token from another address")
    #expect(
      status(try await get(gateway, "/any/x", "Cookie: moongate=\(TestGateway.token)", mallory)) == 200,
      "a person at that address")
    #expect(
      status(try await get(gateway, "/any/x", "Authorization: Bearer \(TestGateway.token)", mallory)) == 200,
      "with a session's Bearer too")
    #expect(try await gateway.store.locks(at: gateway.clock.now()).map(\.provider) == [.token])
    gateway.clock.advance(by: .seconds(900))
    try await Task.sleep(for: .milliseconds(10))
    #expect(status(try await get(gateway, "/any/x", right, mallory)) == 200)
    await gateway.stop()
  }

  @Test func repeatedTokenUseIsOneEvent() async throws {
    let (gateway, _) = try await gateway()
    let token = try await gateway.token()
    for _ in 0..<20 { #expect(status(try await get(gateway, "/any/x", "Authorization: Bearer \(token.text)")) == 200) }
    await gateway.proxy.flushActivity()
    let found = try #require(try await gateway.store.accessToken(token.id)?.token)
    #expect(found.lastUsedAt != nil && found.lastUsedFrom == "127.0.0.0/24")
    #expect(try await gateway.store.events(limit: 100).count { $0.kind == .tokenUsed } == 1)
    await gateway.stop()
  }

  /// Attack: a socket that stays open after its token was revoked.
  @Test func aTunnelEndsWithItsToken() async throws {
    let upstream = try await RecordingUpstream { received in
      received.contains("\r\n\r\n")
        ? .answer("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n") : nil
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], upgrade: true, tokens: .services)])
    let (token, brief) = (try await gateway.token(), try await gateway.token("brief", expires: "60s"))
    let open = { (text: String) in
      let client = try await RawClient(port: gateway.port)
      try await client.send(
        "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer \(text)\r\n\r\n"
      )
      return client
    }
    let (revoked, expired) = (try await open(token.text), try await open(brief.text))
    try await until { upstream.received.count == 2 }
    try await gateway.tokens.revoke("ci")
    await gateway.announce(token.id)
    let first = try await revoked.read(for: 5)
    #expect(first.text.hasPrefix("HTTP/1.1 101") && first.ended)
    gateway.clock.advance(by: .seconds(60))
    let second = try await expired.read(for: 5)
    #expect(second.text.hasPrefix("HTTP/1.1 101") && second.ended)
    await gateway.stop()
  }

  @Test(arguments: ForwardAuthTests.dialects) func forwardAuthAcceptsTokensAndRemovesThem(_ dialect: String)
    async throws
  {
    let (gateway, _) = try await gateway { $0.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)] }
    let token = try await gateway.token()
    let ask = { (path: String, more: String) in
      try await gateway.talk(ForwardAuthTests.text(ForwardAuthTests.question(dialect, "GET", path), more))
    }
    let removed =
      dialect == "envoy" ? "X-Envoy-Auth-Headers-To-Remove: authorization\r\n" : "X-Moongate-Authorization: remove\r\n"
    for field in ["Authorization: Bearer \(token.text)\r\n", Self.basic("any:\(token.text)") + "\r\n"] {
      let yes = try await ask("/any/x", field)
      #expect(status(yes) == 200 && yes.contains("Remote-User: token:ci\r\n") && !yes.contains("mgt_"))
      #expect(dialect == "traefik" ? !yes.contains("Authorization:") : yes.contains(removed), "\(yes)")
      let open = try await ask("/open/x", field)
      #expect(status(open) == 200 && (dialect == "traefik" ? !open.contains("Authorization:") : open.contains(removed)))
    }
    let own = try await ask("/open/x", Self.basic("me:secret") + "\r\n")
    #expect(
      dialect == "traefik" ? own.contains(Self.basic("me:secret")) : !own.contains("uthorization"),
      "what is the service's own is passed on")
    let no = try await ask("/any/x", "Authorization: Bearer mgt_\(String(repeating: "x", count: 43))\r\n")
    #expect(status(no) == 401 && no.components(separatedBy: "WWW-Authenticate:").count == 2)
    #expect(no.contains("\r\nWWW-Authenticate: Basic realm=\"localhost\", charset=\"UTF-8\", Bearer\r\n"))
    #expect(!(try await ask("/people/x", "")).contains("WWW-Authenticate"))
    await gateway.stop()
  }
}
