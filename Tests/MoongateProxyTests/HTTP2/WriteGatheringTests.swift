import NIOCore
import NIOEmbedded
import Testing

@testable import MoongateProxy

/// What is written between two flushes leaves in one write.
@Suite struct WriteGatheringTests {
  private let channel = EmbeddedChannel(handler: WriteGathering())

  private func written() throws -> [Int] {
    var found: [Int] = []
    while let bytes = try channel.readOutbound(as: ByteBuffer.self) { found.append(bytes.readableBytes) }
    return found
  }

  private func write(_ count: Int) { channel.write(ByteBuffer(repeating: 7, count: count), promise: nil) }

  @Test func smallWritesAreJoined() throws {
    for count in [9, 100, 9, 40] { write(count) }
    channel.flush()
    #expect(try written() == [158])
    write(3)
    channel.flush()
    #expect(try written() == [3])
  }

  @Test func joinedWritesDoNotExceedARecord() throws {
    for count in [9, 16_000, 9, 16_384, 5] { write(count) }
    channel.flush()
    #expect(try written() == [16_018, 16_384, 5])
  }

  @Test func nothingIsWrittenBeforeTheFlush() throws {
    write(9)
    #expect(try written() == [])
    channel.flush()
    #expect(try written() == [9])
  }

  @Test func promisesOfJoinedWritesAreFulfilled() throws {
    let first = channel.eventLoop.makePromise(of: Void.self)
    write(4)
    channel.write(ByteBuffer(string: "five!"), promise: first)
    write(6)
    channel.flush()
    #expect(try written() == [9, 6])
    try first.futureResult.wait()
  }

  /// The system takes no bytes, as from a client that reads slowly.
  private final class FullSystem: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    var waiting: [EventLoopPromise<Void>?] = []
    var isClosed = false

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      waiting.append(promise)
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
      isClosed = true
      context.close(mode: mode, promise: promise)
    }
  }

  /// How a close that waits for bytes ends.
  enum End: CaseIterable { case written, late, again }

  @Test(arguments: End.allCases) func aCloseWaitsForBytesThatTheSystemHasNotTaken(end: End) throws {
    let system = FullSystem()
    let loop = EmbeddedEventLoop()
    let channel = EmbeddedChannel(handlers: [system, WriteGathering()], loop: loop)
    channel.writeAndFlush(ByteBuffer(string: "the end of a response"), promise: nil)
    channel.close(promise: nil)
    loop.advanceTime(by: .seconds(4))
    #expect(!system.isClosed)
    switch end {
    case .written: for promise in system.waiting { promise?.succeed() }
    case .late: loop.advanceTime(by: .seconds(1))
    case .again: channel.close(promise: nil)
    }
    #expect(system.isClosed)
    for promise in system.waiting { promise?.fail(ChannelError.ioOnClosedChannel) }
  }
}
