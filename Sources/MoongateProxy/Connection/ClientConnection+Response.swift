import MoongateCore
import NIOCore

/// The response of an upstream.
extension ClientConnection {
  /// Bodies up to this size are copied behind their head and written together with it.
  private static let maxCopied = 16 * 1024

  /// Whether the client accepts more bytes.
  var takesAnswer: Bool { wire?.isWritable ?? true }

  /// An interim response. Each counts as activity of the upstream; only a requested 100 is forwarded.
  func answerInterim(_ status: Int) {
    lastActivity = loop.now
    guard status == 100, exchange.expectsContinue, !exchange.requestIsDone, !exchange.answerHasBegun else { return }
    exchange.expectsContinue = false
    exchange.bodyWindow = (lastActivity, 0)
    sendContinue()
  }

  func answerBegan(_ head: ResponseHead, by connection: UpstreamConnection) {
    lastActivity = loop.now
    connection.target.succeeded()
    exchange.answerHasBegun = true
    exchange.status = head.status
    exchange.upstreamHead = ByteBuffer()
    switch head.framing {
    case .none:
      // A response to HEAD, and a 304, state the length of the response to a GET.
      exchange.framing = .none
      if head.status != 204, let length = head.contentLength { exchange.framing = .length(length) }
    case .length(let length): exchange.framing = .length(length)
    case .chunked, .untilClose: exchange.framing = exchange.minorVersion == 1 ? .chunked : .untilClose
    }
    exchange.closesAfter =
      !exchange.keepsAlive || isQuiescing || !exchange.requestIsDone || exchange.framing == .untilClose
    if let session = exchange.session, isEventStream(head) { bind(session) }
    var room = 0
    if case .length(let length) = head.framing { room = min(length, Self.maxCopied) }
    let rewriter = AnswerRewriter(
      date: loop.dateLine(), framing: exchange.framing, keepsAlive: !exchange.closesAfter,
      minorVersion: exchange.minorVersion)
    exchange.pending = rewriter.write(head, room: room, allocator: wire?.allocator ?? ByteBufferAllocator())
  }

  func answerData(_ data: ByteBuffer) {
    lastActivity = loop.now
    exchange.answerBytes += data.readableBytes
    if case .chunked = exchange.framing {
      Self.writeChunk(data) { appendAnswer($0) }
    } else {
      appendAnswer(data)
    }
  }

  private func appendAnswer(_ data: ByteBuffer) {
    if data.readableBytes <= Self.maxCopied, exchange.pending != nil {
      exchange.pending?.writeImmutableBuffer(data)
      return
    }
    writePending()
    wire?.send(data)
  }

  private func writePending() {
    guard let bytes = exchange.pending else { return }
    exchange.pending = nil
    wire?.send(bytes)
  }

  /// Writes all bytes of one read of the upstream at once.
  func flushAnswer() {
    writePending()
    wire?.flush()
  }

  func answerEnded(by connection: UpstreamConnection) {
    guard connection === upstream else { return }
    if case .chunked = exchange.framing { appendAnswer(ByteBuffer(staticString: "0\r\n\r\n")) }
    writePending()
    phase = .exchanging(nil)
    exchange.outcome = .passed
    connection.end(reusable: exchange.requestIsDone)
    finish()
  }

  /// Writes a chunk of a chunked body (RFC 9112 section 7.1).
  static func writeChunk(_ data: ByteBuffer, _ write: (ByteBuffer) -> Void) {
    var head = ByteBuffer()
    head.reserveCapacity(data.readableBytes <= maxCopied ? data.readableBytes + 12 : 12)
    head.writeString(String(data.readableBytes, radix: 16))
    head.writeStaticString("\r\n")
    if data.readableBytes <= maxCopied {
      head.writeImmutableBuffer(data)
      head.writeStaticString("\r\n")
      write(head)
    } else {
      write(head)
      write(data)
      write(ByteBuffer(staticString: "\r\n"))
    }
  }

  private func isEventStream(_ head: ResponseHead) -> Bool {
    let bytes = head.bytes.readableBytesUInt8Span
    return head.fields.contains { field in
      field.kind == .other && field.nameLength == 12 && field.valueLength >= 17
        && ByteClass.equal(bytes, field.name, "content-type")
        && ByteClass.equal(bytes, field.value.lowerBound..<field.value.lowerBound + 17, "text/event-stream")
    }
  }
}
