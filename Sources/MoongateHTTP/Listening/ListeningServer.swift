import Hummingbird
import HummingbirdCore
import Logging
import MoongateCore
import NIOCore
import NIOPosix
import ServiceLifecycle

/// Accepts the connections of a socket and serves them.
///
/// Hummingbird's own server binds an address itself. This one takes a socket, which systemd or a previous process can
/// pass.
struct ListeningServer: Service {
  let socket: ListeningSocket
  /// Adds the handlers that serve a connection.
  let begin: @Sendable (any Channel) -> EventLoopFuture<Void>
  let eventLoops: any EventLoopGroup
  let logger: Logger
  /// Pauses and resumes accepting; nil if that is not needed.
  var gate: AcceptGate?
  /// Called once connections are accepted.
  let onListening: @Sendable () async -> Void

  /// Serves until shutdown, then until the last connection has ended. Cancellation closes the remaining connections.
  /// - Throws: `IOError` or `ListeningSocket.Problem` if it cannot accept on the socket.
  func run() async throws {
    let connections = OpenConnections(on: eventLoops)
    let listener = try await accepting(connections)
    // The library has shortened the queue of the socket that it was given.
    socket.setQueueLength()
    let end: @Sendable () -> Void = { [socket] in
      socket.release()
      connections.end(listener)
    }
    gate?.attach(listener, giveUp: end)
    await withTaskCancellationHandler {
      await withGracefulShutdownHandler {
        await onListening()
        try? await connections.ended.get()
      } onGracefulShutdown: {
        end()
      }
    } onCancel: {
      // The drain time is over, and nothing else would close these connections.
      end()
      connections.close()
    }
  }

  private func accepting(_ connections: OpenConnections) async throws -> any Channel {
    let descriptor = try socket.duplicate()
    let listener = try await ServerBootstrap(group: eventLoops)
      .childChannelOption(ChannelOptions.allowRemoteHalfClosure, value: true)
      .serverChannelInitializer { [gate, logger] channel in
        channel.eventLoop.makeCompletedFuture {
          if let gate { try channel.pipeline.syncOperations.addHandler(AcceptGateHandler(gate)) }
          try channel.pipeline.syncOperations.addHandler(AcceptPause(gate, logger))
        }
      }
      .childChannelInitializer { [begin] channel in begin(channel).map { connections.add(channel) } }
      .withBoundSocket(descriptor).get()
    listener.closeFuture.whenComplete { [logger] _ in
      if connections.areEnding { return }
      logger.critical("connections are no longer accepted")
      connections.end(listener)
    }
    return listener
  }
}

/// Accepts nothing for a second after a connection could not be accepted, for lack of descriptors for example, and logs
/// why. The library would try again at once, without end, on an event loop that also serves connections; its own
/// `AcceptBackoffHandler` does not stop that.
private final class AcceptPause: ChannelInboundHandler {
  typealias InboundIn = any Channel

  private static let length: TimeAmount = .seconds(1)

  private let gate: AcceptGate?
  private let logger: Logger

  init(_ gate: AcceptGate?, _ logger: Logger) {
    self.gate = gate
    self.logger = logger
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    logger.critical("a connection cannot be accepted", metadata: ["why": "\(error)"])
    let channel = context.channel
    try? channel.syncOptions?.setOption(.autoRead, value: false)
    context.eventLoop.assumeIsolated().scheduleTask(in: Self.length) { [gate] in
      guard !(gate?.isShut ?? false) else { return }
      try? channel.syncOptions?.setOption(.autoRead, value: true)
    }
  }
}

extension GatewayResponder {
  /// The responder of a connection's requests.
  /// - Parameter clock: provides the Date header of answers.
  func serving(clock: any GatewayClock, logger: Logger) -> HTTPChannelHandler.Responder {
    { request, writer, channel in
      let end = ResponseEnd()
      defer { end.reach() }
      let context = ConnectionContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
      var response = try await ResponseEnd.$current.withValue(end) { try await respond(to: request, context: context) }
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

/// A connection that the handlers of its channel serve, without a task.
protocol SelfServingChannel: ServerChildChannel {}

extension ServerChildChannel {
  /// Serves the connections of a socket with this channel.
  func serve(
    _ socket: ListeningSocket, on eventLoops: any EventLoopGroup, logger: Logger, gate: AcceptGate? = nil,
    onListening: @escaping @Sendable () async -> Void
  ) async throws {
    let (connections, accepted) = AsyncStream.makeStream(of: Value.self)
    let needsTask = !(self is any SelfServingChannel)
    let server = ListeningServer(
      socket: socket,
      begin: { channel in
        setup(channel: channel, logger: logger).map { if needsTask { accepted.yield($0) } }
      }, eventLoops: eventLoops, logger: logger, gate: gate, onListening: onListening)
    try await withThrowingDiscardingTaskGroup { group in
      // Handlers learn from their task of a shutdown and of the end of the drain time.
      group.addTask {
        await withDiscardingTaskGroup { handlers in
          for await connection in connections {
            handlers.addTask { await handle(value: connection, logger: logger) }
          }
        }
      }
      defer { accepted.finish() }
      try await server.run()
    }
  }
}
