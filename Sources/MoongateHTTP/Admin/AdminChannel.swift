import HummingbirdCore
import Logging
import MoongateCore
import NIOCore
import NIOHTTP1

/// The channel of a connection to the admin listener.
struct AdminChannel: ServerChildChannel {
  private let http: HTTP1Channel
  private let address: ListenAddress

  /// - Parameter address: the address of the listener.
  init(_ address: ListenAddress, responder: @escaping HTTPChannelHandler.Responder) {
    http = HTTP1Channel(responder: responder)
    self.address = address
  }

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP1Channel.Value> {
    http.setup(channel: channel, logger: logger).flatMapThrowing { [address] value in
      let pipeline = channel.pipeline.syncOperations
      let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
      try pipeline.addHandler(HostOfOldRequests(address.description), position: .after(decoder))
      return value
    }
  }

  func handle(value: HTTP1Channel.Value, logger: Logger) async { await http.handle(value: value, logger: logger) }
}

/// Gives HTTP/1.0 requests without Host, as simple health checks send them, the listener's own host (RFC 9112
/// section 3.3). Browsers always send Host, so this helps no page of another site (`AdminGuard`).
private final class HostOfOldRequests: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart

  private let host: String

  init(_ host: String) { self.host = host }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .head(var head) = unwrapInboundIn(data), head.version == .http1_0, !head.headers.contains(name: "Host")
    else { return context.fireChannelRead(data) }
    head.headers.add(name: "Host", value: host)
    context.fireChannelRead(wrapInboundOut(.head(head)))
  }
}
