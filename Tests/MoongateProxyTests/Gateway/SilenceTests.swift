import MoongateCore
import NIOCore
import NIOEmbedded
import Testing

@testable import MoongateProxy

/// Timeouts of clients and upstreams, to the second.
@Suite struct SilenceTests {
  private func onOneThread(_ gateway: TestGateway, _ body: (EmbeddedExchange) throws -> Void) throws {
    let exchange = try EmbeddedExchange(gateway)
    defer { exchange.end() }
    try body(exchange)
  }

  private func gateway(timeout: Duration = .seconds(30), upgrade: Bool = false) async throws -> TestGateway {
    try await TestGateway(routes: [.test(ports: [1], open: true, timeout: timeout, upgrade: upgrade)])
  }

  private let get = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n"

  @Test func upstreamTimeoutIsThatOfTheRoute() async throws {
    let gateway = try await gateway(timeout: .seconds(5))
    try onOneThread(gateway) { exchange in
      try exchange.send(get)
      #expect(try exchange.asked().hasPrefix("GET /x HTTP/1.1\r\n"))
      exchange.pass(.milliseconds(4900))
      #expect(try exchange.got() == "" && exchange.upstream.isActive)
      exchange.pass(.milliseconds(200))
      #expect(try exchange.got().hasPrefix("HTTP/1.1 504 ") && !exchange.upstream.isActive)
    }
    await gateway.stop()
  }

  /// Attack: the next request, byte by byte. Client bytes do not extend the upstream's timeout.
  @Test func pipelinedBytesDoNotExtendTheUpstreamTimeout() async throws {
    let gateway = try await gateway(timeout: .seconds(5))
    try onOneThread(gateway) { exchange in
      try exchange.send(get)
      for byte in "GET /nex" {
        exchange.pass(.milliseconds(700))
        try exchange.send(String(byte))
      }
      #expect(try exchange.got().hasPrefix("HTTP/1.1 504 "))
    }
    await gateway.stop()
  }

