import NIOCore
import NIOHPACK
import NIOHTTP2

/// Makes one HTTP/2 stream look like a connection with one HTTP/1.1 request, so that `ClientConnection` serves both.
///
/// It owns how a stream is framed: frames in, frames out, which side has ended, with what code a stream is reset. What
/// a request means, what becomes of it, and when it has taken too long is behind it. Back-pressure needs nothing here:
/// a read that is held back behind it holds the stream's window, and the stream's buffer decides whether it is
/// writable.
final class StreamFraming: ChannelDuplexHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = HTTP2Frame.FramePayload

  private var hasHead = false
  private var requestBody = RequestText.Body.none
  private var requestHasEnded = false
  private var toHead = false
  private var output = ByteBuffer()
  private var decoder = ResponseDecoder()
  private var spare: [HeadField] = []
  private var body: BodyDecoder?
  private var answerHasEnded = false
  private var isReset = false
  /// Kept when the frame that ends the answer has left.
  private var sent: EventLoopPromise<Void>?

  // MARK: the request

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let frame): hasHead ? trailers(frame, context) : head(frame, context)
    case .data(let frame):
      if case .byteBuffer(let bytes) = frame.data, bytes.readableBytes > 0 { forward(bytes, context) }
      if frame.endStream { endRequest(context) }
    case .rstStream, .priority, .settings, .pushPromise, .ping, .goAway, .windowUpdate, .alternativeService, .origin:
      break
    }
  }

  private func head(_ frame: HTTP2Frame.FramePayload.Headers, _ context: ChannelHandlerContext) {
    hasHead = true
    requestHasEnded = frame.endStream
    guard let request = RequestText.write(frame.headers, isWhole: frame.endStream) else {
      return reset(.protocolError, context)
    }
    requestBody = request.body
    toHead = request.isHead
    context.fireChannelRead(wrapInboundOut(request.text))
  }

  private func forward(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
    guard requestBody == .chunked else { return context.fireChannelRead(wrapInboundOut(bytes)) }
    var line = context.channel.allocator.buffer(capacity: 12)
    line.writeString(String(bytes.readableBytes, radix: 16))
    line.writeStaticString("\r\n")
    context.fireChannelRead(wrapInboundOut(line))
    context.fireChannelRead(wrapInboundOut(bytes))
    context.fireChannelRead(wrapInboundOut(ByteBuffer(staticString: "\r\n")))
  }

  /// Trailers are checked and dropped, as everywhere.
  private func trailers(_ frame: HTTP2Frame.FramePayload.Headers, _ context: ChannelHandlerContext) {
    guard RequestText.areTrailers(frame.headers) else { return reset(.protocolError, context) }
    if frame.endStream { endRequest(context) }
  }

  private func endRequest(_ context: ChannelHandlerContext) {
    guard !requestHasEnded else { return }
    requestHasEnded = true
    if requestBody == .chunked { context.fireChannelRead(wrapInboundOut(ByteBuffer(staticString: "0\r\n\r\n"))) }
  }

  // MARK: the answer

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    var bytes = unwrapOutboundIn(data)
    if !answerHasEnded, !isReset {
      if output.readableBytes == 0 { output = bytes } else { output.writeBuffer(&bytes) }
      do throws(MessageFault) { try writeFrames(context) } catch { reset(.internalError, context) }
      if output.readableBytes == 0 { output = ByteBuffer() }
    }
    // Whoever waits for bytes to leave waits for the answer's end: it is how a connection is closed without cutting its
    // answer.
    guard let promise else { return }
    if let sent { sent.futureResult.cascade(to: promise) } else { promise.succeed() }
  }

  private func writeFrames(_ context: ChannelHandlerContext) throws(MessageFault) {
    while !answerHasEnded {
      if body == nil {
        guard output.readableBytes > 0, let head = try decoder.next(&output, spare: &spare, toHead: toHead) else {
          return
        }
        let headers = Self.headers(head)
        spare = head.fields
        if head.isInterim {
          context.write(wrapOutboundOut(.headers(.init(headers: headers))), promise: nil)
          continue
        }
        let decoded = BodyDecoder(head.framing)
        body = decoded
        let ends = decoded.isAtEnd
        context.write(
          wrapOutboundOut(.headers(.init(headers: headers, endStream: ends))), promise: ends ? end(context) : nil)
        continue
      }
      switch try body?.next(&output) {
      case .data(let data):
        let ends = body?.isAtEnd ?? false
        context.write(
          wrapOutboundOut(.data(.init(data: .byteBuffer(data), endStream: ends))), promise: ends ? end(context) : nil)
      case .end:
        context.write(
          wrapOutboundOut(.data(.init(data: .byteBuffer(ByteBuffer()), endStream: true))), promise: end(context))
      case .incomplete, nil: return
      }
    }
  }

  private func end(_ context: ChannelHandlerContext) -> EventLoopPromise<Void> {
    answerHasEnded = true
    let promise = context.eventLoop.makePromise(of: Void.self)
    sent = promise
    return promise
  }

  /// Names in lower case, and without what belongs to an HTTP/1 connection (RFC 9113 section 8.2).
  private static func headers(_ head: ResponseHead) -> HPACKHeaders {
    let bytes = head.bytes.readableBytesUInt8Span
    var headers = HPACKHeaders()
    headers.reserveCapacity(head.fields.count + 1)
    headers.add(name: ":status", value: String(head.status))
    for field in head.fields {
      switch field.kind {
      case .connection, .transferEncoding, .upgrade, .hopByHop: continue
      default: break
      }
      var name: [UInt8] = []
      name.reserveCapacity(field.name.count)
      for index in field.name { name.append(ByteClass.lower(bytes[index])) }
      var value: [UInt8] = []
      value.reserveCapacity(field.value.count)
      for index in field.value { value.append(bytes[index]) }
      // The library's values are text. What is no UTF-8 is read as Latin-1, as browsers do, rather than spoiled.
      let valueText =
        String(validating: value, as: UTF8.self) ?? String(String.UnicodeScalarView(value.map { Unicode.Scalar($0) }))
      // What a person's session is in is not kept in the other side's table of headers (RFC 7541 section 7.1.3).
      let text = String(decoding: name, as: UTF8.self)
      headers.add(
        name: text, value: valueText, indexing: field.kind == .setCookie ? .nonIndexable : .indexable)
    }
    return headers
  }

  // MARK: ends

  /// A whole answer stays as it is; a request that is still being sent is asked to stop (RFC 9113 section 8.1). Half an
  /// answer is reset, so that it can not be taken for a whole one.
  ///
  /// Attack: a window that is never opened. The answer is whole then, and waits here for a client that takes none of
  /// it: whoever closes has waited long enough.
  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    promise?.succeed()
    guard mode != .input else { return }
    guard hasLeft else { return reset(.internalError, context) }
    if !requestHasEnded { reset(.noError, context) }
  }

  /// Whether the frame that ends the answer has left.
  private var hasLeft: Bool {
    var found = false
    // On its own event loop, what has happened already is told at once.
    sent?.futureResult.assumeIsolated().whenSuccess { found = true }
    return found
  }

  private func reset(_ code: HTTP2ErrorCode, _ context: ChannelHandlerContext) {
    guard !isReset else { return }
    isReset = true
    context.writeAndFlush(wrapOutboundOut(.rstStream(code)), promise: nil)
  }
}
