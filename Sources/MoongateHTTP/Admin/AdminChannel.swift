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
      try pipeline.addHandler(OldRequests(host: address.description), position: .after(decoder))
      return value
    }
  }

  func handle(value: HTTP1Channel.Value, logger: Logger) async { await http.handle(value: value, logger: logger) }
}

/// Serves HTTP/1.0 requests, as simple health checks send them, as HTTP/1.1 requests with the same meaning.
///
/// A request without Host is for the listener's own host (RFC 9112 section 3.3). Browsers always send Host, so this
/// helps no page of another site (`AdminGuard`). The connection closes after the response, unless the client asks to
/// keep it open (section 9.3).
private final class OldRequests: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart

  private let host: String

  init(host: String) { self.host = host }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .head(var head) = unwrapInboundIn(data), head.version == .http1_0 else {
      return context.fireChannelRead(data)
    }
    if !head.headers.contains(name: "Host") { head.headers.add(name: "Host", value: host) }
    if !head.isKeepAlive { head.headers.replaceOrAdd(name: "Connection", value: "close") }
    context.fireChannelRead(wrapInboundOut(.head(head)))
  }
}
