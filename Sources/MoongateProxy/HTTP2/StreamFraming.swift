import NIOCore
import NIOHPACK
import NIOHTTP2

/// Converts one HTTP/2 stream to and from the bytes of one HTTP/1.1 request, so that `ClientConnection` serves both.
///
/// It tracks which side has ended, and selects the code of a reset. It makes no calls: its methods return the result,
/// and the caller acts on it.
///
/// Attack: DATA that looks like a request, on a stream whose head was refused or declares no body. Bytes of the client
/// become bytes of HTTP/1.1 only as the one head that `RequestText` accepted, and as the body that this head declares.
struct StreamFraming {
  /// What may still come of the request.
  private enum Request {
    case head
    /// The body, as the head declares it.
    case body(RequestText.Body)
    /// Nothing: the request is complete, or refused.
    case over
  }

  private var request = Request.head
  private(set) var requestHasEnded = false
  private var toHead = false
  private var output = ByteBuffer()
  private var decoder = ResponseDecoder()
  private var body: BodyDecoder?
  /// The lines of the trailers behind a body whose head declares its length.
  private var trailers: ByteBuffer?
  /// Whether the response is complete, written or not.
  private(set) var answerHasEnded = false
  private(set) var isReset = false
  /// Whether the library has written the last frame of the response.
  private(set) var endIsWritten = false

  // MARK: the request

  /// Whether the head has not been received.
  var awaitsHead: Bool { if case .head = request { true } else { false } }

  /// Converts the head.
  /// - Parameter isWhole: whether the head ends the request.
  /// - Returns: nil if it is malformed; the stream must then be reset.
  mutating func receiveHead(_ headers: HPACKHeaders, isWhole: Bool) -> ByteBuffer? {
    guard awaitsHead else { return nil }
    request = .over
    requestHasEnded = isWhole
    guard let head = RequestText.write(headers, isWhole: isWhole) else { return nil }
    if !isWhole { request = .body(head.body) }
    toHead = head.isHead
    return head.text
  }

  /// Converts bytes of the body.
  /// - Parameter parts: the bytes of HTTP/1.1 are appended here.
  /// - Returns: false if the body is longer than declared; the stream must then be reset.
  mutating func receiveBody(_ bytes: ByteBuffer, into parts: inout [ByteBuffer]) -> Bool {
    guard case .body(let body) = request, bytes.readableBytes > 0 else { return true }
    switch body {
    case .empty: break
    case .length(let left):
      guard bytes.readableBytes <= left else { return false }
      request = .body(.length(left - bytes.readableBytes))
      parts.append(bytes)
    case .chunked:
      var line = ByteBuffer()
      line.writeString(String(bytes.readableBytes, radix: 16))
      line.writeStaticString("\r\n")
      parts.append(line)
      parts.append(bytes)
      parts.append(ByteBuffer(staticString: "\r\n"))
    }
    return true
  }

  /// Ends the body. After one of a declared length, HTTP/1.1 has no trailers, and they are dropped.
  /// - Parameter trailers: the lines of the trailers.
  /// - Returns: false if the body is shorter than declared; the stream must then be reset.
  mutating func receiveEnd(trailers: ByteBuffer? = nil, into parts: inout [ByteBuffer]) -> Bool {
    guard case .body(let body) = request else { return true }
    request = .over
    requestHasEnded = true
    switch body {
    case .empty: return true
    case .length(let left): return left == 0
    case .chunked:
      parts.append(ByteBuffer.lastChunk(trailers))
      return true
    }
  }

  // MARK: the response

  /// Converts bytes of the response.
  /// - Parameters:
  ///   - spare: a reusable array for fields.
  ///   - emit: receives the frames.
  /// - Returns: false if the bytes are not a response; the stream must then be reset.
  mutating func write(
    _ bytes: ByteBuffer, spare: inout [HeadField], _ emit: (HTTP2Frame.FramePayload) -> Void
  ) -> Bool {
    guard !answerHasEnded, !isReset else { return true }
    if output.readableBytes == 0 { output = bytes } else { output.writeImmutableBuffer(bytes) }
    do throws(MessageFault) { try writeFrames(spare: &spare, emit) } catch { return false }
    if output.readableBytes == 0 { output = ByteBuffer() }
    return true
  }

