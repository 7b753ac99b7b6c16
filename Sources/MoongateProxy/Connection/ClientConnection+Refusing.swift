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
  ///   - sentence: for the person, in place of the code's own.
  ///   - visitor: who is signed in, where the page is to say so.
  ///   - fault: of the policy that could not be run; the log tells of it.
  ///   - failure: of the upstream that gave no answer; it is counted, and the log tells of it.
  ///   - unread: whether bytes follow of which it is not known where they end.
  func refuse(
    _ code: RefusalCode, detail: [String: String] = [:], provider: ProviderName? = nil, flow: String? = nil,
    account: String? = nil,
    groups: GroupRequirement? = nil, visitor: RefusedVisitor? = nil, head: RequestHead? = nil,
    retryAfter: Duration? = nil, sentence: String? = nil,
    fault: PolicyFault? = nil, failure: (cause: UpstreamFailureLog.Cause, reason: String, route: RoutePlan)? = nil,
    unread: Bool = false
  ) {
    var detail = head.map { self.detail($0).merging(detail) { $1 } } ?? detail
    if let fault { detail["fault"] = fault.description }
    let decision = record(code, detail: detail, account: account ?? visitor?.account.id)
    exchange.decision = decision
    if let failure { report(failure.cause, failure.reason, failure.route, decision) }
    if let fault { loop.proxy.dependencies.policyFaults.report(fault, rule: detail["rule"], decision: decision) }
    exchange.outcome = code.status < 500 ? .refused : .failed
    var sentence = sentence
    if case .policyReason(let reason) = code {
      sentence = sentence ?? loop.currentPlan().generation.text(ofReason: reason)
    }
    let refusal = Refusal(
      code, decision: decision, detail: sentence, retryAfter: retryAfter, provider: provider, flow: flow, groups: groups
    )
    var fields: [(String, String)] = [("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")]
    // Routes for people ask for no credentials by HTTP: a browser would open a window for a password.
    if code == .unauthenticated, exchange.takesTokens {
      fields += [("WWW-Authenticate", "Bearer"), ("WWW-Authenticate", loop.currentPlan().basicChallenge)]
    }
    if let seconds = refusal.retryAfterSeconds { fields.append(("Retry-After", String(seconds))) }
    if code == .methodNotAllowed { fields.append(("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")) }
    if let page = exchange.isBrowser ? loop.proxy.page?(refusal, visitor, exchange.languages) : nil {
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

  /// For the operator: which request it was; never its query.
  func detail(_ head: RequestHead) -> [String: String] {
    [
      "host": String(head.text(head.host).prefix(100)), "path": String(head.text(head.path).prefix(200)),
      "method": String(head.text(head.methodName).prefix(20)),
    ]
  }

  /// Sends the client to another page.
  func redirect(to location: String, status: Int = 302) {
    exchange.outcome = .redirected
    answer(status, [("Location", location), ("Cache-Control", "no-store")], [], unread: false)
  }

  /// Notes a decision for the operator.
  @discardableResult
  func record(_ code: RefusalCode, detail: [String: String], account: String? = nil) -> DecisionID {
    let dependencies = loop.proxy.dependencies
    return dependencies.audit.record(
      AuditEvent(
        id: exchange.decision ?? DecisionID(from: dependencies.random), at: dependencies.clock.now(), kind: .refused,
        account: account,
        address: (exchange.client ?? peer).description, code: code.name,
        detail: detail))
  }

  /// The phrase that goes with a status (RFC 9110 section 15).
  private static func reason(_ status: Int) -> String {
    let known: [HTTPResponse.Status] = [
      .ok, .found, .seeOther, .badRequest, .unauthorized, .forbidden, .notFound, .methodNotAllowed, .requestTimeout,
      .conflict, .gone,
      .contentTooLarge, .unsupportedMediaType, .unprocessableContent, .tooManyRequests, .requestHeaderFieldsTooLarge,
      .badGateway,
      .serviceUnavailable, .gatewayTimeout, .httpVersionNotSupported,
    ]
    return known.first { $0.code == status }?.reasonPhrase ?? ""
  }

  private func answer(_ status: Int, _ fields: [(String, String)], _ body: [UInt8], unread: Bool) {
    prepareToAnswer(unread: unread)
    exchange.status = status
    exchange.answerBytes = exchange.isHead ? 0 : body.count
    var out = wire?.allocator.buffer(capacity: body.count + 512) ?? ByteBuffer()
    out.writeString("HTTP/1.1 \(status) \(Self.reason(status))\r\n")
    for (name, value) in fields { out.writeString("\(name): \(value)\r\n") }
    out.writeBytes(loop.currentPlan().securityLine)
    out.writeBytes(loop.dateLine())
    out.writeString("Content-Length: \(body.count)\r\n")
    endHead(&out)
    if !exchange.isHead { out.writeBytes(body) }
    wire?.send(out)
    answered(unread: unread)
  }

  /// Answers with a head that lies ready: without a body, and with the empty line at its end.
  /// - Parameter more: further lines.
  func answer(_ ready: ByteBuffer, and more: [UInt8] = []) {
    prepareToAnswer(unread: false)
    exchange.status = 200
    exchange.outcome = .passed
    let date = loop.dateLine()
    var out =
      wire?.allocator.buffer(capacity: ready.readableBytes + more.count + date.count + 32) ?? ByteBuffer()
    out.writeImmutableBuffer(ready)
    out.moveWriterIndex(to: out.writerIndex - 2)
    out.writeBytes(more)
    out.writeBytes(date)
    endHead(&out)
    wire?.send(out)
    answered(unread: false)
  }

  private func prepareToAnswer(unread: Bool) {
    waitingHead = nil
    pending = nil
    // A short body is read to its end; with a long one, or where the client waits for a 100 that it will not get, the
    // connection ends.
    let isShort =
      (exchange.bodyLength ?? .max) <= Self.mostOwnBody && !exchange.expectsContinue && !exchange.bytesWereSent
    exchange.closesAfter = !exchange.keepsAlive || unread || isQuiescing || !exchange.requestIsDone && !isShort
  }

  private func endHead(_ out: inout ByteBuffer) {
    if exchange.closesAfter {
      out.writeStaticString("Connection: close\r\n")
    } else if exchange.minorVersion == 0 {
      out.writeStaticString("Connection: keep-alive\r\n")
    }
    out.writeStaticString("\r\n")
  }

  private func answered(unread: Bool) {
    exchange.answerHasBegun = true
    if unread || exchange.closesAfter, !exchange.requestIsDone || unread {
      linger()
    } else if exchange.requestIsDone {
      finish()
    } else {
      phase = .refused
      began = loop.now
      wire?.flush()
      process()
    }
  }
}
