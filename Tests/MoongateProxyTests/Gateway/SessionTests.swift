import Foundation
import MoongateCore
import MoongateTesting
import NIOCore
import Testing

@testable import MoongateProxy

/// The session cache and its limits.
@Suite(.timeLimit(.minutes(2))) struct SessionTests {
  private func get(_ gateway: TestGateway, token: String = TestGateway.token) async throws -> String {
    try await gateway.talk("GET / HTTP/1.1\r\nHost: localhost\r\nCookie: moongate=\(token)\r\n\r\n")
  }

  @Test func sessionIsReadOncePerEventLoop() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    for _ in 0..<50 { #expect(try await get(gateway).hasPrefix("HTTP/1.1 200")) }
    #expect(gateway.sessions.reads <= ProcessInfo.processInfo.activeProcessorCount + 2)
    await gateway.stop()
  }

  /// A replaced or signed-out token is invalid within a second.
  @Test func signedOutTokenIsRefusedWithinASecond() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    #expect(try await get(gateway).hasPrefix("HTTP/1.1 200"))
    gateway.sessions.end(TestGateway.token)
    let ended = ContinuousClock.now
    var answer = ""
    repeat {
      // On a busy machine the notification may be late. Then the cache is not used: requests a second later are never
      // allowed.
      let asked = ContinuousClock.now - ended
      answer = try await get(gateway)
      #expect(asked < .seconds(1) || !answer.hasPrefix("HTTP/1.1 200"))
    } while !answer.hasPrefix("HTTP/1.1 401")
    await gateway.stop()
  }

  private func change(of token: String) -> SessionChanges {
    SessionChanges(latest: 0, tokens: [TokenHash(of: token.utf8)], accounts: [], isIncomplete: false)
  }

  /// Attack: a stolen token right after its owner signed out on this node.
  @Test func aSessionThatThisProcessEndedIsForgottenOnEveryEventLoopAtOnce() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    for _ in 0..<50 { #expect(try await get(gateway).hasPrefix("HTTP/1.1 200")) }
    gateway.sessions.endUnheard(TestGateway.token)
    await gateway.proxy.forget(change(of: TestGateway.token))
    for _ in 0..<50 { #expect(try await get(gateway).hasPrefix("HTTP/1.1 401")) }
    await gateway.stop()
  }

  /// Attack: the owner signs out while the session is being looked up. The earlier result must not be cached or used
  /// for later requests.
  @Test func aLookupFromBeforeASignOutAnswersNoLaterRequest() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    gateway.sessions.holdAnswers()
    // One connection each, so that all event loops are used.
    let early = try await withThrowingTaskGroup(of: RawClient.self) { group in
      for _ in 0..<8 {
        group.addTask {
          let client = try await RawClient(port: gateway.port)
          try await client.send("GET / HTTP/1.1\r\nHost: localhost\r\nCookie: moongate=\(TestGateway.token)\r\n\r\n")
          return client
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    try await until { gateway.sessions.reads >= 1 }
    gateway.sessions.endUnheard(TestGateway.token)
    await gateway.proxy.forget(change(of: TestGateway.token))
    for _ in 0..<8 {
      #expect(try await get(gateway).hasPrefix("HTTP/1.1 401"), "while the earlier question has no answer")
    }
    gateway.sessions.releaseAnswers()
    for client in early { #expect(try await client.answers(1, for: 5).hasPrefix("HTTP/1.1")) }
    for _ in 0..<8 { #expect(try await get(gateway).hasPrefix("HTTP/1.1 401"), "the earlier answer was not kept") }
    await gateway.stop()
  }

  /// A cache that receives no notifications is not used.
  @Test func unavailableStoreIs503AndRecovers() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [
      .test("/open/**", ports: [upstream.port], open: true), .test(ports: [upstream.port]),
    ])
    #expect(try await get(gateway).hasPrefix("HTTP/1.1 200"))
    gateway.sessions.isDown = true
    try await until { (try? await get(gateway).contains("\"code\":\"store_unavailable\"")) ?? false }
    let open = try await gateway.talk(
      "GET /open/x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(TestGateway.token)\r\n\r\n")
    #expect(open.hasPrefix("HTTP/1.1 200") && !upstream.all.contains(TestGateway.token))
    gateway.sessions.isDown = false
    try await until { (try? await get(gateway).hasPrefix("HTTP/1.1 200")) ?? false }
    await gateway.stop()
  }

  @Test func aBearerBesideTwoCookiesIsNotJudgedAndNotPassedOn() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    let answer = try await gateway.talk(
      "GET / HTTP/1.1\r\nHost: h\r\nCookie: moongate=a; moongate=b\r\nAuthorization: Bearer \(TestGateway.token)\r\n\r\n"
    )
    #expect(
      answer.hasPrefix("HTTP/1.1 200") && !upstream.all.contains(TestGateway.token)
        && !upstream.all.contains("Remote-User"))
    await gateway.stop()
  }

  @Test func idleAndAbsoluteEndsHold() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    let token = String(repeating: "I", count: 43)
    gateway.sessions.put(
      token, TestGateway.snapshot(token: token, clock: gateway.clock, lifetime: .seconds(1000), idle: .seconds(400)))
    let move = { (duration: Duration) in
      gateway.clock.advance(by: duration)
      // The event loops read the clock again after a few milliseconds.
      try await Task.sleep(for: .milliseconds(10))
    }
    #expect(try await get(gateway, token: token).hasPrefix("HTTP/1.1 200"))
    // Activity is stored, so that other nodes know of it.
    try await until { gateway.sessions.touched[TokenHash(of: token.utf8)] != nil }
    try await move(.seconds(400))
    #expect(try await get(gateway, token: token).hasPrefix("HTTP/1.1 401"), "it is expired at its deadline")
    let absolute = String(repeating: "J", count: 43)
    gateway.sessions.put(
      absolute,
      TestGateway.snapshot(token: absolute, clock: gateway.clock, lifetime: .seconds(100), idle: .seconds(400)))
    #expect(try await get(gateway, token: absolute).hasPrefix("HTTP/1.1 200"))
    try await move(.seconds(100))
    #expect(try await get(gateway, token: absolute).hasPrefix("HTTP/1.1 401"))
    await gateway.stop()
  }

  @Test func assertionsAreSignedOncePerMinute() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    let client = try await RawClient(port: gateway.port)
    for _ in 0..<5 {
      try await client.send("GET / HTTP/1.1\r\nHost: localhost\r\nCookie: moongate=\(TestGateway.token)\r\n\r\n")
      _ = try await client.answers()
    }
    let tokens = { Set(upstream.all.components(separatedBy: "\r\n").filter { $0.hasPrefix("X-Moongate-Assertion") }) }
    #expect(tokens().count == 1)
    await gateway.stop()
  }
}

