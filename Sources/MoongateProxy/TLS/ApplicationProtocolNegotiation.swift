import NIOCore

/// Refuses a TLS handshake whose ALPN extension names no protocol of ours (RFC 7301 section 3.2).
///
/// swift-nio-ssl answers such a handshake as if the extension were not there: its ALPN callback can only return "no
/// acknowledgement". So the ClientHello is read here, before the TLS library has it. The alert is a plaintext record:
/// no keys exist at this point of a handshake. A ClientHello without the extension passes, as does everything that this
/// cannot read, for the TLS library to refuse.
///
/// Attack (ALPACA): a browser is led to this listener by somebody who relays its connection to another service of the
/// same certificate, FTP or SMTP, whose answers it would then take for ours. Strict ALPN on every service ends that.
final class ApplicationProtocolNegotiation: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The protocols of the public listener, the preferred one first.
  static let supported = ["h2", "http/1.1"]

  /// A fatal `no_application_protocol` (120) in a record of its own.
  private static let alert: [UInt8] = [21, 3, 3, 0, 2, 2, 120]

  private let loop: ProxyLoop
  private var held = ByteBuffer()
  private var isRefused = false

  init(loop: ProxyLoop) { self.loop = loop }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    if isRefused { return }
    if held.readableBytes == 0 { held = bytes } else { held.writeBuffer(&bytes) }
    switch ClientHello.offeredProtocols(held.readableBytesView) {
    case .incomplete: return
    case .offered(let names)
    where !names.contains(where: { name in Self.supported.contains { name.elementsEqual($0.utf8) } }): refuse(context)
    case .offered, .notOffered: pass(context)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    held = ByteBuffer()
    context.fireChannelInactive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let event = event as? ChannelEvent, event == .inputClosed {
      if isRefused { return context.close(promise: nil) }
      // Half a hello and an end: the TLS library is told of both.
      pass(context)
    }
    context.fireUserInboundEventTriggered(event)
  }

  private func pass(_ context: ChannelHandlerContext) {
    let bytes = held
    held = ByteBuffer()
    if bytes.readableBytes > 0 {
      context.fireChannelRead(wrapInboundOut(bytes))
      context.fireChannelReadComplete()
    }
    context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
  }

  /// Ends our side only: with bytes of the client unread, a full close would let a reset overtake the alert. The
  /// deadline of the handshake closes the rest.
  private func refuse(_ context: ChannelHandlerContext) {
    isRefused = true
    held = ByteBuffer()
    loop.numbers.failedHandshakes += 1
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: Self.alert)), promise: nil)
    context.close(mode: .output, promise: nil)
  }
}
