import NIOCore

/// Refuses a TLS handshake whose ALPN extension contains no supported protocol (RFC 7301 section 3.2).
///
/// swift-nio-ssl treats such a handshake as if the extension were missing, because its ALPN callback can only return
/// "no acknowledgement". Therefore the ClientHello is read here first. The alert is a plaintext record, because there
/// are no keys yet. A ClientHello without the extension, and anything that cannot be parsed here, is passed to the TLS
/// library.
///
/// Attack (ALPACA): an attacker redirects a browser's connection for another service with the same certificate, such as
/// FTP or SMTP, to this listener or from it, so that the browser takes one service's responses for the other's. Strict
/// ALPN on every service prevents this.
final class ApplicationProtocolNegotiation: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The protocols of the public listener, in order of preference.
  static let supported = ["h2", "http/1.1"]

  /// A fatal `no_application_protocol` alert (120) in a separate record.
  private static let alert: [UInt8] = [21, 3, 3, 0, 2, 2, 120]

  private let loop: ProxyLoop
  private var held = ByteBuffer()
  private var isRefused = false
  private var silent: Scheduled<Void>?

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
      // The client ended inside the ClientHello: pass both to the TLS library, which closes the connection.
      return pass(context, then: event)
    }
    if event is ChannelShouldQuiesceEvent { closeIfSilent(context) }
    context.fireUserInboundEventTriggered(event)
  }

  func handlerRemoved(context: ChannelHandlerContext) { silent?.cancel() }

  /// - Parameter event: what comes after the held bytes. A removed handler passes no events.
  private func pass(_ context: ChannelHandlerContext, then event: ChannelEvent? = nil) {
    let bytes = held
    held = ByteBuffer()
    if bytes.readableBytes > 0 {
      context.fireChannelRead(wrapInboundOut(bytes))
      context.fireChannelReadComplete()
    }
    if let event { context.fireUserInboundEventTriggered(event) }
    context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
  }

  /// Does not let clients that send nothing delay a shutdown. They have as long as idle connections have.
  private func closeIfSilent(_ context: ChannelHandlerContext) {
    let channel = context.channel
    silent = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(loop.shared.idleWhileDraining)) { [self] in
      if held.readableBytes == 0, !isRefused { channel.close(promise: nil) }
    }
  }

  /// Closes only the output: with unread client bytes, a full close would send a reset that overtakes the alert. The
  /// handshake deadline closes the rest.
  private func refuse(_ context: ChannelHandlerContext) {
    isRefused = true
    held = ByteBuffer()
    loop.metrics.failedHandshakes += 1
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: Self.alert)), promise: nil)
    context.close(mode: .output, promise: nil)
  }
}
