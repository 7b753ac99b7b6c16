import MoongateCore
import MoongateTesting
import NIOCore
import NIOEmbedded
import Testing

@testable import MoongateProxy

/// TLS clients that leave before the ClientHello is complete.
@Suite struct UnfinishedHelloTests {
  /// What reaches the TLS library.
  private final class Library: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    var received: [UInt8] = []
    var inputIsClosed = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      received += Array(unwrapInboundIn(data).readableBytesView)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      if let event = event as? ChannelEvent, event == .inputClosed { inputIsClosed = true }
    }
  }

  private func onOneThread(_ gateway: TestGateway, _ body: (EmbeddedChannel, Library) throws -> Void) throws {
    let channel = EmbeddedChannel()
    let library = Library()
    try channel.pipeline.syncOperations.addHandlers(
      [ApplicationProtocolNegotiation(loop: gateway.proxy.loop(for: channel.eventLoop)), library])
    channel.connect(to: try SocketAddress(ipAddress: "192.0.2.1", port: 1), promise: nil)
    defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
    try body(channel, library)
  }

  /// Attack: connections that are opened and ended at once. If the TLS library did not see their end, each would keep
  /// its place until the time limit of handshakes.
  @Test(arguments: [[], [22, 3, 1, 2, 0, 1]]) func endOfInputReachesTheTLSLibrary(_ hello: [UInt8]) async throws {
    let gateway = try await TestGateway(routes: [])
    try onOneThread(gateway) { channel, library in
      if !hello.isEmpty { try channel.writeInbound(ByteBuffer(bytes: hello)) }
      channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
      #expect(library.received == hello && library.inputIsClosed)
    }
    await gateway.stop()
  }

  /// Attack: connections that send nothing. They would delay a shutdown until the time limit of handshakes.
  @Test(arguments: [true, false]) func aShutdownWaitsOnlyForClientsThatHaveSentSomething(_ isSilent: Bool) async throws
  {
    let gateway = try await TestGateway(routes: [])
    try onOneThread(gateway) { channel, _ in
      channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(200))
      #expect(channel.isActive, "its hello may be on the way")
      if !isSilent { try channel.writeInbound(ByteBuffer(bytes: [22, 3, 1, 2, 0, 1] as [UInt8])) }
      channel.embeddedEventLoop.advanceTime(by: .milliseconds(100))
      #expect(channel.isActive == !isSilent)
    }
    await gateway.stop()
  }
}
