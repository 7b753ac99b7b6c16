import NIOCore
import NIOHTTPTypes

/// What a `ClientConnection` reads from and writes to: the channel of a connection of HTTP/1, or a stream of HTTP/2.
///
/// Both carry the bytes of HTTP/1.1 messages. To be used on the event loop.
protocol ClientWire: AnyObject {
  var eventLoop: any EventLoop { get }
  var allocator: ByteBufferAllocator { get }
  /// Whether it takes more bytes.
  var isWritable: Bool { get }

  /// Writes bytes, which leave with the next flush.
  func send(_ bytes: ByteBuffer, promise: EventLoopPromise<Void>?)
  func flush()
  /// Asks for more bytes, after they were held back.
  func read()
  /// Ends both sides.
  func end()
  /// Ends our side. The client can still read what was written.
  func endOutput()
  /// Has the system ask whether a silent peer is still there.
  func watchPeer()
  /// Hands a request for the gateway itself to the part that answers it.
  func deliver(_ parts: [HTTPRequestPart])
}

extension ClientWire {
  func send(_ bytes: ByteBuffer) { send(bytes, promise: nil) }
}

/// A connection of HTTP/1: what it writes goes to the channel, and its own part of the pipeline is behind it.
extension ChannelHandlerContext: ClientWire {
  var allocator: ByteBufferAllocator { channel.allocator }

  var isWritable: Bool { channel.isWritable }

  func send(_ bytes: ByteBuffer, promise: EventLoopPromise<Void>?) { write(NIOAny(bytes), promise: promise) }

  func end() { close(promise: nil) }

  func endOutput() { close(mode: .output, promise: nil) }

  func watchPeer() { Keepalive.turnOn(channel) }

  func deliver(_ parts: [HTTPRequestPart]) {
    for part in parts { fireChannelRead(NIOAny(part)) }
    fireChannelReadComplete()
  }
}
