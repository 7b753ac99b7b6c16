import NIOCore
import NIOEmbedded

@testable import MoongateProxy

/// A client connection and an upstream connection of the gateway's first route, on one event loop whose clock the test
/// controls.
///
/// Use without an `await`, which could change the thread: an embedded channel is bound to its thread.
struct EmbeddedExchange {
  let client = EmbeddedChannel()
  let upstream: EmbeddedChannel
  /// The connection on `upstream`, idle at first.
  let connection: UpstreamHTTP1

  /// - Parameter address: the peer of the client connection.
  init(_ gateway: TestGateway, from address: String = "192.0.2.1") throws {
    try client.pipeline.syncOperations.addHandler(HalfCloser())
    try gateway.proxy.serve(client, tls: nil) { _, _ in }
    client.connect(to: try SocketAddress(ipAddress: address, port: 1), promise: nil)
    let loop = gateway.proxy.loop(for: client.eventLoop)
    let target = loop.currentPlan().routes[0].targets[0]
    connection = UpstreamHTTP1(target: target, spare: loop.spare, ready: nil)
    upstream = EmbeddedChannel(handlers: [HalfCloser(), connection], loop: client.embeddedEventLoop)
    upstream.connect(to: try SocketAddress(ipAddress: "192.0.2.2", port: 2), promise: nil)
    target.putIdle(connection)
  }

  func pass(_ time: TimeAmount) { client.embeddedEventLoop.advanceTime(by: time) }

  func send(_ text: String) throws { try send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) throws { try client.writeInbound(ByteBuffer(bytes: bytes)) }

  func answer(_ text: String) throws { try upstream.writeInbound(ByteBuffer(string: text)) }

  /// The client's received bytes since the last call.
  func got() throws -> String { try Self.written(client) }

  /// The upstream's received bytes since the last call.
  func asked() throws -> String { try Self.written(upstream) }

  /// Sets whether the client accepts more bytes.
  func takes(_ isWritable: Bool) {
    client.isWritable = isWritable
    client.pipeline.fireChannelWritabilityChanged()
  }

  /// The client closes its output.
  func endSending() { client.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }

  func end() { for channel in [client, upstream] { _ = try? channel.finish(acceptAlreadyClosed: true) } }

  private static func written(_ channel: EmbeddedChannel) throws -> String {
    var text = ""
    while let bytes = try channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: bytes) }
    return text
  }
}

/// An embedded channel closes completely, even if only one side is closed.
private final class HalfCloser: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    if mode == .output { promise?.succeed() } else { context.close(mode: mode, promise: promise) }
  }
}
