import NIOCore
import NIOHTTPTypes

/// The transport of a `ClientConnection`: the channel of an HTTP/1 connection, or a stream of HTTP/2.
///
/// Both carry the bytes of HTTP/1.1 messages. Use it on the event loop only.
protocol ClientWire: AnyObject {
  var eventLoop: any EventLoop { get }
  /// Whether the client accepts more bytes.
  var isWritable: Bool { get }

  /// Writes bytes, which are sent with the next flush.
  func send(_ bytes: ByteBuffer, promise: EventLoopPromise<Void>?)
  func flush()
  /// Puts trailers behind the body of declared length whose last bytes are written next. With HTTP/1.1, there are none.
  /// - Parameter lines: complete lines.
  func trail(_ lines: ByteBuffer)
  /// Resumes reading after it was held.
  func read()
  /// Closes both directions.
  func end()
  /// Closes both directions so that the client sees that the response is incomplete, whatever its framing.
  func cut()
  /// Whether the client has not acknowledged all bytes that the system has taken.
  var hasBytesOnTheWay: Bool { get }
  /// Closes the output. The client can still read the written bytes.
  func endOutput()
  /// Enables keep-alive, which detects a silent peer that has vanished.
  func watchPeer()
  /// Delivers a request for the gateway itself to the handler that responds.
  func deliver(_ parts: [HTTPRequestPart])
}

extension ClientWire {
  func send(_ bytes: ByteBuffer) { send(bytes, promise: nil) }
}

/// An HTTP/1 connection. The handler for requests to the gateway itself follows in the pipeline.
extension ChannelHandlerContext: ClientWire {
  var isWritable: Bool { channel.isWritable }

  func send(_ bytes: ByteBuffer, promise: EventLoopPromise<Void>?) { write(NIOAny(bytes), promise: promise) }

  func trail(_ lines: ByteBuffer) {}

  func end() { close(promise: nil) }

  func cut() { SocketReset.close(channel) }

  var hasBytesOnTheWay: Bool { SocketProgress.hasBytesOnTheWay(channel) }

  func endOutput() { close(mode: .output, promise: nil) }

  func watchPeer() { Keepalive.enable(channel) }

  func deliver(_ parts: [HTTPRequestPart]) {
    for part in parts { fireChannelRead(NIOAny(part)) }
    fireChannelReadComplete()
  }
}
