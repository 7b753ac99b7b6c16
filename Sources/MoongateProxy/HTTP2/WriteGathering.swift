import NIOCore

/// Combines all writes between two flushes into one, up to the size of a TLS record.
///
/// The library writes each frame separately, and TLS creates a record for each write, with a separate header,
/// authentication tag and cipher call.
final class WriteGathering: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The payload limit of a record (RFC 8446 section 5.1).
  private static let most = 16 * 1024
  /// A larger buffer is not kept for the next flush.
  private static let kept = 4 * 1024

  /// The time limit for a client to take the bytes that remain at the close.
  private static let lingerTime: TimeAmount = .seconds(5)

  private var gathered = ByteBuffer()
  private var isClosing = false

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    let bytes = unwrapOutboundIn(data)
    if gathered.readableBytes + bytes.readableBytes > Self.most { pass(context) }
    if bytes.readableBytes >= Self.most {
      context.write(wrapOutboundOut(bytes), promise: promise)
      return
    }
    gathered.writeImmutableBuffer(bytes)
    // A promise completes with its own bytes.
    if let promise { pass(context, promise) }
  }

  func flush(context: ChannelHandlerContext) {
    guard gathered.readableBytes > 0 else { return context.flush() }
    // A flush can make the channel writable again, and the library then writes and flushes within this call. Bytes that
    // stayed in `gathered` would be sent twice.
    var bytes = gathered
    gathered = ByteBuffer()
    context.write(wrapOutboundOut(bytes), promise: nil)
    context.flush()
    guard gathered.capacity == 0, bytes.capacity <= Self.kept else { return }
    bytes.clear()
    gathered = bytes
  }

  /// Closes when the system has taken all bytes, or at a second call: TLS drops what it still holds a second after the
  /// close, and a slow client would lose the end of its last response.
  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    pass(context)
    guard case .all = mode, !isClosing else { return context.close(mode: mode, promise: promise) }
    isClosing = true
    let done = context.eventLoop.makePromise(of: Void.self)
    let late = context.eventLoop.assumeIsolated().scheduleTask(in: Self.lingerTime) { done.succeed() }
    let written = context.eventLoop.makePromise(of: Void.self)
    written.futureResult.cascade(to: done)
    done.futureResult.assumeIsolated().whenComplete { _ in
      late.cancel()
      context.close(mode: .all, promise: promise)
    }
    context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
  }

  private func pass(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>? = nil) {
    guard gathered.readableBytes > 0 else {
      promise?.succeed()
      return
    }
    let bytes = gathered
    gathered = ByteBuffer()
    context.write(wrapOutboundOut(bytes), promise: promise)
  }
}
