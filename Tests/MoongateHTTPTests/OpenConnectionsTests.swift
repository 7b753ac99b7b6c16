import Dispatch
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import MoongateHTTP

/// The end of a listener, whose connections finish first.
@Suite struct OpenConnectionsTests {
  /// Reports when a connection should finish.
  private final class FinishingListener: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    let hear: @Sendable () -> Void

    init(_ hear: @escaping @Sendable () -> Void) { self.hear = hear }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      if event is ChannelShouldQuiesceEvent { hear() }
    }
  }

  private let group = MultiThreadedEventLoopGroup.singleton
  private let connections = OpenConnections(on: MultiThreadedEventLoopGroup.singleton)

  /// A listener and a client, whose connection the listener knows.
  private func connected(_ hear: @escaping @Sendable () -> Void) async throws -> (any Channel, client: any Channel) {
    let known = group.next().makePromise(of: Void.self)
    let listener = try await ServerBootstrap(group: group)
      .childChannelInitializer { [connections] channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(FinishingListener(hear))
          connections.add(channel)
          known.succeed()
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let address = try #require(listener.localAddress)
    let client = try await ClientBootstrap(group: group).connect(to: address).get()
    try await known.futureResult.get()
    return (listener, client)
  }

  @Test func aListenerEndsAfterItsConnections() async throws {
    let (heard, hears) = AsyncStream.makeStream(of: Void.self)
    let (listener, client) = try await connected { hears.yield() }
    let hasEnded = Mutex(false)
    connections.ended.whenSuccess { hasEnded.withLock { $0 = true } }
    #expect(!connections.areEnding)
    connections.end(listener)
    #expect(connections.areEnding)
    for await _ in heard { break }
    try await listener.closeFuture.get()
    // A turn of each event loop, after which the listener would have ended.
    for loop in group.makeIterator() { try await loop.submit {}.get() }
    for loop in group.makeIterator() { try await loop.submit {}.get() }
    #expect(hasEnded.withLock { !$0 })
    try await client.close()
    try await connections.ended.get()
    // Ending twice, as an upgrade and a shutdown do, changes nothing.
    connections.end(listener)
  }

  @Test func connectionsThatDoNotFinishAreClosed() async throws {
    let (listener, client) = try await connected {}
    connections.end(listener)
    connections.close()
    try await connections.ended.get()
    try await client.closeFuture.get()
  }

  @Test func aListenerWithoutConnectionsEndsAtOnce() async throws {
    let listener = try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0).get()
    connections.end(listener)
    try await connections.ended.get()
    try await listener.closeFuture.get()
  }

  /// Each event loop is kept busy, so that the connection is added after the listener was told to end.
  @Test(arguments: [true, false]) func connectionAddedWhileEndingIsEnded(isClosed: Bool) async throws {
    let (heard, hears) = AsyncStream.makeStream(of: Void.self)
    let listener = try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0).get()
    let address = try #require(listener.localAddress)
    let late = try await ClientBootstrap(group: group).channelInitializer { channel in
      channel.eventLoop.makeCompletedFuture {
        try channel.pipeline.syncOperations.addHandler(FinishingListener { hears.yield() })
      }
    }.connect(to: address).get()
    let barrier = DispatchSemaphore(value: 0)
    let loops = Array(group.makeIterator())
    for loop in loops { loop.execute { barrier.wait() } }
    connections.end(listener)
    if isClosed { connections.close() }
    connections.add(late)
    for _ in loops { barrier.signal() }
    if !isClosed {
      for await _ in heard { break }
      try await late.close()
    }
    try await connections.ended.get()
    try await late.closeFuture.get()
  }
  /// The library closes connections that are set up while their listener closes.
  @Test func aConnectionThatIsSetUpStaysOpen() async throws {
    let children = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let connections = OpenConnections(on: children)
    let (begun, begins) = AsyncStream.makeStream(of: (any Channel).self)
    let barrier = DispatchSemaphore(value: 0)
    let listener = try await ServerBootstrap(group: group, childGroup: children)
      .childChannelInitializer { channel in
        begins.yield(channel)
        barrier.wait()
        connections.add(channel)
        return channel.eventLoop.makeSucceededVoidFuture()
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let address = try #require(listener.localAddress)
    let client = try await ClientBootstrap(group: group).connect(to: address).get()
    var accepted: (any Channel)?
    for await channel in begun {
      accepted = channel
      break
    }
    connections.end(listener)
    // A turn in which the listener could close, while the event loop of the connection is busy.
    try await listener.eventLoop.submit {}.get()
    barrier.signal()
    try await listener.closeFuture.get()
    try await listener.eventLoop.submit {}.get()
    try await children.next().submit {}.get()
    #expect(accepted?.isActive == true)
    try? await client.close()
    try await connections.ended.get()
    try await children.shutdownGracefully()
  }
}
