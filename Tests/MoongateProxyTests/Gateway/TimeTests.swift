import MoongateCore
import MoongateTesting
import NIOCore
import NIOEmbedded
import Testing

@testable import MoongateProxy

/// Slow clients, on an event loop whose clock the test controls.
@Suite struct TimeTests {
  /// Runs code with embedded channels without an `await`, which could change the thread: an embedded channel is bound
  /// to its thread.
  private func onOneThread(_ body: () throws -> Void) rethrows { try body() }

  private func connection(_ gateway: TestGateway) throws -> EmbeddedChannel {
    let channel = EmbeddedChannel()
    try gateway.proxy.serve(channel, tls: nil) { _, _ in }
    channel.connect(to: try SocketAddress(ipAddress: "192.0.2.1", port: 1), promise: nil)
    return channel
  }

  private func written(_ channel: EmbeddedChannel) throws -> String {
    var text = ""
    while let bytes = try channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: bytes) }
    return text
  }

  @Test func slowHeadIsRefusedAfterTenSeconds() async throws {
    let gateway = try await TestGateway(routes: [])
    try onOneThread {
      let channel = try connection(gateway)
      for byte in "GET / HT".utf8 {
        try channel.writeInbound(ByteBuffer(bytes: [byte]))
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(1200))
      }
      #expect(try written(channel) == "" && channel.isActive)
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(500))
      let answer = try written(channel)
      #expect(answer.hasPrefix("HTTP/1.1 408 Request Timeout\r\n") && answer.contains("\"code\":\"timeout\""))
      channel.embeddedEventLoop.advanceTime(by: .seconds(3))
      #expect(!channel.isActive)
      _ = try channel.finish(acceptAlreadyClosed: true)
    }
    await gateway.stop()
  }

  @Test func idleConnectionsCloseAfterAMinute() async throws {
    let gateway = try await TestGateway(routes: [])
    try onOneThread {
      let channel = try connection(gateway)
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(59_800))
      #expect(channel.isActive)
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(300))
      #expect(!channel.isActive)
      #expect(try written(channel) == "")
      _ = try channel.finish(acceptAlreadyClosed: true)
    }
    await gateway.stop()
  }

  @Test func aBodyForTheGatewayItselfMustBeCompleteInTenSeconds() async throws {
    let gateway = try await TestGateway(routes: [])
    try onOneThread {
      let channel = try connection(gateway)
      try channel.writeInbound(
        ByteBuffer(string: "POST /auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab"))
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(9_900))
      #expect(try written(channel) == "")
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(200))
      #expect(try written(channel).hasPrefix("HTTP/1.1 408"))
      _ = try channel.finish(acceptAlreadyClosed: true)
    }
    await gateway.stop()
  }

  @Test func connectionsBeyondTheLimitAreClosed() async throws {
    var settings = GatewaySettings.test()
    settings.connectionLimits.connections = 2
    let gateway = try await TestGateway(routes: [], settings: settings)
    try onOneThread {
      let first = try connection(gateway)
      let second = try connection(gateway)
      #expect(try !connection(gateway).isActive)
      #expect(first.isActive && second.isActive)
      first.close(promise: nil)
      #expect(try connection(gateway).isActive)
      for channel in [first, second] { _ = try channel.finish(acceptAlreadyClosed: true) }
    }
    await gateway.stop()
  }

  /// Attack: endless requests without reading a response. The number of requests is bounded by the responses that are
  /// read.
  @Test(.timeLimit(.minutes(1))) func clientThatReadsNoResponsesIsBounded() async throws {
    let gateway = try await TestGateway(routes: [])
    let client = try await RawClient(port: gateway.port)
    let request = Array("GET /nothing/here HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
    let sent = try await client.sendUntilBlocked(request, times: 1_000_000)
    #expect(sent < 32 * 1024 * 1024)
    #expect(try await gateway.talk("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").hasPrefix("HTTP/1.1 404"))
    await gateway.stop()
  }
}
