import HTTPTypes
import MoongateCore
import NIOCore
import NIOHTTPTypes

/// Requests for the gateway itself. Complete requests are delivered as `HTTPRequestPart`s, and responses come back as
/// `HTTPResponsePart`s.
extension ClientConnection {
  func beginOwn(_ head: RequestHead) {
    state.exchange.metricsIndex = EventLoopMetrics.own
    if case .length(let length) = head.framing, length > Self.maxOwnBody { return refuse(.tooLarge, head: head) }
    if state.exchange.client == nil { state.exchange.client = peer }
    let path = head.text(head.path)
    state.exchange.redirectsBack = path.hasPrefix("/auth/") && !path.hasPrefix("/auth/logout")
    perform(state.beginOwn(head, at: loop.now))
  }

  /// Delivers a complete request to the gateway itself.
  func deliver(_ own: ConnectionState.OwnRequest) {
    guard let wire else { return }
    let head = own.head
    guard let request = httpRequest(head) else {
      return refuse(.badRequest, reason: "a method that is not a token", head: head)
    }
    if !hasInner {
      do {
        try makeInner()
        hasInner = true
      } catch {
        return refuse(RequestRefusal(.busy, detail: ["fault": "\(error)"]).about(detail(head)))
      }
    }
    let body = own.body
    wire.deliver(body.readableBytes > 0 ? [.head(request), .body(body), .end(nil)] : [.head(request), .end(nil)])
  }

  private func httpRequest(_ head: RequestHead) -> HTTPRequest? {
    guard let method = HTTPRequest.Method(head.text(head.methodName)) else { return nil }
    let bytes = head.bytes.readableBytesUInt8Span
    var fields = HTTPFields()
    for field in head.fields {
      switch field.kind {
      // Fields of the connection are handled here.
      case .host, .connection, .upgrade, .te, .trailer, .hopByHop, .transferEncoding, .expect: continue
      default: break
      }
      // The gateway's own trace context replaces the client's.
      if field.kind == .traceparent, state.exchange.trace != nil { continue }
      guard let name = HTTPField.Name(head.text(field.name)) else { continue }
      var value: [UInt8] = []
      value.reserveCapacity(field.value.count)
      for index in field.value { value.append(bytes[index]) }
      fields.append(HTTPField(name: name, lenientValue: value))
    }
    if let trace = state.exchange.trace, let name = HTTPField.Name("traceparent") {
      fields.append(HTTPField(name: name, value: trace.value))
    }
    let path = (head.path.isEmpty ? "/" : "") + head.text(head.path.lowerBound..<head.target.upperBound)
    return HTTPRequest(
      method: method, scheme: isSecure ? "https" : "http", authority: authority(of: head), path: path,
      headerFields: fields)
  }

  /// The host as the client spelled it. A request without Host is for that of public_url (RFC 9112 section 3.3).
  func authority(of head: RequestHead) -> String {
    (head.host ?? head.authority).map { head.text($0) } ?? loop.currentPlan().settings.publicURL.authority
  }

  // MARK: responses

  package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    write(unwrapOutboundIn(data), promise: promise)
  }

  /// Writes a part of the gateway's own response.
  func write(_ part: HTTPResponsePart, promise: EventLoopPromise<Void>?) {
    guard case .own = state.phase, let wire else {
      promise?.fail(ChannelError.ioOnClosedChannel)
      return
    }
    switch part {
    case .head(let response): wire.send(ownHead(response), promise: promise)
    case .body(let bytes):
      state.exchange.answerBytes += state.exchange.isHead ? 0 : bytes.readableBytes
      if state.exchange.isHead || bytes.readableBytes == 0 {
        promise?.succeed()
      } else if case .chunked = state.exchange.framing {
        wire.send(Self.chunk(of: bytes), promise: promise)
      } else if case .none = state.exchange.framing {
        promise?.succeed()
      } else {
        wire.send(bytes, promise: promise)
      }
    case .end:
      if case .chunked = state.exchange.framing, !state.exchange.isHead {
        wire.send(ByteBuffer(staticString: "0\r\n\r\n"), promise: promise)
      } else {
        promise?.succeed()
      }
      perform(state.ownAnswerEnded())
    }
  }

  private func ownHead(_ response: HTTPResponse) -> ByteBuffer {
    let code = response.status.code
    let isInterim = code < 200
    if !isInterim {
      state.ownAnswerBegan(
        status: code, length: response.headerFields[.contentLength].flatMap { Int($0) },
        wantsClose: response.headerFields[.connection].map { $0.lowercased() == "close" } ?? false)
      if state.exchange.redirectsBack, code == 302 || code == 303, let location = response.headerFields[.location] {
        recordDeparture(to: location)
      }
    }
    var out = ByteBuffer()
    out.writeString("HTTP/1.1 \(code) \(response.status.reasonPhrase)\r\n")
    for field in response.headerFields
    where field.name != .connection && field.name != .transferEncoding && field.name != .contentLength {
      out.writeString("\(field.name.rawName): \(field.value)\r\n")
    }
    if !isInterim {
      out.writeBytes(loop.currentPlan().securityLine)
      if response.headerFields[.date] == nil { out.writeBytes(loop.dateLine(at: loop.now)) }
      out.writeLength(state.exchange.framing)
      out.writePersistence(closes: state.exchange.closesAfter, minorVersion: state.exchange.minorVersion)
    }
    out.writeStaticString("\r\n")
    return out
  }
}
