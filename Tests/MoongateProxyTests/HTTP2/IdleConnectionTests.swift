import MoongateCore
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import MoongateProxy

/// Idle HTTP/2 connections and streams, on an event loop whose clock the test controls.
@Suite struct IdleConnectionTests {
  private func onOneThread(
    _ gateway: TestGateway, inner: @escaping @Sendable (any Channel) throws -> Void = { _ in },
    _ body: (EmbeddedStreams) throws -> Void
  ) throws {
    let client = try EmbeddedStreams(gateway, inner: inner)
    defer { client.end() }
    try body(client)
  }

  @Test func aMinuteWithoutAStreamEndsTheConnectionInTwoSteps() async throws {
    let gateway = try await TestGateway(routes: [])
    try onOneThread(gateway) { client in
      let channel = client.channel
      _ = try client.frames()
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(59_900))
      #expect(try !client.frames().contains { $0.type == 7 } && channel.isActive)
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(200))
      #expect(try client.frames().contains { $0.type == 7 }, "it says GOAWAY first")
      // Attack: a client that never acknowledges the final frames.
      channel.embeddedEventLoop.advanceTime(by: .seconds(7))
      #expect(!channel.isActive)
    }
    await gateway.stop()
  }

  @Test func aStreamKeepsItUntilAMinuteAfterItsEnd() async throws {
    let gateway = try await TestGateway(routes: [])
    try onOneThread(gateway) { client in
      let channel = client.channel
      channel.embeddedEventLoop.advanceTime(by: .seconds(50))
      try client.send(client.head(1))
      #expect(try client.frames().contains { $0.type == 1 }, "the answer's head")
      channel.embeddedEventLoop.advanceTime(by: .seconds(50))
      #expect(try !client.frames().contains { $0.type == 7 } && channel.isActive)
      channel.embeddedEventLoop.advanceTime(by: .seconds(11))
      #expect(try client.frames().contains { $0.type == 7 })
    }
    await gateway.stop()
  }

  /// Attack: streams with unfinished bodies for the gateway itself.
  @Test func aStreamThatWaitsForItsBodyEndsToo() async throws {
    let gateway = try await TestGateway(routes: [])
    try onOneThread(gateway) { client in
      let channel = client.channel
      _ = try client.frames()
      try client.send(client.head(1, "POST", path: "/auth/login", end: false))
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(9900))
      #expect(try !client.frames().contains { $0.type == 1 })
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(300))
      let answer = try client.frames()
      #expect(answer.contains { $0.type == 1 }, "408")
      channel.embeddedEventLoop.advanceTime(by: .seconds(3))
      #expect(try client.frames().contains { $0.type == 3 } || answer.contains { $0.type == 3 }, "and asked to stop")
      #expect(channel.isActive)
    }
    await gateway.stop()
  }

  /// Attack: one client of HTTP/2 uses up the limits of an address that all clients of HTTP/2 share.
  @Test func requestForTheGatewayItselfHasTheAddressOfItsClient() async throws {
    let gateway = try await TestGateway(routes: [])
    let addresses = Mutex<[String?]>([])
    try onOneThread(
      gateway, inner: { channel in addresses.withLock { $0.append(channel.remoteAddress?.ipAddress) } }
    ) { client in try client.send(client.head(1, path: "/auth/login")) }
    #expect(addresses.withLock { $0 } == ["192.0.2.1"])
    await gateway.stop()
  }

  /// A connection and its streams refer to each other.
  @Test func closedConnectionWithAnOpenStreamIsReleased() async throws {
    let gateway = try await TestGateway(routes: [])
    try onOneThread(gateway) { client in
      let channel = client.channel
      weak let connection = try channel.pipeline.syncOperations.handler(type: HTTP2Connection.self)
      // A POST for the gateway itself whose body is missing, and a complete request.
      try client.send(client.head(1, "POST", path: "/auth/login", end: false))
      try client.send(client.head(3))
      #expect(connection != nil)
      _ = try? channel.finish(acceptAlreadyClosed: true)
      #expect(connection == nil)
    }
    await gateway.stop()
  }

  /// Attack: zero windows. A client opens streams and never accepts any bytes of their responses.
  @Test func streamWithAnUnreadResponseIsReset() async throws {
    let gateway = try await TestGateway(routes: [])
    try onOneThread(gateway) { client in
      let channel = client.channel
      // SETTINGS_INITIAL_WINDOW_SIZE = 0.
      try client.send(EmbeddedStreams.settings([(4, 0)]))
      _ = try client.frames()
      try client.send(client.head(1))
      #expect(try client.frames().map(\.type) == [1], "the head, and no body")
      channel.embeddedEventLoop.advanceTime(by: .seconds(50))
      #expect(try !client.frames().contains { $0.type == 3 })
      channel.embeddedEventLoop.advanceTime(by: .seconds(90))
      #expect(try client.frames().contains { $0.type == 3 } || !channel.isActive)
    }
    await gateway.stop()
  }
}
