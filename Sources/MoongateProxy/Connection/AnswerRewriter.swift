import NIOCore

/// Writes an answer's head as the client is to see it.
enum AnswerRewriter {
  /// How the answer's body goes to the client.
  enum Framing {
    case none
    case length(Int)
    case chunked
    case untilClose
  }

  /// - Parameters:
  ///   - date: the line that is added where the answer has no `Date` (RFC 9110 section 6.6.1).
  ///   - keepsAlive: whether the client's connection stays open; HTTP/1.0 clients are told so.
  ///   - upgrade: whether this is the 101 of an upgrade that was asked for.
  static func write(
    _ head: ResponseHead, date: [UInt8], framing: Framing, keepsAlive: Bool, toMinorVersion: UInt8,
    upgrade: Bool = false, room: Int,
    allocator: ByteBufferAllocator
  ) -> ByteBuffer {
    let bytes = head.bytes.readableBytesUInt8Span
    var out = allocator.buffer(capacity: bytes.count + 96 + room)
    out.writeStaticString("HTTP/1.1 ")
    out.copy(bytes, head.statusText)
    out.writeStaticString("\r\n")
    let ended = head.fieldsOfConnection(bytes)
    var run = 0..<0
    for index in head.fields.indices {
      let field = head.fields[index]
      let start = field.name.lowerBound
      let end = index + 1 < head.fields.count ? head.fields[index + 1].name.lowerBound : bytes.count - 2
      if isDropped(field, ended, bytes) {
        if !run.isEmpty { out.copy(bytes, run) }
        run = 0..<0
      } else {
        run = run.upperBound == start && !run.isEmpty ? run.lowerBound..<end : start..<end
      }
    }
    if !run.isEmpty { out.copy(bytes, run) }
    if head.date.map({ isDropped(head.fields[$0], ended, bytes) }) ?? true { out.writeBytes(date) }
    if upgrade {
      out.writeStaticString("Connection: Upgrade\r\n")
      for field in head.fields where field.kind == .upgrade {
        out.copy(bytes, field.name.lowerBound..<field.value.upperBound)
        out.writeStaticString("\r\n")
      }
    } else {
      switch framing {
      case .none: break
      case .length(let length):
        out.writeStaticString("Content-Length: ")
        out.writeDecimal(length)
        out.writeStaticString("\r\n")
      case .chunked: out.writeStaticString("Transfer-Encoding: chunked\r\n")
      case .untilClose: break
      }
      if !keepsAlive {
        out.writeStaticString("Connection: close\r\n")
      } else if toMinorVersion == 0 {
        out.writeStaticString("Connection: keep-alive\r\n")
      }
    }
    out.writeStaticString("\r\n")
    return out
  }

  /// - Parameter ended: the names of fields that end here.
  private static func isDropped(_ field: HeadField, _ ended: [Range<Int>], _ bytes: Span<UInt8>) -> Bool {
    switch field.kind {
    case .connection, .upgrade, .hopByHop, .transferEncoding, .contentLength: true
    // Attack: an upstream, or whoever writes pages there, that sets our cookie signs people in as somebody else.
    case .setCookie:
      GatewayCookie.isSet(bytes, field.value) || !ended.isEmpty && ConnectionOptions.isNamed(field, by: ended, bytes)
    default: !ended.isEmpty && ConnectionOptions.isNamed(field, by: ended, bytes)
    }
  }
}