/// Upgrades: judged like any request, by Origin if there is a cookie, and ended with their session.
@Suite(.timeLimit(.minutes(2))) struct TunnelTests {
  private static let handshake = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n"

  private func upstream() async throws -> RecordingUpstream {
    try await RecordingUpstream { received in
      if received.hasPrefix("GET ") {
        return received.hasSuffix("\r\n\r\n")
          ? .answer(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: y\r\n\r\n"
          ) : nil
      }
      return .answer("echo \(received)")
    }
  }

  @Test func webSocketEndsWithItsSession() async throws {
    let upstream = try await upstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], upgrade: true)])
    let client = try await RawClient(port: gateway.port)
    try await client.send(
      "GET /ws HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nCookie: moongate=\(TestGateway.token)\r\n\(Self.handshake)\r\n"
    )
    let answer = try await client.read { $0.hasSuffix("\r\n\r\n") }.text
    #expect(
      answer.hasPrefix("HTTP/1.1 101 Switching Protocols\r\n") && answer.contains("Sec-WebSocket-Accept: y")
        && answer.contains("Upgrade: websocket"))
    #expect(
      upstream.all.contains("Connection: Upgrade\r\nUpgrade: websocket\r\n")
        && upstream.all.contains("Remote-User: ac_alice"))
    try await client.send("\u{1}\u{2}frame")
    #expect(try await client.read { $0.hasSuffix("frame") }.text == "echo \u{1}\u{2}frame")
    gateway.sessions.end(TestGateway.token)
    let end = try await client.read(for: 2)
    #expect(end.ended)
    try await until { upstream.open == 0 }
    await gateway.stop()
  }

  @Test(
    arguments: [
      ("", 403), ("Origin: http://evil.example\r\n", 403), ("Origin: null\r\n", 403),
      ("Origin: http://localhost\r\nOrigin: http://localhost\r\n", 403),
      ("Origin: https://localhost\r\n", 403), ("Origin: http://localhost.evil.example\r\n", 403),
      ("Origin: http://localhost:8080\r\n", 101),
      ("Origin: http://localhost\r\n", 101),
    ]) func webSocketByCookieNeedsTheRightOrigin(_ origin: String, _ status: Int) async throws
  {
    let upstream = try await upstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], upgrade: true)])
    let answer = try await gateway.talk(
      "GET /ws HTTP/1.1\r\nHost: localhost\r\n\(origin)Cookie: moongate=\(TestGateway.token)\r\n\(Self.handshake)\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer)")
    #expect((status == 101) == upstream.all.contains("/ws"))
    if status == 403 { #expect(answer.contains("\"code\":\"origin_refused\"")) }
    await gateway.stop()
  }

  @Test func bearerNeedsNoOriginAndTunnelsNeedASession() async throws {
    let upstream = try await upstream()
    let gateway = try await TestGateway(routes: [
      .test("/off/**", ports: [upstream.port]), .test(ports: [upstream.port], upgrade: true),
    ])
    let get = { (path: String, fields: String) in
      try await gateway.talk("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(fields)\(Self.handshake)\r\n")
    }
    #expect(try await get("/ws", "Authorization: Bearer \(TestGateway.token)\r\n").hasPrefix("HTTP/1.1 101"))
    #expect(try await get("/ws", "Origin: http://localhost\r\n").hasPrefix("HTTP/1.1 401"))
    #expect(try await get("/off/ws", "Authorization: Bearer \(TestGateway.token)\r\n").hasPrefix("HTTP/1.1 403"))
    await gateway.stop()
  }

  /// Inside an HTTP tunnel, requests would not be judged and could contain identity headers.
  @Test(arguments: ["h2c", "websocket, H2C", "HTTP/2.0", "tls/1.2", "\th2"]) func noUpgradeLeadsToAnotherHTTP(
    _ name: String
  ) async throws {
    let upstream = try await upstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true, upgrade: true)])
    let answer = try await gateway.talk(
      "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: \(name)\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 403") && answer.contains("\"code\":\"denied\"") && upstream.all.isEmpty)
    await gateway.stop()
  }

  @Test func anUpstreamMayDeclineAnUpgrade() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], upgrade: true)])
    let answer = try await gateway.talk(
      "GET /ws HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(TestGateway.token)\r\n\(Self.handshake)\r\nGET /next HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(TestGateway.token)\r\n\r\n",
      answers: 2)
    #expect(answer.components(separatedBy: "hello").count == 3)
    await gateway.stop()
  }

  /// Attack: a sign-out while the service handles the upgrade. The notification arrives before the tunnel exists.
  @Test func aSessionThatEndedBeforeItsTunnelBeganEndsIt() async throws {
    let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    let upstream = try await RecordingUpstream { $0.hasPrefix("GET ") ? .later([(.milliseconds(900), answer)]) : nil }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], upgrade: true)])
    let client = try await RawClient(port: gateway.port)
    try await client.send(
      "GET /ws HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(TestGateway.token)\r\n\(Self.handshake)\r\n")
    try await until { upstream.all.contains("/ws") }
    gateway.sessions.end(TestGateway.token)
    #expect(try await client.read { $0.hasSuffix("\r\n\r\n") }.text.hasPrefix("HTTP/1.1 101"))
    #expect(try await client.read(for: 2).ended)
    await gateway.stop()
  }

  /// Attack: a sign-out while the store is too busy for another lookup, which is repeated.
  @Test func failedSessionLookupIsRepeated() async throws {
    let upstream = try await upstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], upgrade: true)])
    let client = try await RawClient(port: gateway.port)
    try await client.send(
      "GET /ws HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(TestGateway.token)\r\n\(Self.handshake)\r\n")
    #expect(try await client.read { $0.hasSuffix("\r\n\r\n") }.text.hasPrefix("HTTP/1.1 101"))
    gateway.sessions.cannotFind = true
    let before = gateway.sessions.reads
    gateway.sessions.end(TestGateway.token)
    try await until { gateway.sessions.reads > before + 1 }
    #expect(try await !client.read(for: 0.1).ended)
    gateway.sessions.cannotFind = false
    #expect(try await client.read(for: 2).ended)
    await gateway.stop()
  }

  @Test func eventStreamEndsWithItsSession() async throws {
    let upstream = try await RecordingUpstream { _ in
      .answer("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    let client = try await RawClient(port: gateway.port)
    try await client.send("GET /events HTTP/1.1\r\nHost: localhost\r\nCookie: moongate=\(TestGateway.token)\r\n\r\n")
    #expect(
      try await client.read { $0.contains("data: 1\n\n") }.text.contains("9\r\ndata: 1\n\n\r\n"), "it passes at once")
    gateway.sessions.end(TestGateway.token)
    let end = try await client.read(for: 2)
    #expect(end.ended && !end.text.hasSuffix("0\r\n\r\n"))
    await gateway.stop()
  }
}
