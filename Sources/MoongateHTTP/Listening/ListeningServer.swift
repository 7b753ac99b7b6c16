import Hummingbird
import HummingbirdCore
import Logging
import MoongateCore
import NIOCore
import NIOExtras
import NIOPosix
import ServiceLifecycle

/// Accepts the connections of a socket and serves them.
///
/// Hummingbird's own server binds an address itself. This one takes a socket, which systemd or a previous process can
/// pass.
struct ListeningServer<Child: ServerChildChannel>: Service {
  let socket: ListeningSocket
  /// Serves a connection.
  let child: Child
  let eventLoops: any EventLoopGroup
  let logger: Logger
  /// Pauses and resumes accepting; nil if that is not needed.
  var gate: AcceptGate?
  /// Called once connections are accepted.
  let onListening: @Sendable () async -> Void

  /// Serves until shutdown, then until the last connection has ended. Cancellation closes the remaining connections.
  /// - Throws: `IOError` or `ListeningSocket.Problem` if it cannot accept on the socket.
  func run() async throws {
    let quiescing = ServerQuiescingHelper(group: eventLoops)
    let channel = try await accepting(quiescing)
    // The library has shortened the queue of the socket that it was given.
    socket.setQueueLength()
    gate?.attach(channel.channel) { [socket] in
      socket.release()
      quiescing.initiateShutdown(promise: nil)
    }
    await withGracefulShutdownHandler {
      await onListening()
      await serve(channel)
    } onGracefulShutdown: {
      socket.release()
      quiescing.initiateShutdown(promise: nil)
    }
  }

  private func accepting(_ quiescing: ServerQuiescingHelper) async throws -> NIOAsyncChannel<Child.Value, Never> {
    let descriptor = try socket.duplicate()
    return try await ServerBootstrap(group: eventLoops)
      .childChannelOption(ChannelOptions.allowRemoteHalfClosure, value: true)
      .serverChannelInitializer { [gate] channel in
        channel.eventLoop.makeCompletedFuture {
          if let gate { try channel.pipeline.syncOperations.addHandler(AcceptGateHandler(gate)) }
          try channel.pipeline.syncOperations.addHandler(quiescing.makeServerChannelHandler(channel: channel))
        }
      }
      .bind(descriptor) { [child, logger] channel in child.setup(channel: channel, logger: logger) }
  }

  private func serve(_ channel: NIOAsyncChannel<Child.Value, Never>) async {
    await withDiscardingTaskGroup { [child, logger] group in
      do {
        try await channel.executeThenClose { connections in
          for try await connection in connections {
            group.addTask { await child.handle(value: connection, logger: logger) }
          }
        }
      } catch {
        logger.error("connections are no longer accepted", metadata: ["why": "\(error)"])
      }
    }
  }
}

extension GatewayResponder {
  /// The responder of a connection's requests.
  /// - Parameter clock: provides the Date header of answers.
  func serving(clock: any GatewayClock, logger: Logger) -> HTTPChannelHandler.Responder {
    { request, writer, channel in
      var response = try await respond(
        to: request,
        context: ConnectionContext(source: ApplicationRequestContextSource(channel: channel, logger: logger)))
      response.headers[.date] = clock.now().fixdate
      try await writer.write(response: response.head, body: response.body)
    }
  }
}

/// An application on a listener.
package protocol ListeningApplication: Sendable {
  /// Serves the connections of a socket until shutdown.
  /// - Parameters:
  /// - gate: pauses and resumes accepting.
  /// - onListening: called once connections are accepted.
  /// - Throws: if it cannot accept on the socket.
  func serve(_ socket: ListeningSocket, gate: AcceptGate?, onListening: @escaping @Sendable () async -> Void)
    async throws
}

extension ServerChildChannel {
  /// Serves the connections of a socket with this channel.
  func serve(
    _ socket: ListeningSocket, on eventLoops: any EventLoopGroup, logger: Logger, gate: AcceptGate? = nil,
    onListening: @escaping @Sendable () async -> Void
  ) async throws {
    try await ListeningServer(
      socket: socket, child: self, eventLoops: eventLoops, logger: logger, gate: gate, onListening: onListening
    ).run()
  }
}
