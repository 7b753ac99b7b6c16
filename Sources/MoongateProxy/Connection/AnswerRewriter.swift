import NIOCore

/// Writes the head of an upstream's response for the client.
struct AnswerRewriter {
  /// The `Date` line for a response that has none (RFC 9110 section 6.6.1).
  let date: [UInt8]
  /// How the length of the body is sent to the client.
  let framing: BodyFraming
  /// Whether the client's connection stays open. HTTP/1.0 clients are told so.
  let keepsAlive: Bool
  /// The client's minor version of HTTP/1.
  let minorVersion: UInt8
  /// Whether this is the 101 of a requested upgrade.
  var isUpgrade = false
  /// Whether `Service-Worker-Allowed` is removed.
  var keepsWorkerScope = false
  /// Whether the client gets the response's trailers, and `Trailer`, which lists them.
  var passesTrailers = false
  /// What the route changes; nil for nothing.
  var changes: AnswerChanges?

  /// - Parameter room: the capacity to reserve for the body.
  func write(_ head: ResponseHead, room: Int) -> ByteBuffer {
    let bytes = head.bytes.readableBytesUInt8Span
    var out = ByteBufferAllocator().buffer(capacity: bytes.count + 96 + room)
    out.writeStaticString("HTTP/1.1 ")
    out.copy(bytes, head.statusText)
    // A server must send the space after the code (RFC 9112 section 4), which the upstream may have omitted.
    if head.statusText.count == 3 { out.writeStaticString(" ") }
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
      } else if let changes, let change = changes.change(of: field, bytes) {
        if !run.isEmpty { out.copy(bytes, run) }
        run = 0..<0
        changes.write(change, of: field, start..<end, bytes, to: &out)
      } else {
        run = run.upperBound == start && !run.isEmpty ? run.lowerBound..<end : start..<end
      }
    }
    if !run.isEmpty { out.copy(bytes, run) }
    let lacksDate = head.date.map { isDropped(head.fields[$0], ended, bytes) } ?? true
    if lacksDate, changes?.rewriting.decidesDate != true { out.writeBytes(date) }
    if let changes { out.writeBytes(changes.rewriting.responseLines) }
    writeConnectionFields(head, bytes, to: &out)
    out.writeStaticString("\r\n")
    return out
  }

  private func writeConnectionFields(_ head: ResponseHead, _ bytes: Span<UInt8>, to out: inout ByteBuffer) {
    if isUpgrade { return out.writeUpgrade(head.fields, of: bytes) }
    out.writeLength(framing)
    out.writePersistence(closes: !keepsAlive, minorVersion: minorVersion)
  }

  /// - Parameter ended: the names of fields that `Connection` lists, which are not forwarded.
  private func isDropped(_ field: HeadField, _ ended: [Range<Int>], _ bytes: Span<UInt8>) -> Bool {
    switch field.kind {
    case .connection, .upgrade, .te, .hopByHop, .transferEncoding, .contentLength: true
    case .trailer where !passesTrailers: true
    // Attack: an upstream, or an author of pages on it, sets the gateway's cookie and signs users in as another user.
    case .setCookie:
      GatewayCookieBytes.isSet(bytes, field.value)
        || !ended.isEmpty && ConnectionOptions.isNamed(field, by: ended, bytes)
    // Attack: a service installs a service worker over the sign-in pages, and reads what users type there.
    case .serviceWorkerAllowed where keepsWorkerScope: true
    default: !ended.isEmpty && ConnectionOptions.isNamed(field, by: ended, bytes)
    }
  }
}
