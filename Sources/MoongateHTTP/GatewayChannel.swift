import HummingbirdCore
import Logging
import MoongateCore
import MoongateProxy
import NIOCore
import NIOHTTPTypes

/// The channel of a connection to the public listener: the proxy's pipeline, with Hummingbird for the gateway's own
/// paths.
///
///     Application(router: …, server: HTTPServerBuilder { GatewayChannel(proxy: proxy, responder: $0) }, …)
///
/// The Hummingbird part is created for the first request to the gateway itself, on a connection or on an HTTP/2 stream.
/// Connections that only proxy requests stay small.
package struct GatewayChannel: HTTPChannelHandler, SelfServingChannel {
  package typealias Value = GatewayConnection

  private let proxy: Proxy
  private let tls: ServerTLS?
  package let responder: HTTPChannelHandler.Responder

  /// - Parameters:
  /// - tls: the certificate; nil if the listener does not use TLS.
  /// - responder: answers requests for the gateway's own paths, one at a time and in order.
  package init(proxy: Proxy, tls: ServerTLS? = nil, responder: @escaping HTTPChannelHandler.Responder) {
    self.proxy = proxy
    self.tls = tls
    self.responder = responder
  }

  package func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<GatewayConnection> {
    channel.eventLoop.makeCompletedFuture {
      try SocketBuffers.bound(channel)
      try proxy.serve(channel, tls: tls) { try serve($0, of: $1, logger) }
      return GatewayConnection(channel: channel)
    }
  }

  /// Passes requests for the gateway itself to Hummingbird. Its task ends with the channel.
  private func serve(_ channel: any Channel, of client: ConnectionPeer, _ logger: Logger) throws {
    let inner = try NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>(
      wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
    Task {
      await ConnectionContext.$client.withValue(client) { await handleHTTP(asyncChannel: inner, logger: logger) }
    }
  }

  /// Waits for the end of the connection, which its handlers serve. `ListeningServer` does not need it.
  package func handle(value: GatewayConnection, logger: Logger) async {
    await withTaskCancellationHandler {
      try? await value.channel.closeFuture.get()
    } onCancel: {
      value.channel.close(promise: nil)
    }
  }
}

/// A connection of the public listener.
package struct GatewayConnection: ServerChildChannelValue {
  package let channel: any Channel
}
