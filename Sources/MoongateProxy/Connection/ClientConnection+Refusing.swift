import HTTPTypes
import MoongateCore
import MoongateSDK
import NIOCore

/// Answers that the data path gives by itself.
extension ClientConnection {
  /// Refuses the request at hand.
  /// - Parameters:
  ///   - detail: for the operator, under `/decisions/{id}`.
  ///   - head: for the operator too: host and path, never the query.
  ///   - unread: whether bytes follow of which it is not known where they end.
  func refuse(
    _ code: RefusalCode, detail: [String: String] = [:], provider: ProviderName? = nil, flow: String? = nil, account: String? = nil,
    head: RequestHead? = nil, unread: Bool = false
  ) {
    var detail = detail
    if let head {
      detail["host"] = String(head.text(head.host).prefix(100))
      detail["path"] = String(head.text(head.path).prefix(200))
      detail["method"] = String(head.text(head.methodName).prefix(20))
    }
    let refusal = Refusal(code, decision: record(code, detail: detail, account: account), provider: provider, flow: flow)
    var fields: [(String, String)] = [("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")]
    if code == .unauthenticated { fields.append(("WWW-Authenticate", "Bearer")) }
    if code == .methodNotAllowed { fields.append(("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")) }
    if let page = exchange.isBrowser ? loop.proxy.page?(refusal) : nil {
      fields += [
        ("Content-Type", "text/html; charset=utf-8"), ("Referrer-Policy", "no-referrer"), ("X-Frame-Options", "DENY"),
        (
          "Content-Security-Policy",
          "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
        ),
      ]
      answer(code.status, fields, Array(page.utf8), unread: unread)
    } else {
      fields.append(("Content-Type", Refusal.mediaType))
      answer(code.status, fields, refusal.document(), unread: unread)
    }
  }

  /// Sends the client to another page.
  func redirect(to location: String) { answer(302, [("Location", location), ("Cache-Control", "no-store")], [], unread: false) }

  /// Notes a decision for the operator.
  @discardableResult
  func record(_ code: RefusalCode, detail: [String: String], account: String? = nil) -> DecisionID {
    let dependencies = loop.proxy.dependencies
    let id = DecisionID(from: dependencies.random)
    dependencies.audit.record(
      AuditEvent(
        id: id, at: dependencies.clock.now(), kind: .refused, account: account, address: peer.description, code: code.name, detail: detail))
    return id
  }

  /// The phrase that goes with a status (RFC 9110 section 15).
  private static func reason(_ status: Int) -> String {
    let known: [HTTPResponse.Status] = [
      .found, .badRequest, .unauthorized, .forbidden, .notFound, .methodNotAllowed, .requestTimeout, .conflict, .gone, .contentTooLarge,
      .unsupportedMediaType, .unprocessableContent, .tooManyRequests, .requestHeaderFieldsTooLarge, .badGateway, .serviceUnavailable, .gatewayTimeout,
      .httpVersionNotSupported,
    ]
    return known.first { $0.code == status }?.reasonPhrase ?? ""
  }

  private func answer(_ status: Int, _ fields: [(String, String)], _ body: [UInt8], unread: Bool) {
    waitingHead = nil
    pending = nil
    // A short body is read to its end; with a long one, or where the client waits for a 100 that it will not get, the connection ends.
    let isShort = (exchange.bodyLength ?? .max) <= Self.mostOwnBody && !exchange.expectsContinue && !exchange.bytesWereSent
    exchange.closesAfter = !exchange.keepsAlive || unread || isQuiescing || !exchange.requestIsDone && !isShort
    var out = context?.channel.allocator.buffer(capacity: body.count + 512) ?? ByteBuffer()
    out.writeString("HTTP/1.1 \(status) \(Self.reason(status))\r\n")
    for (name, value) in fields { out.writeString("\(name): \(value)\r\n") }
    out.writeString("Content-Length: \(body.count)\r\n")
    if exchange.closesAfter {
      out.writeStaticString("Connection: close\r\n")
    } else if exchange.minorVersion == 0 {
      out.writeStaticString("Connection: keep-alive\r\n")
    }
    out.writeStaticString("\r\n")
    if !exchange.isHead { out.writeBytes(body) }
    context?.write(wrapOutboundOut(out), promise: nil)
    exchange.answerHasBegun = true
    if unread || exchange.closesAfter, !exchange.requestIsDone || unread {
      linger()
    } else if exchange.requestIsDone {
      finish()
    } else {
      phase = .refused
      began = loop.now
      context?.flush()
      process()
    }
  }
}
