import NIOCore

/// Makes one write of all that is written between two flushes, as far as it fits into a TLS record.
///
/// The library writes each frame for itself, and TLS makes a record of each write: its own head, its own tag, its own
/// call of the cipher.
final class WriteGathering: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The most that a record holds (RFC 8446 section 5.1).
  private static let most = 16 * 1024
  /// A connection that has little to say keeps no more than this.
  private static let kept = 4 * 1024

  private var gathered = ByteBuffer()

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    let bytes = unwrapOutboundIn(data)
    if gathered.readableBytes + bytes.readableBytes > Self.most { pass(context) }
    if bytes.readableBytes >= Self.most {
      context.write(wrapOutboundOut(bytes), promise: promise)
      return
    }
    gathered.writeImmutableBuffer(bytes)
    // A promise is kept when its own bytes have left.
    if let promise { pass(context, promise) }
  }

  func flush(context: ChannelHandlerContext) {
    guard gathered.readableBytes > 0 else { return context.flush() }
    context.write(wrapOutboundOut(gathered), promise: nil)
    context.flush()
    // As a rule the bytes were taken, and the next ones go where they were.
    if gathered.capacity > Self.kept { gathered = ByteBuffer() } else { gathered.clear() }
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    pass(context)
    context.close(mode: mode, promise: promise)
  }

  private func pass(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>? = nil) {
    guard gathered.readableBytes > 0 else {
      promise?.succeed()
      return
    }
    context.write(wrapOutboundOut(gathered), promise: promise)
    gathered = ByteBuffer()
  }
}
