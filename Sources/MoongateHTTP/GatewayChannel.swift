import HummingbirdCore
import Logging
import MoongateProxy
import NIOCore
import NIOHTTPTypes

/// The public listener's connections: the proxy's own pipeline, with Hummingbird behind it for the gateway's own paths.
///
///     Application(router: …, server: HTTPServerBuilder { GatewayChannel(proxy: proxy, responder: $0) }, …)
///
/// The part that belongs to Hummingbird is made when the first request for the gateway itself comes, on a connection or
/// on a stream of HTTP/2: what is only proxied stays small.
package struct GatewayChannel: HTTPChannelHandler {
  package typealias Value = GatewayConnection

  private let proxy: Proxy
  private let tls: ServerTLS?
  package let responder: HTTPChannelHandler.Responder

  /// - Parameters:
  ///   - tls: the certificate, where the listener speaks TLS.
  ///   - responder: answers requests for the gateway's own paths, whole and in order.
  package init(proxy: Proxy, tls: ServerTLS? = nil, responder: @escaping HTTPChannelHandler.Responder) {
    self.proxy = proxy
    self.tls = tls
    self.responder = responder
  }

  package func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<GatewayConnection> {
    channel.eventLoop.makeCompletedFuture {
      try SocketBuffers.bound(channel)
      if let tls {
        try proxy.addTLS(tls, to: channel) { try serve($0, logger) }
      } else {
        try channel.pipeline.syncOperations.addHandler(
          proxy.makeConnectionHandler(for: channel, isSecure: false) { try serve(channel, logger) })
      }
      return GatewayConnection(channel: channel)
    }
  }

  /// Hands what comes for the gateway itself to Hummingbird. Its work ends with the channel.
  private func serve(_ channel: any Channel, _ logger: Logger) throws {
    let inner = try NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>(
      wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
    Task { await handleHTTP(asyncChannel: inner, logger: logger) }
  }

  package func handle(value: GatewayConnection, logger: Logger) async {
    await withTaskCancellationHandler {
      try? await value.channel.closeFuture.get()
    } onCancel: {
      // The time to drain is over: what is still at work has nobody else that could end it.
      value.channel.close(promise: nil)
    }
  }
}

/// One connection of the public listener.
package struct GatewayConnection: ServerChildChannelValue {
  package let channel: any Channel
}
