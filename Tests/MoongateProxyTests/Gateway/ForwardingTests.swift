import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Forwarded requests and their responses.
@Suite(.timeLimit(.minutes(2))) struct ForwardingTests {
  private let cookie = "Cookie: moongate=\(TestGateway.token)\r\n"

  @Test func aSignedInRequestReachesItsUpstreamWithIdentity() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    let answer = try await gateway.talk(
      "GET /a/b?c=d HTTP/1.1\r\nHost: localhost\r\nX-App: 1\r\nCookie: a=b; moongate=\(TestGateway.token); c=d\r\nX-End: 2\r\n\r\n"
    )
    #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
    #expect(answer.hasSuffix("\r\n\r\nhello"))
    let seen = upstream.all
    #expect(seen.hasPrefix("GET /a/b?c=d HTTP/1.1\r\nHost: localhost\r\nX-App: 1\r\nCookie: a=b; c=d\r\nX-End: 2\r\n"))
    for line in [
      "Remote-User: ac_alice", "Remote-Phone: +919999999999", "Remote-Email: alice@example.com", "Remote-Name: Alice",
      "X-Forwarded-For: 127.0.0.1",
      "X-Forwarded-Proto: http", "X-Forwarded-Host: localhost", "X-Moongate-Assertion: ey",
    ] { #expect(seen.contains("\r\n\(line)"), "\(line)") }
    #expect(!seen.contains(TestGateway.token))
    await gateway.stop()
  }

  @Test func unverifiedIdentifiersAreNotPassedOn() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    let token = String(repeating: "U", count: 43)
    gateway.sessions.put(
      token,
      TestGateway.snapshot(
        token: token, clock: gateway.clock, name: "Eve\r\nX-Evil: 1\u{0}\u{7f}", emailVerified: false))
    _ = try await gateway.talk("GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: bearer \(token)\r\n\r\n")
    #expect(!upstream.all.contains("Remote-Email"))
    #expect(!upstream.all.contains("\r\nX-Evil"))
    #expect(upstream.all.contains("\r\nRemote-Name: EveX-Evil: 1\r\n"))
    #expect(!upstream.all.contains("uthorization"))
    await gateway.stop()
  }

  /// Identity headers of clients, in any spelling, are replaced by the gateway's.
  @Test func everyIdentityHeaderOfTheClientIsRemoved() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], headers: [("X-Tenant", "demo")])])
    let names = [
      "Remote-User", "remote_user", "REMOTE.USER", "Remote-Email", "Remote-Groups", "X-Forwarded-For",
      "x_forwarded_for", "X-Forwarded-Host",
      "X-Forwarded-Proto",
      "X-Forwarded-User", "Forwarded", "X-Real-IP", "X_Real_IP", "X-Moongate-Assertion", "X.Moongate.Assertion",
      "X-Original-URL",
      "X-Original-Method",
      "X-Rewrite-URL", "X-HTTP-Method-Override", "Proxy", "True-Client-IP", "X-Client-IP", "X-Remote-User", "X-Tenant",
      "x_tenant", "Keep-Alive",
      "TE", "Trailer",
      "Proxy-Connection", "Proxy-Authorization", "X-Mine", "X-Forwarded", "X-HTTP-Method", "x_http_method",
      "X-Method-Override", "X-WEBAUTH-USER",
      "x_webauth_role", "Moongate-Device", "moongate_device", "HTTP2-Settings",
    ]
    let forged = names.flatMap { ["\($0): mallory", "\($0): mallory"] }.joined(separator: "\r\n")
    let text =
      "POST /x HTTP/1.1\r\nHost: localhost\r\n\(forged)\r\nConnection: X-Mine, Remote-User, X-Moongate-Assertion, X-Tenant, Host\r\n\(cookie)Transfer-Encoding: chunked\r\n\r\n"
      + "3\r\nabc\r\n0\r\nRemote-User: mallory\r\nX-Moongate-Assertion: mallory\r\n\r\n"
    let answer = try await gateway.talk(text)
    #expect(answer.hasPrefix("HTTP/1.1 200"))
    let seen = upstream.all
    #expect(!seen.contains("mallory"))
    #expect(seen.components(separatedBy: "Remote-User").count == 2)
    #expect(seen.contains("\r\nRemote-User: ac_alice\r\n"))
    #expect(seen.contains("\r\nX-Tenant: demo\r\n"))
    #expect(seen.contains("\r\nHost: localhost\r\n"))
    #expect(seen.hasSuffix("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"))
    await gateway.stop()
  }

  @Test func openRoutesPassWithAndWithoutASession() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    #expect(
      try await gateway.talk("GET /one HTTP/1.1\r\nHost: localhost\r\nRemote-User: root\r\n\r\n").hasPrefix(
        "HTTP/1.1 200"))
    #expect(!upstream.all.contains("Remote-") && !upstream.all.contains("Assertion"))
    #expect(try await gateway.talk("GET /two HTTP/1.1\r\nHost: localhost\r\n\(cookie)\r\n").hasPrefix("HTTP/1.1 200"))
    #expect(upstream.all.contains("Remote-User: ac_alice"))
    await gateway.stop()
  }

  /// A Bearer value that is not a session token is forwarded.
  @Test func foreignBearerTokensAreForwarded() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    _ = try await gateway.talk(
      "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer eyJhbGciOiJIUzI1NiJ9.e30.x\r\n\r\n")
    #expect(upstream.all.contains("\r\nAuthorization: Bearer eyJhbGciOiJIUzI1NiJ9.e30.x\r\n"))
    await gateway.stop()
  }

  @Test func assertionsAreSignedByThePublishedKey() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    _ = try await gateway.talk("GET / HTTP/1.1\r\nHost: LOCALHOST:80\r\n\(cookie)\r\n")
    let line = try #require(
      upstream.all.components(separatedBy: "\r\n").first { $0.hasPrefix("X-Moongate-Assertion: ") })
    let parts = line.dropFirst("X-Moongate-Assertion: ".count).split(separator: ".").map { part in
      var text = part.replacing("-", with: "+").replacing("_", with: "/")
      while text.count % 4 != 0 { text += "=" }
      return Data(base64Encoded: String(text)) ?? Data()
    }
    let claims = try #require(try JSONSerialization.jsonObject(with: parts[1]) as? [String: Any])
    let now = Int(gateway.clock.now().seconds)
    #expect(claims["iss"] as? String == "http://localhost:8080")
    #expect(claims["aud"] as? String == "localhost")
    #expect(claims["sub"] as? String == "ac_alice")
    #expect(claims["amr"] as? [String] == ["phone_otp"])
    #expect(claims["iat"] as? Int == now)
    #expect(claims["exp"] as? Int == now + 300)
    #expect(claims["auth_time"] as? Int == now)
    let header = try #require(try JSONSerialization.jsonObject(with: parts[0]) as? [String: String])
    let keys = try #require(
      try JSONSerialization.jsonObject(with: Data(gateway.proxy.keySet.utf8)) as? [String: [[String: String]]])
    #expect(keys["keys"]?.first?["kid"] == header["kid"] && header["alg"] == "ES256")
    let signed = line.dropFirst("X-Moongate-Assertion: ".count).split(separator: ".").prefix(2).joined(separator: ".")
    #expect(try verify(Data(signed.utf8), parts[2], gateway.keys))
    await gateway.stop()
  }

  @Test func upstreamCannotSetGatewayCookies() async throws {
    let upstream = try await RecordingUpstream { _ in
      .answer(
        "HTTP/1.1 200 OK\r\nSet-Cookie: moongate=evil\r\nSet-Cookie: a=b\r\nset-cookie: __Host-moongate=evil; Path=/\r\nSet-Cookie: =moongate=evil\r\nSet-Cookie: moongate-flow =evil\r\nSet-Cookie: moongates=fine\r\nKeep-Alive: 5\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 0\r\n\r\n"
      )
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    let answer = try await gateway.talk("GET / HTTP/1.1\r\nHost: localhost\r\n\(cookie)\r\n")
    #expect(!answer.contains("evil") && !answer.contains("X-Hop") && !answer.contains("Keep-Alive"))
    #expect(answer.contains("Set-Cookie: a=b\r\n") && answer.contains("Set-Cookie: moongates=fine\r\n"))
    await gateway.stop()
  }

  @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
    let upstream = try await RecordingUpstream { received in
      guard RecordingUpstream.isComplete(received) else { return nil }
      let path = received.split(separator: " ")[1]
      return .answer("HTTP/1.1 200 OK\r\nContent-Length: \(path.utf8.count)\r\n\r\n\(path)")
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    var text = ""
    for index in 0..<20 {
      text +=
        index % 3 == 1
        ? "POST /auth/own\(index) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi"
        : "GET /p\(index) HTTP/1.1\r\nHost: localhost\r\n\(cookie)\r\n"
    }
    let answer = try await gateway.talk(text, answers: 20)
    var rest = answer[...]
    for index in 0..<20 {
      let wanted = index % 3 == 1 ? "own POST /auth/own\(index) localhost hi" : "/p\(index)"
      let found = try #require(rest.range(of: "\r\n\r\n\(wanted)"), "\(index)")
      #expect(!rest[..<found.lowerBound].dropFirst(4).contains("\r\n\r\n"), "\(index)")
      rest = rest[found.upperBound...]
    }
    #expect(upstream.received.count == 1, "one connection serves them all")
    await gateway.stop()
  }

  @Test(
    arguments: [
      (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: v\r\n\r\n", "GET", "1.1",
        "\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
      ),
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "GET", "1.0", "\r\n\r\nabc"),
      (
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", "HEAD", "1.1",
        "Content-Length: 10\r\nConnection: close\r\n\r\n"
      ),
      (
        "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "GET", "1.1",
        "204 No Content\r\nDate: Fri, 20 Nov 2026 12:00:00 GMT\r\nConnection: close\r\n\r\n"
      ),
      (
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: x\r\n\r\n", "GET", "1.1",
        "Content-Length: 9\r\nConnection: close\r\n\r\n"
      ),
      (
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz",
        "GET", "1.1",
        "\r\n\r\nz"
      ),
    ]) func answersAreFramed(_ upstreamSays: String, _ method: String, _ version: String, _ end: String) async throws
  {
    let upstream = try await RecordingUpstream { RecordingUpstream.isComplete($0) ? .answer(upstreamSays) : nil }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    let answer = try await gateway.talkToEnd(
      "\(method) / HTTP/\(version)\r\nHost: localhost\r\nConnection: close\r\n\(cookie)\r\n", for: 3)
    #expect(answer.ended)
    #expect(answer.text.hasSuffix(end), "\(answer.text.debugDescription)")
    #expect(!answer.text.contains("103") && !answer.text.contains("100 Continue"))
    await gateway.stop()
  }

  @Test func anAnswerThatEndsWithItsConnectionIsChunked() async throws {
    let upstream = try await RecordingUpstream { _ in .answerAndClose("HTTP/1.1 200 OK\r\n\r\nuntil the end") }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    let answer = try await gateway.talkToEnd("GET / HTTP/1.1\r\nHost: localhost\r\n\(cookie)Connection: close\r\n\r\n")
    #expect(answer.text.contains("Transfer-Encoding: chunked\r\n"))
    #expect(answer.text.hasSuffix("\r\n\r\nd\r\nuntil the end\r\n0\r\n\r\n"))
    await gateway.stop()
  }

  @Test func bigBodiesStreamBothWays() async throws {
    let size = 5_000_000
    let body = String(repeating: "0123456789", count: size / 10)
    let upstream = try await RecordingUpstream { received in
      RecordingUpstream.isComplete(received)
        ? .answer("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n" + body) : nil
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    let client = try await RawClient(port: gateway.port)
    try await client.send(
      "PUT /big HTTP/1.1\r\nHost: localhost\r\n\(cookie)Content-Length: 60000\r\n\r\n" + body.prefix(60000))
    let answer = try await client.read(for: 20) { $0.utf8.count > size }
    #expect(answer.text.hasSuffix(body.suffix(1000)))
    #expect(answer.text.utf8.count > size && answer.text.utf8.count < size + 500)
    #expect(upstream.all.hasSuffix(body.prefix(60000)))
    await gateway.stop()
  }

  @Test func expectIsForwardedAndIts100Returned() async throws {
    let upstream = try await RecordingUpstream { received in
      if received.hasSuffix("\r\n\r\n") { return .answer("HTTP/1.1 100 Continue\r\n\r\n") }
      return received.hasSuffix("body") ? .answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") : nil
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    let client = try await RawClient(port: gateway.port)
    try await client.send(
      "POST / HTTP/1.1\r\nHost: localhost\r\n\(cookie)Content-Length: 4\r\nExpect: 100-continue\r\n\r\n")
    #expect(try await client.read { $0.hasSuffix("\r\n\r\n") }.text == "HTTP/1.1 100 Continue\r\n\r\n")
    try await client.send("body")
    #expect(try await client.answers().hasSuffix("ok"))
    // A refusal sends no 100 and closes the connection.
    let refused = try await gateway.talkToEnd(
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
    #expect(refused.text.hasPrefix("HTTP/1.1 401") && refused.ended)
    await gateway.stop()
  }

  @Test(arguments: [
    ["GET /1", "GET /2", "GET /3"], ["GET /auth/1", "GET /2", "GET /auth/3"], ["POST /1", "POST /auth/2", "POST /3"],
  ]) func halfClosedClientReceivesAllResponses(_ lines: [String]) async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    let client = try await RawClient(port: gateway.port)
    let requests = lines.map { line in
      "\(line) HTTP/1.1\r\nHost: localhost\r\n" + (line.hasPrefix("POST") ? "Content-Length: 4\r\n\r\nbody" : "\r\n")
    }
    // The last request is incomplete and is dropped.
    try await client.send(requests.joined() + "POST /cut HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbo")
    client.endSending()
    let answer = try await client.read()
    #expect(answer.ended && answer.text.components(separatedBy: "HTTP/1.1 200 OK").count == 4, "\(answer.text)")
    await gateway.stop()
  }

  @Test func decodingContinuesAfterARefusedUpgrade() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    let answer = try await gateway.talk(
      "GET /one HTTP/1.1\r\nHost: localhost\r\n\(cookie)Upgrade: h2c\r\n\r\nGET /two HTTP/1.1\r\nHost: localhost\r\n\(cookie)\r\nGET /three HTTP/1.1\r\nHost: localhost\r\n\(cookie)Connection: upgrade\r\nUpgrade: websocket\r\n\r\nGET /four HTTP/1.1\r\nHost: localhost\r\n\(cookie)\r\n",
      answers: 4)
    #expect(answer.components(separatedBy: "HTTP/1.1 200 OK").count == 4)
    #expect(answer.components(separatedBy: "HTTP/1.1 403 Forbidden").count == 2)
    #expect(!upstream.all.lowercased().contains("upgrade") && !upstream.all.contains("/three"))
    await gateway.stop()
  }
}
