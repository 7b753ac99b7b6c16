import NIOCore
import NIOHPACK
import NIOHTTP2

/// Makes one HTTP/2 stream look like a connection with one HTTP/1.1 request, so that `ClientConnection` serves both.
///
/// It owns how a stream is framed: frames in, bytes out, and the other way round; which side has ended; with what code a
/// stream is reset. What a request means, what becomes of it, and when it has taken too long is behind it. It calls no
/// one: what is to be done with what came is what its methods return.
struct StreamFraming {
  private var hasHead = false
  private var requestBody = RequestText.Body.none
  private(set) var requestHasEnded = false
  private var toHead = false
  private var output = ByteBuffer()
  private var decoder = ResponseDecoder()
  private var body: BodyDecoder?
  private var answerHasEnded = false
  private var isReset = false
  /// Whether the frame that ends the answer has left.
  private(set) var hasLeft = false

  // MARK: the request

  /// Takes a frame of the client.
  /// - Parameter parts: gets the bytes that the frame becomes.
  /// - Returns: false where the request is malformed, and the stream is to be reset.
  mutating func receive(_ payload: HTTP2Frame.FramePayload, into parts: inout [ByteBuffer]) -> Bool {
    switch payload {
    case .headers(let frame): return hasHead ? trailers(frame, &parts) : head(frame, &parts)
    case .data(let frame):
      if case .byteBuffer(let bytes) = frame.data, bytes.readableBytes > 0 { forward(bytes, &parts) }
      if frame.endStream { endRequest(&parts) }
    case .rstStream, .priority, .settings, .pushPromise, .ping, .goAway, .windowUpdate, .alternativeService, .origin:
      break
    }
    return true
  }

  private mutating func head(_ frame: HTTP2Frame.FramePayload.Headers, _ parts: inout [ByteBuffer]) -> Bool {
    hasHead = true
    requestHasEnded = frame.endStream
    guard let request = RequestText.write(frame.headers, isWhole: frame.endStream) else { return false }
    requestBody = request.body
    toHead = request.isHead
    parts.append(request.text)
    return true
  }

  private func forward(_ bytes: ByteBuffer, _ parts: inout [ByteBuffer]) {
    guard requestBody == .chunked else { return parts.append(bytes) }
    var line = ByteBuffer()
    line.writeString(String(bytes.readableBytes, radix: 16))
    line.writeStaticString("\r\n")
    parts.append(line)
    parts.append(bytes)
    parts.append(ByteBuffer(staticString: "\r\n"))
  }

  /// Trailers are checked and dropped, as everywhere.
  private mutating func trailers(_ frame: HTTP2Frame.FramePayload.Headers, _ parts: inout [ByteBuffer]) -> Bool {
    guard RequestText.areTrailers(frame.headers) else { return false }
    if frame.endStream { endRequest(&parts) }
    return true
  }

  private mutating func endRequest(_ parts: inout [ByteBuffer]) {
    guard !requestHasEnded else { return }
    requestHasEnded = true
    if requestBody == .chunked { parts.append(ByteBuffer(staticString: "0\r\n\r\n")) }
  }

  // MARK: the answer

  /// Takes bytes of the answer.
  /// - Parameters:
  ///   - spare: an array to put fields in.
  ///   - emit: gets the frames that the bytes become.
  /// - Returns: false where the bytes are no answer, and the stream is to be reset.
  mutating func write(
    _ bytes: ByteBuffer, spare: inout [HeadField], _ emit: (HTTP2Frame.FramePayload) -> Void
  ) -> Bool {
    guard !answerHasEnded, !isReset else { return true }
    if output.readableBytes == 0 { output = bytes } else { output.writeImmutableBuffer(bytes) }
    do throws(MessageFault) { try writeFrames(spare: &spare, emit) } catch { return false }
    if output.readableBytes == 0 { output = ByteBuffer() }
    return true
  }

  private mutating func writeFrames(
    spare: inout [HeadField], _ emit: (HTTP2Frame.FramePayload) -> Void
  ) throws(MessageFault) {
    while !answerHasEnded {
      if body == nil {
        guard output.readableBytes > 0, let head = try decoder.next(&output, spare: &spare, toHead: toHead) else {
          return
        }
        let headers = Self.headers(head)
        spare = head.fields
        if head.isInterim {
          emit(.headers(.init(headers: headers)))
          continue
        }
        let decoded = BodyDecoder(head.framing)
        body = decoded
        answerHasEnded = decoded.isAtEnd
        emit(.headers(.init(headers: headers, endStream: answerHasEnded)))
        continue
      }
      switch try body?.next(&output) {
      case .data(let data):
        answerHasEnded = body?.isAtEnd ?? false
        emit(.data(.init(data: .byteBuffer(data), endStream: answerHasEnded)))
      case .end:
        answerHasEnded = true
        emit(.data(.init(data: .byteBuffer(ByteBuffer()), endStream: true)))
      case .incomplete, nil: return
      }
    }
  }

  /// Whether all frames of the answer were made.
  var isWhole: Bool { answerHasEnded }

  /// The frame that ends the answer has left.
  mutating func left() { hasLeft = true }

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
      let name = lowerCased(bytes, field.name)
      // The library's values are text. What is no UTF-8 is read as Latin-1, as browsers do, rather than spoiled.
      let start = head.bytes.readerIndex + field.value.lowerBound
      let value =
        (try? head.bytes.getUTF8ValidatedString(at: start, length: field.value.count)) ?? latin1(bytes, field.value)
      // What a person's session is in is not kept in the other side's table of headers (RFC 7541 section 7.1.3).
      headers.add(name: name, value: value, indexing: field.kind == .setCookie ? .nonIndexable : .indexable)
    }
    return headers
  }

  private static func lowerCased(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
    // Names were checked to be tokens: each byte is a character.
    String(unsafeUninitializedCapacity: range.count) { out in
      for offset in 0..<range.count { out[offset] = ByteClass.lower(bytes[range.lowerBound + offset]) }
      return range.count
    }
  }

  private static func latin1(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
    var text = String.UnicodeScalarView()
    for index in range { text.append(Unicode.Scalar(bytes[index])) }
    return String(text)
  }

  // MARK: ends

  /// What ends the stream. A whole answer stays as it is; a request that is still being sent is asked to stop (RFC 9113
  /// section 8.1). Half an answer is reset, so that it can not be taken for a whole one.
  ///
  /// Attack: a window that is never opened. The answer is whole then, and waits here for a client that takes none of
  /// it: whoever closes has waited long enough.
  /// - Returns: the code to reset the stream with; nil where nothing is to be sent.
  mutating func end() -> HTTP2ErrorCode? {
    guard hasLeft else { return reset(.internalError) }
    return requestHasEnded ? nil : reset(.noError)
  }

  /// - Returns: nil where the stream was reset before.
  mutating func reset(_ code: HTTP2ErrorCode) -> HTTP2ErrorCode? {
    guard !isReset else { return nil }
    isReset = true
    return code
  }
}