  /// Puts trailers behind a body whose head declares its length. HTTP/1.1 has none there.
  /// - Parameter lines: complete lines.
  mutating func trail(_ lines: ByteBuffer) { trailers = lines }

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
      case .data(var data):
        answerHasEnded = body?.isAtEnd ?? false
        while data.readableBytes > FrameHead.maxPayload, let part = data.readSlice(length: FrameHead.maxPayload) {
          emit(.data(.init(data: .byteBuffer(part))))
        }
        emit(.data(.init(data: .byteBuffer(data), endStream: answerHasEnded && trailers == nil)))
        if answerHasEnded, let trailers { emit(.headers(.init(headers: Self.trailers(trailers), endStream: true))) }
      case .end:
        answerHasEnded = true
        if let trailers = body?.trailers {
          emit(.headers(.init(headers: Self.trailers(trailers), endStream: true)))
        } else {
          emit(.data(.init(data: .byteBuffer(ByteBuffer()), endStream: true)))
        }
      case .incomplete, nil: return
      }
    }
  }

  /// Called when the library has written the last frame of the response.
  mutating func wroteEnd() { endIsWritten = true }

  /// Lower-cases names, and omits the fields of an HTTP/1 connection (RFC 9113 section 8.2).
  private static func headers(_ head: ResponseHead) -> HPACKHeaders {
    var headers = HPACKHeaders()
    headers.reserveCapacity(head.fields.count + 1)
    headers.add(name: ":status", value: String(head.status))
    for field in head.fields {
      switch field.kind {
      case .connection, .transferEncoding, .upgrade, .te, .hopByHop: continue
      default: add(field, of: head.bytes, to: &headers)
      }
    }
    return headers
  }

  /// - Parameter lines: lines that a `BodyDecoder` has read.
  private static func trailers(_ lines: ByteBuffer) -> HPACKHeaders {
    var headers = HPACKHeaders()
    _ = FieldLine.forEach(lines.readableBytesUInt8Span) { add($0, of: lines, to: &headers) }
    return headers
  }

  private static func add(_ field: HeadField, of buffer: ByteBuffer, to headers: inout HPACKHeaders) {
    let bytes = buffer.readableBytesUInt8Span
    // The library's values are strings. A value that is not UTF-8 is read as Latin-1, as browsers do.
    let start = buffer.readerIndex + field.value.lowerBound
    let value =
      (try? buffer.getUTF8ValidatedString(at: start, length: field.value.count)) ?? latin1(bytes, field.value)
    // A session cookie is not stored in the client's header table (RFC 7541 section 7.1.3).
    headers.add(
      name: lowerCased(bytes, field.name), value: value,
      indexing: field.kind == .setCookie ? .nonIndexable : .indexable)
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

  /// Ends the stream. After a complete response, an unfinished request is stopped with NO_ERROR (RFC 9113 section 8.1).
  /// A partial response is reset, so that the client cannot take it for a complete one.
  ///
  /// Attack: a client that never opens its window. The complete response waits for it, and is reset: the caller has
  /// already waited for its timeout.
  /// - Returns: the code of the reset; nil if nothing must be sent.
  mutating func end() -> HTTP2ErrorCode? {
    guard endIsWritten else { return reset(.internalError) }
    return requestHasEnded ? nil : reset(.noError)
  }

  /// - Returns: nil if the stream was reset before.
  mutating func reset(_ code: HTTP2ErrorCode) -> HTTP2ErrorCode? {
    guard !isReset else { return nil }
    isReset = true
    request = .over
    return code
  }
}
