import MoongateCore
import NIOCore

/// The response of an upstream.
extension ClientConnection {
  /// Bodies up to this size are copied behind their head and written together with it.
  private static let maxCopied = 16 * 1024

  /// Whether the client accepts more bytes.
  var takesAnswer: Bool { wire?.isWritable ?? true }

  func answerInterim(_ status: Int) {
    perform(state.answerInterim(status, at: loop.now))
  }

  func answerBegan(_ head: ResponseHead, by connection: UpstreamConnection) {
    connection.target.succeeded()
    if dropAnswer(withStatus: head.status) { return }
    let now = loop.now
    let isEventStream = isEventStream(head)
    state.answerBegan(head, isEventStream: isEventStream, at: now)
    var keepsWorkerScope = false
    var changes: AnswerChanges?
    if case .exchanging(let service) = state.phase {
      keepsWorkerScope = service.keepsWorkerScope
      changes = answerChanges(service, from: connection.target)
      if isEventStream {
        bind(service)
        wire?.watchPeer()
        connection.watchPeer()
      }
    }
    var room = 0
    if case .length(let length) = head.framing { room = min(length, Self.maxCopied) }
    let rewriter = AnswerRewriter(
      date: loop.dateLine(at: now), framing: state.exchange.framing, keepsAlive: !state.exchange.closesAfter,
      minorVersion: state.exchange.minorVersion, keepsWorkerScope: keepsWorkerScope, passesTrailers: passesTrailers,
      changes: changes)
    state.exchange.pending = rewriter.write(head, room: room)
  }

  func answerData(_ data: ByteBuffer) {
    state.answerData(data.readableBytes, at: loop.now)
    if case .chunked = state.exchange.framing {
      Self.writeChunk(data) { appendAnswer($0) }
    } else {
      appendAnswer(data)
    }
  }

  private func appendAnswer(_ data: ByteBuffer) {
    if data.readableBytes <= Self.maxCopied, state.exchange.pending != nil {
      state.exchange.pending?.writeImmutableBuffer(data)
      return
    }
    writePending()
    wire?.send(data)
  }

  private func writePending() {
    guard let bytes = state.exchange.pending else { return }
    state.exchange.pending = nil
    wire?.send(bytes)
  }

  /// Writes all bytes of one read of the upstream at once.
  func flushAnswer() {
    writePending()
    wire?.flush()
  }

  func answerEnded(by connection: UpstreamConnection) {
    guard connection === upstream else { return }
    if case .chunked = state.exchange.framing { appendAnswer(ByteBuffer.lastChunk(state.exchange.trailers)) }
    writePending()
    let action = state.answerEnded()
    connection.end(reusable: state.exchange.requestIsDone)
    perform(action)
  }

  /// Writes a chunk of a chunked body (RFC 9112 section 7.1). Large data is not copied.
  static func writeChunk(_ data: ByteBuffer, _ write: (ByteBuffer) -> Void) {
    if data.readableBytes <= maxCopied {
      write(chunk(of: data))
    } else {
      write(chunkHead(of: data, room: 0))
      write(data)
      write(ByteBuffer(staticString: "\r\n"))
    }
  }

  /// A chunk in one buffer, with a copy of the data.
  static func chunk(of data: ByteBuffer) -> ByteBuffer {
    var chunk = chunkHead(of: data, room: data.readableBytes)
    chunk.writeImmutableBuffer(data)
    chunk.writeStaticString("\r\n")
    return chunk
  }

  /// The line before the data of a chunk, in a buffer with room for more bytes.
  private static func chunkHead(of data: ByteBuffer, room: Int) -> ByteBuffer {
    var head = ByteBuffer()
    head.reserveCapacity(room + 12)
    head.writeString(String(data.readableBytes, radix: 16))
    head.writeStaticString("\r\n")
    return head
  }

  /// Whether the media type is `text/event-stream`, in any case and with any parameters (RFC 9110 section 8.3.1), or
  /// one of gRPC: both may be silent for any time.
  private func isEventStream(_ head: ResponseHead) -> Bool {
    let bytes = head.bytes.readableBytesUInt8Span
    return head.fields.contains { field in
      if field.isCallType(bytes) { return true }
      guard field.kind == .other, field.nameLength == 12, ByteClass.equal(bytes, field.name, "content-type") else {
        return false
      }
      let value = field.value
      let end = value.first { bytes[$0] == UInt8(ascii: ";") } ?? value.upperBound
      return ByteClass.equal(bytes, ByteClass.trimmed(bytes, value.lowerBound..<end), "text/event-stream")
    }
  }
}
