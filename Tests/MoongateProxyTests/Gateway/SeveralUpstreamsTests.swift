import Foundation
import MoongateCore
import MoongateTesting
import NIOCore
import Testing

@testable import MoongateProxy

/// Several upstreams of one route: selection, retries and recovery.
@Suite(.timeLimit(.minutes(2))) struct SeveralUpstreamsTests {
  private static let empty: RecordingUpstream.Script = {
    RecordingUpstream.isComplete($0) ? .answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") : nil
  }

  /// After bytes were sent, only requests with safe methods are retried.
  @Test(arguments: [
    ("GET", true), ("HEAD", true), ("OPTIONS", true), ("POST", false), ("PUT", false), ("DELETE", false),
    ("PATCH", false), ("get", false),
  ])
  func onlySafeMethodsAreRepeated(_ method: String, _ isRepeated: Bool) async throws {
    let dying = try await RecordingUpstream { RecordingUpstream.isComplete($0) ? .close : nil }
    let living = try await RecordingUpstream(Self.empty)
    let gateway = try await TestGateway(routes: [.test(ports: [dying.port, living.port], open: true)])
    let answer = try await gateway.talk("\(method) /x HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(answer.hasPrefix(isRepeated ? "HTTP/1.1 200" : "HTTP/1.1 502"), "\(answer)")
    #expect(dying.all.hasPrefix("\(method) /x ") && living.all.isEmpty == !isRepeated)
    await gateway.stop()
  }

  /// A sent body cannot be sent again, so such a GET is not retried either.
  @Test func aRequestWithABodyIsSentOnce() async throws {
    let dying = try await RecordingUpstream { RecordingUpstream.isComplete($0) ? .close : nil }
    let living = try await RecordingUpstream(Self.empty)
    let gateway = try await TestGateway(routes: [.test(ports: [dying.port, living.port], open: true)])
    #expect(
      try await gateway.talk("GET /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab").hasPrefix("HTTP/1.1 502"))
    #expect(living.all.isEmpty)
    await gateway.stop()
  }

  @Test func failedUpstreamIsRetriedWithinFiveSeconds() async throws {
    let first = try await RecordingUpstream(Self.empty)
    let port = first.port
    await first.stop()
    let other = try await RecordingUpstream(Self.empty)
    let gateway = try await TestGateway(routes: [.test(ports: [port, other.port], open: true)])
    let get = { try await gateway.talk("GET /x HTTP/1.1\r\nHost: h\r\n\r\n") }
    for _ in 0..<8 { #expect(try await get().hasPrefix("HTTP/1.1 200")) }
    let back = try await RecordingUpstream(port: port, Self.empty)
    let came = ContinuousClock.now
    try await until {
      _ = try? await get()
      return !back.all.isEmpty
    }
    #expect(ContinuousClock.now - came < .seconds(5))
    await gateway.stop()
  }

  /// An upstream that accepts connections but does not answer, or closes them, is avoided like one that refuses them,
  /// as long as there is another.
  @Test(arguments: [true, false]) func failingUpstreamIsAvoided(_ isSilent: Bool) async throws {
    let failing = try await RecordingUpstream {
      RecordingUpstream.isComplete($0) ? (isSilent ? .silence : .close) : nil
    }
    let living = try await RecordingUpstream(Self.empty)
    let gateway = try await TestGateway(routes: [
      .test(ports: [failing.port, living.port], open: true, timeout: .milliseconds(300))
    ])
    let client = try await RawClient(port: gateway.port)
    var statuses: [String] = []
    for _ in 0..<6 {
      try await client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
      statuses.append(String(try await client.answers().dropFirst(9).prefix(3)))
    }
    #expect(statuses == [isSilent ? "504" : "502"] + Array(repeating: "200", count: 5))
    await gateway.stop()
  }

  /// A request that outlives its route leaves no open connection.
  @Test func removedUpstreamIsDisconnected() async throws {
    let upstream = try await RecordingUpstream { _ in
      .later([(.seconds(1), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")])
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    let client = try await RawClient(port: gateway.port)
    try await client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
    try await until { upstream.open == 1 }
    gateway.active.activate(
      TestGeneration(id: "next", gateway: .test(), routes: [], flows: [], policies: []), at: gateway.clock.now())
    // Event loops notice it with their next request.
    for _ in 0..<4 * System.coreCount {
      #expect(try await gateway.talk("GET /x HTTP/1.1\r\nHost: h\r\n\r\n").hasPrefix("HTTP/1.1 404"))
    }
    #expect(try await client.answers().hasPrefix("HTTP/1.1 200"))
    try await until { upstream.open == 0 }
    await gateway.stop()
  }

  /// The first upstream gets all requests while it works.
  @Test func theFirstUpstreamIsUsed() async throws {
    let first = try await RecordingUpstream(Self.empty)
    let other = try await RecordingUpstream(Self.empty)
    let gateway = try await TestGateway(routes: [.test(ports: [first.port, other.port], open: true)])
    for _ in 0..<6 { #expect(try await gateway.talk("GET /x HTTP/1.1\r\nHost: h\r\n\r\n").hasPrefix("HTTP/1.1 200")) }
    #expect(first.all.components(separatedBy: "GET /x ").count == 7 && other.all.isEmpty)
    await gateway.stop()
  }

  @Test func upstreamsAreUsedInTurn() async throws {
    let upstreams = [
      try await RecordingUpstream(Self.empty), try await RecordingUpstream(Self.empty),
      try await RecordingUpstream(Self.empty),
    ]
    var route = Route.test(ports: upstreams.map(\.port), open: true)
    route.balance = .roundRobin
    let gateway = try await TestGateway(routes: [route])
    let client = try await RawClient(port: gateway.port)
    for _ in 0..<9 {
      try await client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
      _ = try await client.answers()
    }
    for upstream in upstreams { #expect(upstream.all.components(separatedBy: "GET /x ").count == 4) }
    await gateway.stop()
  }

  @Test func timeoutIsAuditedUnderItsDecision() async throws {
    let silent = try await RecordingUpstream { _ in .silence }
    let gateway = try await TestGateway(routes: [.test(ports: [silent.port], open: true, timeout: .milliseconds(300))])
    let answer = try await gateway.talk("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 504"))
    let id = try #require(answer.range(of: "\"decision_id\":\"(dc_[^\"]+)\"", options: .regularExpression))
    let event = try await gateway.audit.event(DecisionID(text: String(answer[id].dropFirst(15).dropLast())))
    #expect(event?.code == "upstream_timeout" && event?.detail["upstream"] == "http://127.0.0.1:\(silent.port)")
    await gateway.stop()
  }

  /// Attack: a refused client that gets a 100 sends a body that no upstream reads.
  @Test func aRefusalSendsNo100AndCloses() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    let answer = try await gateway.talkToEnd(
      "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    #expect(answer.ended && answer.text.hasPrefix("HTTP/1.1 401") && !answer.text.contains("100 Continue"))
    #expect(answer.text.contains("Connection: close\r\n") && upstream.all.isEmpty)
    await gateway.stop()
  }
}

/// What ends a tunnel and what does not.
@Suite(.timeLimit(.minutes(2))) struct LongTunnelTests {
  private static let handshake =
    "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer \(TestGateway.token)\r\n\r\n"

  private func open(timeout: Duration = .seconds(30)) async throws -> (TestGateway, RawClient) {
    let upstream = try await RecordingUpstream { received in
      received.hasPrefix("GET ")
        ? .answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        : .answer("echo \(received)")
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], timeout: timeout, upgrade: true)])
    let client = try await RawClient(port: gateway.port)
    try await client.send(Self.handshake)
    #expect(try await client.read { $0.hasSuffix("\r\n\r\n") }.text.hasPrefix("HTTP/1.1 101"))
    return (gateway, client)
  }

  @Test func theRoutesTimeoutDoesNotBoundIt() async throws {
    let (gateway, client) = try await open(timeout: .milliseconds(200))
    #expect(try await !client.read(for: 1).ended)
    try await client.send("frame")
    #expect(try await client.read { $0.hasSuffix("frame") }.text == "echo frame")
    await gateway.stop()
  }

  /// Attack: a peer that disappears silently. Keepalive probes check both peers.
  @Test func itsPeersAreAskedWhetherTheyAreThere() async throws {
    let (gateway, client) = try await open()
    let upstream = gateway.active.current.routes.routes[0].upstreams[0].port
    let hex = { (port: Int) in ":" + String(String(0x10000 + port, radix: 16, uppercase: true).dropFirst()) }
    // /proc/net/tcp contains local address, remote address, 01 (established), queues, and 02 for a running keepalive
    // timer.
    let isAsked = { (column: Int, port: Int) in
      // Read by a handle, because the file reports a size of zero.
      let file = try #require(FileHandle(forReadingAtPath: "/proc/net/tcp"))
      let rows = String(decoding: file.readDataToEndOfFile(), as: UTF8.self).split(separator: "\n").map {
        $0.split(separator: " ")
      }
      return rows.contains {
        $0.count > 5 && $0[column].hasSuffix(hex(port)) && $0[3] == "01" && $0[5].hasPrefix("02:")
      }
    }
    try await until { (try? isAsked(1, gateway.port)) ?? false }
    try await until { (try? isAsked(2, upstream)) ?? false }
    try await client.send("frame")
    #expect(try await client.read { $0.hasSuffix("frame") }.text == "echo frame")
    await gateway.stop()
  }

  @Test func aReloadLeavesItAlone() async throws {
    let (gateway, client) = try await open()
    gateway.active.activate(
      TestGeneration(id: "next", gateway: .test(), routes: [], flows: [], policies: []), at: gateway.clock.now())
    #expect(try await gateway.talk(Self.handshake).hasPrefix("HTTP/1.1 404"))
    try await client.send("frame")
    #expect(try await client.read { $0.hasSuffix("frame") }.text == "echo frame")
    gateway.sessions.end(TestGateway.token)
    #expect(try await client.read(for: 2).ended, "signing out ends it in any case")
    await gateway.stop()
  }
}
