import HummingbirdCore
import Logging
import MoongateProxy
import NIOCore
import NIOHTTPTypes

/// The public listener's connections: the proxy's own pipeline, with Hummingbird behind it for the gateway's own paths.
///
///     Application(router: …, server: HTTPServerBuilder { GatewayChannel(proxy: proxy, responder: $0) }, …)
///
/// The part that belongs to Hummingbird is made when a connection's first request for the gateway itself comes: a
/// connection that is only proxied stays small.
package struct GatewayChannel: HTTPChannelHandler {
  package typealias Value = GatewayConnection

  private let proxy: Proxy
  private let isSecure: Bool
  package let responder: HTTPChannelHandler.Responder

  /// - Parameters:
  ///   - isSecure: whether TLS lies before it.
  ///   - responder: answers requests for the gateway's own paths, whole and in order.
  package init(proxy: Proxy, isSecure: Bool = false, responder: @escaping HTTPChannelHandler.Responder) {
    self.proxy = proxy
    self.isSecure = isSecure
    self.responder = responder
  }

  package func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<GatewayConnection> {
    channel.eventLoop.makeCompletedFuture {
      let inner = channel.eventLoop.makePromise(of: NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>?.self)
      let handler = proxy.makeConnectionHandler(for: channel, isSecure: isSecure) {
        inner.succeed(
          try NIOAsyncChannel(wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true)))
      }
      try channel.pipeline.syncOperations.addHandler(handler)
      // Where the inner part was made, the promise is kept already and this has no effect.
      channel.closeFuture.whenComplete { _ in inner.succeed(nil) }
      return GatewayConnection(channel: channel, inner: inner.futureResult)
    }
  }

  package func handle(value: GatewayConnection, logger: Logger) async {
    await withTaskCancellationHandler {
      guard let inner = try? await value.inner.get() else { return }
      await handleHTTP(asyncChannel: inner, logger: logger)
    } onCancel: {
      // The time to drain is over: what is proxied now has nobody here that could end it.
      value.channel.close(promise: nil)
    }
  }
}

/// One connection of the public listener.
package struct GatewayConnection: ServerChildChannelValue {
  package let channel: any Channel
  /// What Hummingbird serves, once a request for the gateway itself has come; nil where the connection ended without one.
  let inner: EventLoopFuture<NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>?>
}
