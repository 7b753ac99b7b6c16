import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Upstreams that are down, stall, crash, or send invalid responses.
@Suite(.timeLimit(.minutes(2))) struct UpstreamTests {
  private func get(_ gateway: TestGateway, _ path: String = "/", method: String = "GET") async throws -> String {
    try await gateway.talk("\(method) \(path) HTTP/1.1\r\nHost: h\r\n\r\n")
  }

  @Test func unreachableUpstreamIs502UnlessAnotherAnswers() async throws {
    let gone = try await RecordingUpstream()
    await gone.stop()
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(
      routes: [
        .test("/both/**", ports: [gone.port, upstream.port], open: true),
        .test("/gone/**", ports: [gone.port], open: true),
      ])
    for _ in 0..<6 { #expect(try await get(gateway, "/both/x", method: "POST").hasPrefix("HTTP/1.1 200")) }
    let answer = try await get(gateway, "/gone/x")
    #expect(answer.hasPrefix("HTTP/1.1 502 Bad Gateway") && answer.contains("\"code\":\"upstream_unavailable\""))
    let id = try #require(answer.range(of: "\"decision_id\":\"(dc_[^\"]+)\"", options: .regularExpression))
    let event = try await gateway.audit.event(DecisionID(text: String(answer[id].dropFirst(15).dropLast())))
    #expect(event?.code == "upstream_unavailable" && event?.detail["upstream"] == "http://127.0.0.1:\(gone.port)")
    await gateway.stop()
  }

  @Test(
    arguments: [
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
      "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
      "rubbish\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
      "HTTP/1.1 200 OK\r\n" + String(repeating: "A: bbbbbbbbbbbbbbbbbbbbbbbb\r\n", count: 5000) + "\r\n",
    ]) func ambiguousResponseIsAnsweredWith502(_ text: String) async throws
  {
    let upstream = try await RecordingUpstream { RecordingUpstream.isComplete($0) ? .answer(text) : nil }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    let answer = try await get(gateway)
    #expect(answer.hasPrefix("HTTP/1.1 502") && answer.contains("\"code\":\"upstream_unavailable\""), "\(answer)")
    try await until { upstream.open == 0 }
    await gateway.stop()
  }

  @Test(arguments: [
    "Content-Length: 100\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n64\r\nhalf",
    "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
  ])
  func truncatedUpstreamResponseClosesTheClient(_ rest: String) async throws {
    let upstream = try await RecordingUpstream { _ in .answerAndClose("HTTP/1.1 200 OK\r\n\(rest)") }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    let answer = try await gateway.talkToEnd("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(answer.ended && !answer.text.hasSuffix("0\r\n\r\n"))
    #expect(answer.text.components(separatedBy: "HTTP/1.1 ").count <= 2)
    await gateway.stop()
  }

  /// Once bytes were sent, only safe requests are retried.
  @Test func onlyGETIsRetriedOnALostConnection() async throws {
    let upstream = try await RecordingUpstream { received in
      // Serves one request on a connection and closes it at the second.
      guard RecordingUpstream.isComplete(received) else { return nil }
      return received.contains("/second") ? .close : .answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    let client = try await RawClient(port: gateway.port)
    try await client.send("GET /first HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(try await client.answers().hasSuffix("ok"))
    try await client.send("POST /second HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
    #expect(try await client.answers().hasPrefix("HTTP/1.1 502"))
    #expect(upstream.all.components(separatedBy: "POST /second").count == 2, "a POST is sent once")
    #expect(try await get(gateway, "/second").hasPrefix("HTTP/1.1 502"))
    #expect(try await get(gateway, "/first").hasPrefix("HTTP/1.1 200"))
    await gateway.stop()
  }

  /// RFC 9112 section 4: the space is only needed before a phrase, and the gateway always sends it.
  @Test func statusLineNeedsNoSpaceAfterTheCode() async throws {
    let upstream = try await RecordingUpstream {
      RecordingUpstream.isComplete($0) ? .answer("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok") : nil
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    let answer = try await get(gateway, "/")
    #expect(answer.hasPrefix("HTTP/1.1 200 \r\n") && answer.hasSuffix("\r\n\r\nok"))
    await gateway.stop()
  }

  /// Attack: an upstream sends a body where none is allowed, which would be taken for the response to another request.
  @Test(
    arguments: [
      ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false),
      ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false),
      ("GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", false),
      ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false),
      ("GET", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", false),
      ("GET", "HTTP/1.1 204 No Content\r\n\r\n", true),
      ("GET", "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", true),
      ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
      ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
    ]) func connectionIsNotReusedIfABodyCouldFollow(
      _ method: String, _ says: String, _ isUsedAgain: Bool
    ) async throws
  {
    let upstream = try await RecordingUpstream { RecordingUpstream.isComplete($0) ? .answer(says) : nil }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    let client = try await RawClient(port: gateway.port)
    for _ in 0..<2 {
      try await client.send("\(method) / HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try await client.read { $0.hasSuffix("\r\n\r\n") }.text.hasPrefix("HTTP/1.1 "))
    }
    #expect(upstream.received.count == (isUsedAgain ? 1 : 2))
    await gateway.stop()
  }

  /// Megabytes wait in the system's buffers after the gateway has written the last byte. While they move, no timeout
  /// applies.
  @Test func slowReaderDoesNotTimeOut() async throws {
    let size = 6_000_000
    let upstream = try SlowReader(size: size, pause: 0.02)
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true, timeout: .milliseconds(300))]
    )
    let client = try await RawClient(port: gateway.port)
    try await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \(size)\r\n\r\n")
    try await client.send([UInt8](repeating: 0x61, count: size))
    let answer = try await client.answers(for: 60)
    #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
    await gateway.stop()
  }

  /// A client that stops reading times out.
  @Test func clientThatStopsReadingTimesOut() async throws {
    let upstream = try SlowReader(size: 6_000_000, pause: 0.02, stopsAfter: 500_000)
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true, timeout: .milliseconds(300))]
    )
    let client = try await RawClient(port: gateway.port)
    try await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6000000\r\n\r\n")
    _ = try await client.sendUntilBlocked([UInt8](repeating: 0x61, count: 1000), times: 6000)
    #expect(try await client.answers(for: 20).hasPrefix("HTTP/1.1 504 "))
    await gateway.stop()
  }

  @Test func upstreamThatClosesBetweenRequestsIsReconnected() async throws {
    let upstream = try await RecordingUpstream {
      RecordingUpstream.isComplete($0) ? .answerAndClose("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") : nil
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    for _ in 0..<20 { #expect(try await get(gateway).hasSuffix("ok")) }
    await gateway.stop()
  }

  /// Unexpected bytes must not become the response to another request.
  @Test func unrequestedBytesAreNeverAResponse() async throws {
    let upstream = try await RecordingUpstream { received in
      RecordingUpstream.isComplete(received)
        ? .answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        : nil
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    let answer = try await gateway.talk(
      "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n", answers: 2)
    #expect(answer.components(separatedBy: "\r\n\r\nok").count == 3 && !answer.contains("evil"))
    await gateway.stop()
  }

  @Test func silentUpstreamIs504AndStalledResponseClosesTheClient() async throws {
    let upstream = try await RecordingUpstream { received in
      received.contains("/stall") ? .answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal") : .silence
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true, timeout: .milliseconds(400))]
    )
    let answer = try await get(gateway)
    #expect(answer.hasPrefix("HTTP/1.1 504 Gateway Timeout") && answer.contains("\"code\":\"upstream_timeout\""))
    let stalled = try await gateway.talkToEnd("GET /stall HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(stalled.text.hasSuffix("\r\n\r\nhal") && stalled.ended)
    try await until { upstream.open == 0 }
    await gateway.stop()
  }

  @Test func disconnectedClientReleasesItsUpstream() async throws {
    let upstream = try await RecordingUpstream { received in
      received.contains("POST") ? nil : .silence
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    do {
      let client = try await RawClient(port: gateway.port)
      try await client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf")
      try await until { upstream.open == 1 }
    }
    try await until { upstream.open == 0 }
    await gateway.stop()
  }

  /// Back-pressure: data that the client does not read is not read from the upstream.
  @Test func slowReadersExertBackPressureOnTheUpstream() async throws {
    let size = 64_000_000
    let body = String(repeating: "0123456789abcdef", count: size / 16)
    let upstream = try await RecordingUpstream {
      RecordingUpstream.isComplete($0) ? .answer("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n" + body) : nil
    }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    let client = try await RawClient(port: gateway.port)
    try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    _ = try await client.read { $0.utf8.count > 1000 }
    // Other clients are served in the meantime.
    #expect(try await gateway.talk("GET /auth/x HTTP/1.1\r\nHost: h\r\n\r\n").hasSuffix("own GET /auth/x h "))
    await gateway.stop()
  }
}
