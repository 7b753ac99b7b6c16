import MoongateCore
import NIOCore

/// Writes the head of a request for the upstream, into one buffer and in one pass over the fields.
///
/// Forwarded fields are copied unchanged, in runs. Three groups of fields are removed: those that could identify the
/// user on any route, those of the client's connection, and those that the route sets. The gateway's own fields come
/// last.
struct RequestRewriter {
  let route: RoutePlan
  /// The host by which the request was judged.
  let host: RequestHost
  /// The number of bytes of the path that the service does not receive (`strip`).
  var cut = 0
  let origin: RequestOrigin
  /// Whether Authorization is removed, because it contains a token of the gateway, or the gateway states its own.
  let dropsAuthorization: Bool
  let hasOurCookies: Bool
  /// The identity headers, and the Authorization that the gateway states.
  let identity: [UInt8]
  let assertion: [UInt8]
  /// Whether the requested upgrade is forwarded.
  let passesUpgrade: Bool
  /// nil if the client's own trace headers are forwarded unchanged.
  let trace: TraceContext?

  func write(_ head: RequestHead, address: [UInt8]) -> ByteBuffer {
    let bytes = head.bytes.readableBytesUInt8Span
    let capacity = bytes.count + identity.count + assertion.count + route.headerLines.count + 256
    var out = ByteBufferAllocator().buffer(capacity: capacity)
    out.copy(bytes, 0..<head.methodEnd)
    out.writeStaticString(" ")
    writeTarget(head, bytes, to: &out)
    out.writeStaticString(" HTTP/1.1\r\nHost: ")
    switch route.rewriting?.sentHost {
    case nil, .kept: out.writeBytes(host.authority)
    case .named(let name): out.writeBytes(name)
    // `ServiceExchange.head(for:)` adds it.
    case .ofUpstream: break
    }
    out.writeStaticString("\r\n")
    copyFields(head, bytes, to: &out)
    out.writeLength(head.framing)
    if passesUpgrade {
      out.writeUpgrade(head.fields, of: bytes)
    } else if head.acceptsTrailers, route.usesHTTP2 {
      // Servers of gRPC demand it. HTTP/2 has no `Connection`, which an upstream of HTTP/1.1 beside it needs.
      out.writeStaticString("TE: trailers\r\nConnection: TE\r\n")
    }
    out.writeBytes(identity)
    trace?.write(to: &out)
    out.writeStaticString("X-Forwarded-For: ")
    out.writeBytes(address)
    out.writeStaticString(
      origin.isSecure
        ? "\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: " : "\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: ")
    out.writeBytes(host.authority)
    out.writeStaticString("\r\n")
    out.writeBytes(assertion)
    out.writeBytes(route.headerLines)
    out.writeStaticString("\r\n")
    return out
  }

  /// Writes the path, without `strip` and below the path in `to`, and the query.
  private func writeTarget(_ head: RequestHead, _ bytes: Span<UInt8>, to out: inout ByteBuffer) {
    let base = route.rewriting?.path.base ?? []
    out.writeBytes(base)
    let rest = head.path.lowerBound + cut
    if head.path.isEmpty || rest == head.path.upperBound && base.isEmpty { out.writeStaticString("/") }
    out.copy(bytes, rest..<head.target.upperBound)
  }

  private func copyFields(_ head: RequestHead, _ bytes: Span<UInt8>, to out: inout ByteBuffer) {
    let ended = head.fieldsOfConnection(bytes)
    var run = 0..<0
    for index in head.fields.indices {
      let field = head.fields[index]
      if isDropped(field, ended, bytes) {
        if !run.isEmpty { out.copy(bytes, run) }
        run = 0..<0
        if field.kind == .cookie, !isEnded(field, ended, bytes) { copyCookies(field, bytes, to: &out) }
      } else {
        let start = field.name.lowerBound
        let end = index + 1 < head.fields.count ? head.fields[index + 1].name.lowerBound : bytes.count - 2
        run = run.upperBound == start && !run.isEmpty ? run.lowerBound..<end : start..<end
      }
    }
    if !run.isEmpty { out.copy(bytes, run) }
  }

  private func isDropped(_ field: HeadField, _ ended: [Range<Int>], _ bytes: Span<UInt8>) -> Bool {
    field.kind.isDroppedFromRequests || field.kind == .authorization && dropsAuthorization || isReplaced(field, bytes)
      || isTraced(field)
      || isEnded(field, ended, bytes)
  }

  /// Whether `Connection` lists the field.
  private func isEnded(_ field: HeadField, _ ended: [Range<Int>], _ bytes: Span<UInt8>) -> Bool {
    !ended.isEmpty && ConnectionOptions.isNamed(field, by: ended, bytes)
  }

  private func isTraced(_ field: HeadField) -> Bool {
    switch field.kind {
    case .traceparent: trace != nil
    case .tracestate: trace.map { !$0.isContinued } ?? false
    default: false
    }
  }

  private func isReplaced(_ field: HeadField, _ bytes: Span<UInt8>) -> Bool {
    !route.headerNames.isEmpty && route.replaces(bytes, field.name)
  }

  private func copyCookies(_ field: HeadField, _ bytes: Span<UInt8>, to out: inout ByteBuffer) {
    if isReplaced(field, bytes) { return }
    var isFirst = true
    if !hasOurCookies {
      out.writeStaticString("Cookie: ")
      out.copy(bytes, field.value)
      out.writeStaticString("\r\n")
      return
    }
    GatewayCookieBytes.forEach(bytes, field.value) { cookie, name, _ in
      guard !GatewayCookieBytes.isOurs(bytes, name) else { return }
      out.writeStaticString(isFirst ? "Cookie: " : "; ")
      out.copy(bytes, cookie)
      isFirst = false
    }
    if !isFirst { out.writeStaticString("\r\n") }
  }
}

extension ByteBuffer {
  /// Appends the line that tells the length of the body, if it needs one.
  @inline(__always)
  mutating func writeLength(_ framing: BodyFraming) {
    switch framing {
    case .none, .untilClose: break
    case .length(let length):
      writeStaticString("Content-Length: ")
      writeDecimal(length)
      writeStaticString("\r\n")
    case .chunked: writeStaticString("Transfer-Encoding: chunked\r\n")
    }
  }

  /// Appends the line that tells a client whether its connection stays open, if it does not expect that.
  @inline(__always)
  mutating func writePersistence(closes: Bool, minorVersion: UInt8) {
    if closes {
      writeStaticString("Connection: close\r\n")
    } else if minorVersion == 0 {
      writeStaticString("Connection: keep-alive\r\n")
    }
  }

  /// Appends the upgrade that the fields ask for or accept.
  @inline(__always)
  mutating func writeUpgrade(_ fields: [HeadField], of bytes: Span<UInt8>) {
    writeStaticString("Connection: Upgrade\r\n")
    for field in fields where field.kind == .upgrade {
      copy(bytes, field.name.lowerBound..<field.value.upperBound)
      writeStaticString("\r\n")
    }
  }

  /// Appends a number that is not negative.
  mutating func writeDecimal(_ number: Int) {
    if number < 10 {
      writeInteger(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number))
    } else {
      writeString(String(number))
    }
  }
}
