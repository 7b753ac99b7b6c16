import MoongateCore
import NIOCore
import NIOTLS

/// Waits for the TLS handshake, then adds the handlers of the negotiated protocol (RFC 7301).
final class TLSHandshakeHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer

  /// The time limit of a handshake. Attack: connections that start a handshake and never complete it.
  private static let timeLimit: TimeAmount = .seconds(10)

  private let loop: ProxyLoop
  private let inner: @Sendable (any Channel) throws -> Void
  private var late: Scheduled<Void>?
  private var permit: ConnectionPermit?
  private var isQuiescing = false

  /// - Parameter permit: the connection's permit if it has one. It is released at the end.
  init(loop: ProxyLoop, permit: ConnectionPermit? = nil, inner: @escaping @Sendable (any Channel) throws -> Void) {
    self.loop = loop
    self.permit = permit
    self.inner = inner
  }

  func handlerAdded(context: ChannelHandlerContext) {
    let channel = context.channel
    late = context.eventLoop.scheduleTask(in: Self.timeLimit) { channel.close(promise: nil) }
    if channel.isActive { admit(context) }
  }

  /// Called before the handshake.
  func channelActive(context: ChannelHandlerContext) {
    admit(context)
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    permit?.end()
    context.fireChannelInactive()
  }

  private func admit(_ context: ChannelHandlerContext) {
    guard permit == nil else { return }
    permit = loop.admit(ConnectionPeer(context.channel))
    if permit == nil { context.close(promise: nil) }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    late?.cancel()
    late = nil
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let event = event as? TLSUserEvent, case .handshakeCompleted(let agreed) = event {
      return enter(context, agreed)
    }
    // A client that has started a handshake has a request to send. It is answered as the last one.
    if event is ChannelShouldQuiesceEvent { isQuiescing = true }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    loop.metrics.failedHandshakes += 1
    context.close(promise: nil)
  }

  private func enter(_ context: ChannelHandlerContext, _ agreed: String?) {
    let channel = context.channel
    guard let permit else { return context.close(promise: nil) }
    do {
      if agreed == "h2" {
        try HTTP2Connection.add(to: channel, loop: loop, permit: permit, inner: inner)
        // One of its streams may be an event stream, which has no timeout.
        Keepalive.enable(channel)
      } else {
        let inner = inner
        try channel.pipeline.syncOperations.addHandler(
          ClientConnection(loop: loop, isSecure: true, permit: permit) { try inner(channel) })
      }
    } catch {
      return context.close(promise: nil)
    }
    if isQuiescing { context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
    // The added handlers follow this one and receive all further events.
    context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
  }
}
