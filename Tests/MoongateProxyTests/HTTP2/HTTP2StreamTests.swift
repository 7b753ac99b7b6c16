import NIOCore
import NIOEmbedded
import NIOHTTP2
import Testing

@testable import MoongateProxy

/// A stream without a client connection, on a connection that records.
@Suite struct HTTP2StreamTests {
  private final class Connection: HTTP2Stream.Transport {
    let eventLoop: any EventLoop = EmbeddedEventLoop()
    let remoteAddress: SocketAddress? = nil
    let isWritable = true
    var spareFields: [HeadField] = []
    var spareWindow = 0
    var frames = 0
    var flushes = 0

    func write(_ payload: HTTP2Frame.FramePayload, of stream: HTTP2Stream) { frames += 1 }
    func flush() { flushes += 1 }
    func openWindow(of stream: HTTP2Stream) {}
    func makeInner(_ channel: StreamChannel) throws {}
    func countError() {}
  }

  @Test func openStreamSendsThroughItsConnection() {
    let connection = Connection()
    let stream = HTTP2Stream(1, transport: connection)
    stream.send(ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    stream.flush()
    #expect(stream.isWritable && !stream.isOver)
    #expect(connection.frames == 2 && connection.flushes == 1)
  }

  @Test func endedStreamSendsNothing() {
    let connection = Connection()
    let stream = HTTP2Stream(1, transport: connection)
    stream.closed()
    stream.send(ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    stream.flush()
    stream.end()
    #expect(!stream.isWritable && stream.isOver)
    #expect(connection.frames == 0 && connection.flushes == 0)
  }

  /// An upstream's response can arrive after the end of the client's connection.
  @Test func endedStreamDoesNotKeepItsConnection() {
    weak var connection: Connection?
    let stream: HTTP2Stream
    do {
      let made = Connection()
      connection = made
      stream = HTTP2Stream(1, transport: made)
    }
    #expect(connection != nil)
    stream.closed()
    #expect(connection == nil)
    #expect(!stream.isWritable)
  }
}