  /// A store that does not answer: an open route is served without the session, and others are refused.
  @Test(arguments: [true, false]) func aSilentStoreIsWaitedForFiveSeconds(_ isOpen: Bool) async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: isOpen)])
    gateway.sessions.holdAnswers()
    let client = try await RawClient(port: gateway.port)
    try await client.send("GET /x HTTP/1.1\r\nHost: h\r\nCookie: moongate=\(TestGateway.token)\r\n\r\n")
    while gateway.sessions.reads == 0 { try await Task.sleep(for: .milliseconds(2)) }
    try await gateway.checkTimes(after: .milliseconds(4500))
    #expect(upstream.all.isEmpty)
    try await gateway.checkTimes(after: .seconds(5))
    let answer = try await client.answers(1)
    if isOpen {
      #expect(answer.hasPrefix("HTTP/1.1 200 ") && upstream.all.hasPrefix("GET /x "))
      #expect(!upstream.all.lowercased().contains("remote-user"))
    } else {
      #expect(answer.hasPrefix("HTTP/1.1 503 ") && upstream.all.isEmpty)
    }
    gateway.sessions.releaseAnswers()
    await gateway.stop()
  }

  /// The client sends the body only after a 100, which the upstream sends only after the head.
  @Test func theHeadOfAPipelinedRequestReachesTheUpstreamBeforeItsBody() async throws {
    let gateway = try await gateway()
    try onOneThread(gateway) { exchange in
      try exchange.send(
        get + "POST /y HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
      #expect(try exchange.asked().hasPrefix("GET /x "))
      try exchange.answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      #expect(try exchange.asked().hasPrefix("POST /y "))
      try exchange.answer("HTTP/1.1 100 Continue\r\n\r\n")
      #expect(try exchange.got().hasSuffix("HTTP/1.1 100 Continue\r\n\r\n"))
      try exchange.send("ab")
      #expect(try exchange.asked() == "ab")
    }
    await gateway.stop()
  }

  @Test func interimResponsesExtendTheTimeout() async throws {
    let gateway = try await gateway(timeout: .seconds(5))
    try onOneThread(gateway) { exchange in
      try exchange.send(get)
      for _ in 0..<3 {
        exchange.pass(.seconds(4))
        try exchange.answer("HTTP/1.1 102 Processing\r\n\r\n")
      }
      exchange.pass(.seconds(4))
      try exchange.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      let got = try exchange.got()
      #expect(got.hasPrefix("HTTP/1.1 200 OK\r\n") && got.hasSuffix("ok"))
    }
    await gateway.stop()
  }

  /// A slow body is no timeout of either side; a stalled one is the client's.
  @Test func slowBodyIsServedAndStalledBodyIsRefused() async throws {
    let gateway = try await gateway(timeout: .seconds(5))
    try onOneThread(gateway) { exchange in
      try exchange.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n")
      for byte in "12345" {
        exchange.pass(.seconds(50))
        try exchange.send(String(byte))
      }
      #expect(try exchange.asked().hasSuffix("12345") && exchange.upstream.isActive)
      exchange.pass(.milliseconds(60_100))
      #expect(try exchange.got().hasPrefix("HTTP/1.1 408 ") && !exchange.upstream.isActive)
    }
    await gateway.stop()
  }

  @Test func clientThatReadsNothingForAMinuteIsDisconnected() async throws {
    let gateway = try await gateway(timeout: .seconds(5))
    try onOneThread(gateway) { exchange in
      try exchange.send(get)
      try exchange.answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      exchange.takes(false)
      exchange.pass(.milliseconds(59_800))
      #expect(exchange.client.isActive && exchange.upstream.isActive, "the upstream's timeout does not run meanwhile")
      exchange.pass(.milliseconds(300))
      #expect(!exchange.client.isActive && !exchange.upstream.isActive)
    }
    await gateway.stop()
  }

  /// Requests that wait because the client has not read earlier responses are not late.
  @Test func slowReaderIsNotASlowSender() async throws {
    let gateway = try await gateway()
    try onOneThread(gateway) { exchange in
      try exchange.send("GET /../x HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try exchange.got().hasPrefix("HTTP/1.1 400 "))
      exchange.takes(false)
      try exchange.send("GET /..")
      exchange.pass(.seconds(20))
      try exchange.send("/x HTTP/1.1\r\nHost: h\r\n\r\n")
      exchange.pass(.seconds(20))
      #expect(try exchange.got() == "" && exchange.client.isActive)
      exchange.takes(true)
      #expect(try exchange.got().hasPrefix("HTTP/1.1 400 "))
    }
    await gateway.stop()
  }

  /// Attack: the client occasionally sends a byte of the next request and never reads a response.
  @Test func clientThatReadsNoResponseIsDisconnected() async throws {
    let gateway = try await gateway()
    try onOneThread(gateway) { exchange in
      try exchange.send("GET /../x HTTP/1.1\r\nHost: h\r\n\r\n")
      exchange.takes(false)
      for byte in "GET /" {
        try exchange.send(String(byte))
        exchange.pass(.seconds(20))
      }
      #expect(!exchange.client.isActive)
    }
    await gateway.stop()
  }

  /// Attack: a byte every second keeps a connection open after its last response.
  @Test func lingeringConnectionIsClosed() async throws {
    let gateway = try await gateway()
    try onOneThread(gateway) { exchange in
      try exchange.send("GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n")
      #expect(try exchange.got().hasPrefix("HTTP/1.1 400 "))
      for second in 0..<40 {
        exchange.pass(.seconds(1))
        guard exchange.client.isActive else {
          #expect(second >= 28)
          return
        }
        try exchange.send("x")
      }
      Issue.record("it still lingers")
    }
    await gateway.stop()
  }

  private func tunnel(_ exchange: EmbeddedExchange) throws {
    try exchange.send("GET /x HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    try exchange.answer("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    #expect(try exchange.got().hasPrefix("HTTP/1.1 101 "))
  }

  @Test func silentTunnelStaysOpen() async throws {
    let gateway = try await gateway(timeout: .seconds(5), upgrade: true)
    try onOneThread(gateway) { exchange in
      try tunnel(exchange)
      exchange.pass(.hours(2))
      try exchange.send("frame")
      #expect(try exchange.asked().hasSuffix("frame") && exchange.client.isActive)
    }
    await gateway.stop()
  }

  /// Attack: a client closes its side, and the service never closes the other.
  @Test func halfClosedTunnelEndsAfterAMinute() async throws {
    let gateway = try await gateway(upgrade: true)
    try onOneThread(gateway) { exchange in
      try tunnel(exchange)
      exchange.endSending()
      for _ in 0..<3 {
        exchange.pass(.seconds(50))
        try exchange.answer("more")
      }
      #expect(try exchange.got() == "moremoremore" && exchange.client.isActive)
      exchange.pass(.milliseconds(60_100))
      #expect(!exchange.client.isActive && !exchange.upstream.isActive)
    }
    await gateway.stop()
  }
}
