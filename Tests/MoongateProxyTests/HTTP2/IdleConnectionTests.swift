import MoongateCore
import MoongateTesting
import NIOCore
import NIOEmbedded
import NIOHPACK
import NIOHTTP2
import NIOTLS
import Synchronization
import Testing

@testable import MoongateProxy

/// Idle HTTP/2 connections and streams, on an event loop whose clock the test controls.
@Suite struct IdleConnectionTests {
  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]

  private func onOneThread(
    _ gateway: TestGateway, inner: @escaping @Sendable (any Channel) throws -> Void = { _ in },
    _ body: (EmbeddedChannel) throws -> Void
  ) throws {
    let channel = EmbeddedChannel()
    try channel.pipeline.syncOperations.addHandler(
      TLSHandshakeHandler(loop: gateway.proxy.loop(for: channel.eventLoop), inner: inner))
    channel.connect(to: try SocketAddress(ipAddress: "192.0.2.1", port: 1), promise: nil)
    channel.pipeline.fireUserInboundEventTriggered(TLSUserEvent.handshakeCompleted(negotiatedProtocol: "h2"))
    defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
    try channel.writeInbound(ByteBuffer(bytes: Self.preface))
    try body(channel)
  }

  /// The types of the frames written since the last call, and the last frame.
  private func frames(_ channel: EmbeddedChannel) throws -> (types: [UInt8], last: [UInt8]) {
    var bytes: [UInt8] = []
    while let part = try channel.readOutbound(as: ByteBuffer.self) { bytes += part.readableBytesView }
    var types: [UInt8] = []
    var last: [UInt8] = []
    var index = 0
    while index + 9 <= bytes.count {
      let length = Int(bytes[index]) << 16 | Int(bytes[index + 1]) << 8 | Int(bytes[index + 2])
      types.append(bytes[index + 3])
      last = Array(bytes[index..<min(index + 9 + length, bytes.count)])
      index += 9 + length
    }
    return (types, last)
  }

  private func headers(
    stream: UInt8, flags: UInt8, method: String = "GET", path: String = "/../x"
  ) throws -> ByteBuffer {
    var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
    var block = ByteBuffer()
    let fields = [(":method", method), (":scheme", "https"), (":authority", "h"), (":path", path)]
    try encoder.encode(headers: HPACKHeaders(fields), to: &block)
    return ByteBuffer(
      bytes: [0, 0, UInt8(block.readableBytes), 1, flags, 0, 0, 0, stream] + Array(block.readableBytesView))
  }

  @Test func aMinuteWithoutAStreamEndsTheConnectionInTwoSteps() async throws {
    let gateway = try await TestGateway(routes: [])
    try onOneThread(gateway) { channel in
      _ = try frames(channel)
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(59_900))
      #expect(try !frames(channel).types.contains(7) && channel.isActive)
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(200))
      #expect(try frames(channel).types.contains(7), "it says GOAWAY first")
      // Attack: a client that never acknowledges the final frames.
      channel.embeddedEventLoop.advanceTime(by: .seconds(7))
      #expect(!channel.isActive)
    }
    await gateway.stop()
  }

  @Test func aStreamKeepsItUntilAMinuteAfterItsEnd() async throws {
    let gateway = try await TestGateway(routes: [])
    try onOneThread(gateway) { channel in
      channel.embeddedEventLoop.advanceTime(by: .seconds(50))
      try channel.writeInbound(try headers(stream: 1, flags: 5))
      #expect(try frames(channel).types.contains(1), "the answer's head")
      channel.embeddedEventLoop.advanceTime(by: .seconds(50))
      #expect(try !frames(channel).types.contains(7) && channel.isActive)
      channel.embeddedEventLoop.advanceTime(by: .seconds(11))
      #expect(try frames(channel).types.contains(7))
    }
    await gateway.stop()
  }

  /// Attack: streams with unfinished bodies for the gateway itself.
  @Test func aStreamThatWaitsForItsBodyEndsToo() async throws {
    let gateway = try await TestGateway(routes: [])
    try onOneThread(gateway) { channel in
      _ = try frames(channel)
      try channel.writeInbound(try headers(stream: 1, flags: 4, method: "POST", path: "/auth/login"))
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(9900))
      #expect(try !frames(channel).types.contains(1))
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(300))
      let answer = try frames(channel)
      #expect(answer.types.contains(1), "408")
      channel.embeddedEventLoop.advanceTime(by: .seconds(3))
      #expect(try frames(channel).types.contains(3) || answer.types.contains(3), "and asked to stop")
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
    ) { channel in
      try channel.writeInbound(try headers(stream: 1, flags: 5, path: "/auth/login"))
    }
    #expect(addresses.withLock { $0 } == ["192.0.2.1"])
    await gateway.stop()
  }

  /// A connection and its streams refer to each other.
  @Test func closedConnectionWithAnOpenStreamIsReleased() async throws {
    let gateway = try await TestGateway(routes: [])
    try onOneThread(gateway) { channel in
      weak let connection = try channel.pipeline.syncOperations.handler(type: HTTP2Connection.self)
      // A POST for the gateway itself whose body is missing, and a complete request.
      try channel.writeInbound(try headers(stream: 1, flags: 4, method: "POST", path: "/auth/login"))
      try channel.writeInbound(try headers(stream: 3, flags: 5))
      #expect(connection != nil)
      _ = try? channel.finish(acceptAlreadyClosed: true)
      #expect(connection == nil)
    }
    await gateway.stop()
  }

  /// Attack: zero windows. A client opens streams and never accepts any bytes of their responses.
  @Test func streamWithAnUnreadResponseIsReset() async throws {
    let gateway = try await TestGateway(routes: [])
    try onOneThread(gateway) { channel in
      // SETTINGS_INITIAL_WINDOW_SIZE = 0.
      try channel.writeInbound(ByteBuffer(bytes: [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]))
      _ = try frames(channel)
      try channel.writeInbound(try headers(stream: 1, flags: 5))
      #expect(try frames(channel).types == [1], "the head, and no body")
      channel.embeddedEventLoop.advanceTime(by: .seconds(50))
      #expect(try !frames(channel).types.contains(3))
      channel.embeddedEventLoop.advanceTime(by: .seconds(90))
      #expect(try frames(channel).types.contains(3) || !channel.isActive)
    }
    await gateway.stop()
  }
}
