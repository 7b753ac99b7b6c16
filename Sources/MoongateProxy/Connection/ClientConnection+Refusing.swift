import HTTPTypes
import MoongateCore
import MoongateSDK
import NIOCore

/// Responses that the data path writes itself.
extension ClientConnection {
  /// Refuses the current request.
  /// - Parameters:
  ///   - reason: for the operator.
  ///   - head: for the operator: host, path and method are recorded, never the query.
  ///   - unread: whether bytes follow whose end is unknown. The connection is then closed.
  func refuse(_ code: RefusalCode, reason: String? = nil, head: RequestHead? = nil, unread: Bool = false) {
    let refusal = RequestRefusal(code, detail: reason.map { ["reason": $0] } ?? [:])
    refuse(head.map { refusal.about(detail($0)) } ?? refusal, unread: unread)
  }

  /// Refuses a request whose forwarding headers cannot be read.
  func refuse(_ fault: ForwardingFault, _ head: RequestHead) {
    loop.shared.forwardingFaults.report(LoggedForwardingFault(fault, from: peer))
    refuse(.badRequest, reason: fault.reason, head: head)
  }

  /// Refuses the current request: records the refusal and writes the response, as a page for browsers.
  /// - Parameter unread: whether bytes follow whose end is unknown. The connection is then closed.
  func refuse(_ refusal: RequestRefusal, unread: Bool = false) {
    let code = refusal.code
    let decision = recordAndLog(refusal)
    state.exchange.decision = decision
    state.exchange.outcome = code.status < 500 ? .refused : .failed
    var sentence = refusal.sentence
    if case .policyReason(let reason) = code {
      sentence = sentence ?? loop.currentPlan().generation.text(ofReason: reason)
    }
    let problem = Refusal(
      code, decision: decision, detail: sentence, retryAfter: refusal.retryAfter, provider: refusal.provider,
      flow: refusal.flow, groups: refusal.groups)
    var fields: [(String, String)] = [("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")]
    // Routes for users send no challenge, because a browser would ask for a password.
    if code == .unauthenticated, state.exchange.takesTokens {
      fields.append(("WWW-Authenticate", loop.currentPlan().challenges))
    }
    if let marks = state.exchange.marks { fields += marks.fields(isOptions: false) }
    if let seconds = problem.retryAfterSeconds { fields.append(("Retry-After", String(seconds))) }
    if let excess = refusal.excess {
      fields += excess.fields
      loop.metrics.countRateLimited(state.exchange.metricsIndex)
    }
    if code == .methodNotAllowed { fields.append(Self.allowedMethods) }
    if let page = refusalPage(problem, to: refusal.visitor) {
      answer(code.status, fields + page.fields, Array(page.html.utf8), unread: unread)
    } else {
      fields.append(("Content-Type", Refusal.mediaType))
      answer(code.status, fields, problem.document(), unread: unread)
    }
  }

  /// The methods that the gateway passes on.
  private static let allowedMethods = ("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")

  /// Answers a request about the server itself. No service sees it.
  func answerOptions() {
    state.exchange.metricsIndex = EventLoopMetrics.own
    state.exchange.outcome = .own
    answer(204, [Self.allowedMethods], [], unread: false)
  }

  private func recordAndLog(_ refusal: RequestRefusal) -> DecisionID {
    var detail = refusal.detail
    if let fault = refusal.fault { detail["fault"] = fault.description }
    let decision = record(refusal.code, detail: detail, account: refusal.account ?? refusal.visitor?.account.id)
    if let failure = refusal.failure { report(failure.cause, failure.reason, failure.route, decision) }
    if let fault = refusal.fault {
      loop.shared.dependencies.policyFaults.report(fault, rule: detail["rule"], decision: decision)
    }
    return decision
  }

  /// The request as recorded for the operator. Never contains the query.
  func detail(_ head: RequestHead) -> [String: String] {
    [
      "host": String(authority(of: head).prefix(100)), "path": String(head.text(head.path).prefix(200)),
      "method": String(head.text(head.methodName).prefix(20)),
    ]
  }

  /// Redirects the client to another page.
  func redirect(to location: String, status: Int = 302) {
    state.exchange.outcome = .redirected
    answer(status, [("Location", location), ("Cache-Control", "no-store")], [], unread: false)
  }

  /// Records a refusal for the operator.
  func record(_ code: RefusalCode, detail: [String: String], account: String? = nil) -> DecisionID {
    let dependencies = loop.shared.dependencies
    return dependencies.audit.record(
      AuditEvent(
        id: state.exchange.decision ?? DecisionID(from: dependencies.random), at: dependencies.clock.now(),
        kind: .refused,
        account: account,
        address: (state.exchange.client ?? peer).description, code: code.name,
        detail: detail))
  }

  private func answer(_ status: Int, _ fields: [(String, String)], _ body: [UInt8], unread: Bool) {
    state.prepareToAnswer(unread: unread)
    state.exchange.status = status
    state.exchange.answerBytes = state.exchange.isHead ? 0 : body.count
    var out = ByteBufferAllocator().buffer(capacity: body.count + 512)
    out.writeString("HTTP/1.1 \(status) \(HTTPResponse.Status(known: status).reasonPhrase)\r\n")
    for (name, value) in fields { out.writeString("\(name): \(value)\r\n") }
    out.writeBytes(loop.currentPlan().securityLine)
    out.writeBytes(loop.dateLine(at: loop.now))
    // RFC 9110 section 8.6: a 204 has no Content-Length.
    if status != 204 { out.writeLength(.length(body.count)) }
    endHead(&out)
    if !state.exchange.isHead { out.writeBytes(body) }
    wire?.send(out)
    perform(state.answered(unread: unread, at: loop.now))
  }

  /// Writes a prepared response without a body.
  /// - Parameters:
  ///   - ready: the complete head with its empty line.
  ///   - more: additional header lines.
  func answer(_ ready: ByteBuffer, and more: [UInt8] = []) {
    state.prepareToAnswer(unread: false)
    state.exchange.status = 200
    state.exchange.outcome = .passed
    let date = loop.dateLine(at: loop.now)
    var out = ByteBufferAllocator().buffer(capacity: ready.readableBytes + more.count + date.count + 32)
    out.writeImmutableBuffer(ready)
    out.moveWriterIndex(to: out.writerIndex - 2)
    out.writeBytes(more)
    out.writeBytes(date)
    endHead(&out)
    wire?.send(out)
    perform(state.answered(unread: false, at: loop.now))
  }

  private func endHead(_ out: inout ByteBuffer) {
    out.writePersistence(closes: state.exchange.closesAfter, minorVersion: state.exchange.minorVersion)
    out.writeStaticString("\r\n")
  }
}
