import MoongateCore
import NIOCore

/// Reads the PROXY protocol header of a trusted proxy, and adds the handlers of the connection for the client that the
/// header states (`proxy_protocol` in gateway.lua). It is the first handler, before TLS and HTTP.
///
/// Of everybody else, it only compares the first bytes, behind which the handlers of the connection wait already.
///
/// Attack: a client sends a header itself, to have the address of somebody else, or a second one through the proxy. No
/// byte of either reaches TLS or HTTP. A proxy that could leave its header out would pass on that of its client.
final class ProxyProtocolHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  /// The time limit of a header. Attack: a connection that never completes one, and so never reaches another limit.
  private static let timeLimit: TimeAmount = .seconds(10)

  private enum Phase {
    /// The connection is not active yet.
    case opening
    /// The proxy has to send a header. There are no other handlers.
    case readsHeader(ConnectionPermit)
    /// The other handlers are there, and no header may follow.
    case checksClient
    /// The connection is being closed.
    case ended
  }

  private let loop: ProxyLoop
  private let addHandlers: (ConnectionPermit?) throws -> Void
  private var phase = Phase.opening
  /// The client as far as it is known.
  private var peer = ConnectionPeer(.unspecified)
  /// Bytes that are not passed on yet.
  private var held = ByteBuffer()
  private var hasHeader = false
  private var isQuiescing = false
  private var late: Scheduled<Void>?

  /// - Parameter addHandlers: adds the other handlers of the connection. It gets the permit of a client that a header
  ///   states. Without one, the handlers acquire a permit for the peer.
  init(loop: ProxyLoop, addHandlers: @escaping (ConnectionPermit?) throws -> Void) {
    self.loop = loop
    self.addHandlers = addHandlers
  }

  // MARK: ChannelHandler

  func handlerAdded(context: ChannelHandlerContext) { if context.channel.isActive { open(context) } }

  func handlerRemoved(context: ChannelHandlerContext) { late?.cancel() }

  func channelActive(context: ChannelHandlerContext) {
    // Added handlers find the channel active.
    context.fireChannelActive()
    open(context)
  }

  func channelInactive(context: ChannelHandlerContext) {
    release()
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    if case .ended = phase { return }
    if held.readableBytes == 0 { held = bytes } else { held.writeBuffer(&bytes) }
    if case .readsHeader(let permit) = phase { readHeader(context, permit) }
    if case .checksClient = phase { checkClient(context) }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch (phase, event) {
    case (.readsHeader, let event as ChannelEvent) where event == .inputClosed:
      if held.readableBytes > 0 { refuse(context, .unfinished) } else { end(context) }
    case (.checksClient, let event as ChannelEvent) where event == .inputClosed: pass(context, then: event)
    case (.opening, is ChannelShouldQuiesceEvent): isQuiescing = true
    case (.readsHeader, is ChannelShouldQuiesceEvent):
      // A proxy without a header delays a shutdown no longer than an idle connection.
      isQuiescing = true
      limitTime(context, to: TimeAmount(loop.shared.idleWhileDraining))
    default: context.fireUserInboundEventTriggered(event)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if case .readsHeader = phase { end(context) } else { context.fireErrorCaught(error) }
  }

  // MARK: the phases

  private func open(_ context: ChannelHandlerContext) {
    guard case .opening = phase else { return }
    peer = ConnectionPeer(context.channel)
    guard ForwardedClient.trusts(peer.address, loop.currentPlan().trustedProxies) else { return serve(context, nil) }
    guard let permit = loop.admit(peer) else { return end(context) }
    phase = .readsHeader(permit)
    limitTime(context, to: isQuiescing ? TimeAmount(loop.shared.idleWhileDraining) : Self.timeLimit)
  }

  private func limitTime(_ context: ChannelHandlerContext, to time: TimeAmount) {
    late?.cancel()
    late = context.eventLoop.assumeIsolated().scheduleTask(in: time) { [self] in
      guard case .readsHeader = phase else { return }
      if isQuiescing { end(context) } else { refuse(context, held.readableBytes > 0 ? .unfinished : .missing) }
    }
  }

  private func readHeader(_ context: ChannelHandlerContext, _ permit: ConnectionPermit) {
    switch ProxyHeader.read(held.readableBytesView) {
    case .incomplete: return
    case .refused(let fault): refuse(context, fault)
    case .complete(let length, let client):
      held.moveReaderIndex(forwardBy: length)
      hasHeader = true
      late?.cancel()
      permit.end()
      peer = client.map { ConnectionPeer($0) } ?? ConnectionPeer(peer.address, mayForward: false)
      // Counted as a connection of the client from now on.
      guard let permit = loop.admit(peer) else { return end(context) }
      serve(context, permit)
    }
  }

  /// Adds the other handlers of the connection.
  private func serve(_ context: ChannelHandlerContext, _ permit: ConnectionPermit?) {
    phase = .checksClient
    do {
      try addHandlers(permit)
    } catch {
      permit?.end()
      return end(context)
    }
    if isQuiescing { context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
  }

  /// Compares the client's first bytes with the beginning of a header.
  private func checkClient(_ context: ChannelHandlerContext) {
    // An added handler closes a connection over a limit.
    guard context.channel.isActive else { return }
    switch ProxyHeader.isHeader(held.readableBytesView) {
    case nil: return
    case true?: refuse(context, hasHeader ? .second : .untrusted)
    case false?: pass(context)
    }
  }

  /// Passes the client's first bytes on, and all later ones directly.
  /// - Parameter event: what comes after the bytes. A removed handler passes no events.
  private func pass(_ context: ChannelHandlerContext, then event: ChannelEvent? = nil) {
    let bytes = held
    held = ByteBuffer()
    if bytes.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(bytes)) }
    if let event {
      context.fireChannelReadComplete()
      context.fireUserInboundEventTriggered(event)
    }
    context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
  }

  private func refuse(_ context: ChannelHandlerContext, _ fault: ProxyHeaderFault) {
    loop.shared.proxyHeaders.report(LoggedProxyHeader(fault: fault, peer: peer.address))
    end(context)
  }

  private func end(_ context: ChannelHandlerContext) {
    release()
    context.close(promise: nil)
  }

  private func release() {
    if case .readsHeader(let permit) = phase { permit.end() }
    phase = .ended
    held = ByteBuffer()
    late?.cancel()
  }
}
