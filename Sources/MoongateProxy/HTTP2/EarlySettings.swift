import NIOCore

/// Applies the gateway's SETTINGS before the client acknowledges them.
///
/// `NIOHTTP2Handler` applies them when the client acknowledges them (RFC 9113 section 6.5.3). Most clients send their
/// first request earlier. Without this handler, a first request with a head over NIO's default of 16 KiB would close
/// the connection instead of being answered, with 431 if necessary. All our values exceed the defaults, so it is safe
/// to simulate the acknowledgement when the client's own SETTINGS arrive. The client's later acknowledgement is
/// removed.
///
/// This handler also refuses a wrong preface at its first wrong byte. The library waits for all 24 bytes.
final class EarlySettings: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private enum State {
    /// The client's preface and the header of its first frame are incomplete.
    case preface
    /// The remaining bytes of the current frame.
    case frames(left: Int)
    case over
    case refused
  }

  /// The connection preface (RFC 9113 section 3.4).
  private static let magic = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
  private static let frameHead = 9
  private static let acknowledgement: [UInt8] = [0, 0, 0, 4, 1, 0, 0, 0, 0]
  /// A GOAWAY frame with PROTOCOL_ERROR and last stream 0.
  private static let goAway: [UInt8] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]

  private var state = State.preface
  private var held = ByteBuffer()

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    switch state {
    case .over: return context.fireChannelRead(data)
    case .refused: return
    case .preface, .frames: break
    }
    if held.readableBytes == 0 { held = bytes } else { held.writeBuffer(&bytes) }
    while read(context) {}
    if held.readableBytes == 0 { held = ByteBuffer() }
  }

  /// - Returns: whether to continue with the remaining held bytes.
  private func read(_ context: ChannelHandlerContext) -> Bool {
    switch state {
    case .preface:
      guard beginsLikePreface else { return refuse(context) }
      guard let frame = frame(at: Self.magic.count) else { return false }
      // The library refuses a first frame of another type.
      guard frame.type == 4, !frame.isAcknowledgement else { return end(context) }
      let length = Self.magic.count + Self.frameHead + frame.length
      guard held.readableBytes >= length else { return frame.length > 16_384 ? end(context) : false }
      pass(length, context)
      context.fireChannelRead(wrapInboundOut(ByteBuffer(bytes: Self.acknowledgement)))
      state = .frames(left: 0)
      return true
    case .frames(let left) where left > 0:
      let count = min(left, held.readableBytes)
      guard count > 0 else { return false }
      state = .frames(left: left - count)
      pass(count, context)
      return true
    case .frames:
      guard let frame = frame(at: 0) else { return false }
      if frame.type == 4, frame.isAcknowledgement {
        // A malformed one is passed on, and the library refuses it.
        if frame.length == 0 { held.moveReaderIndex(forwardBy: Self.frameHead) }
        return end(context)
      }
      state = .frames(left: Self.frameHead + frame.length)
      return true
    case .over, .refused: return false
    }
  }

  /// Whether the held bytes are the preface or a part of it.
  private var beginsLikePreface: Bool {
    held.readableBytesView.prefix(Self.magic.count).elementsEqual(Self.magic.prefix(held.readableBytes))
  }

  /// Refuses the preface and closes the connection. Attack: a client keeps its connection open with bytes that can
  /// never become a request.
  private func refuse(_ context: ChannelHandlerContext) -> Bool {
    state = .refused
    held = ByteBuffer()
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: Self.goAway)), promise: nil)
    context.close(promise: nil)
    return false
  }

  private func frame(at offset: Int) -> (length: Int, type: UInt8, isAcknowledgement: Bool)? {
    let start = held.readerIndex + offset
    guard held.readableBytes >= offset + Self.frameHead, let word = held.getInteger(at: start, as: UInt32.self),
      let flags = held.getInteger(at: start + 4, as: UInt8.self)
    else { return nil }
    return (Int(word >> 8), UInt8(truncatingIfNeeded: word), flags & 1 == 1)
  }

  private func pass(_ count: Int, _ context: ChannelHandlerContext) {
    if let part = held.readSlice(length: count) { context.fireChannelRead(wrapInboundOut(part)) }
  }

  private func end(_ context: ChannelHandlerContext) -> Bool {
    state = .over
    pass(held.readableBytes, context)
    context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    return false
  }
}
