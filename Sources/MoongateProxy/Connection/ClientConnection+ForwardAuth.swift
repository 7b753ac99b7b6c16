import MoongateCore
import NIOCore

/// Responses to forward-auth requests: a proxy asks whether an original request may pass.
///
/// The original request is authorized like a proxied one, on the event loop and from the session cache. The "allow"
/// response is prepared once per session, audience and minute.
extension ClientConnection {
  private static let root: [UInt8] = [UInt8(ascii: "/")]

  /// - Parameters:
  ///   - rest: the part of the path after the dialect's name.
  ///   - found: what the store answered about the session or token, on the second call for the same head.
  func answerForwardAuth(
    _ dialect: ForwardDialect, rest: Range<Int>, _ head: RequestHead, found: SessionCache.LookupResult?
  ) {
    let authorizer = loop.currentAuthorizer()
    guard isTrusted(authorizer.plan) else {
      return refuse(.denied, reason: "it asks for another request, and is not in trusted_proxies", head: head)
    }
    let bytes = head.bytes.readableBytesUInt8Span
    let original: OriginalRequest
    do throws(OriginalRequest.Fault) {
      original = try OriginalRequest(dialect, head, rest: rest) { originalHost(bytes, $0) }
    } catch {
      switch error {
      case .malformed(let reason): return refuse(.badRequest, reason: reason, head: head)
      case .forwarding(let fault): return refuse(fault, head)
      }
    }
    let raw = original.path.isEmpty ? Self.root.span : bytes.extracting(original.path)
    guard let path = RequestPath(raw, taking: .all) else {
      return refuse(original, in: head, .badRequest, reason: RequestPath.fault)
    }
    if ByteClass.equalCase(bytes, original.method, "CONNECT") || ByteClass.equalCase(bytes, original.method, "TRACE") {
      return refuse(original, in: head, .denied, reason: "CONNECT and TRACE are never passed on")
    }
    var request = AccessRequest(
      original, in: head, normalPath: path, client: state.exchange.client ?? peer)
    request.isRateCounted = state.exchange.isRateCounted
    answerForwardAuth(original, by: authorizer, request, dialect, found)
  }

  private func answerForwardAuth(
    _ original: OriginalRequest, by authorizer: Authorizer, _ request: AccessRequest, _ dialect: ForwardDialect,
    _ found: SessionCache.LookupResult?
  ) {
    let plan = authorizer.plan
    let time = loop.accessTime()
    let decision = authorizer.authorize(request, at: time, found: found)
    record(decision, of: request)
    switch decision.outcome {
    case .pass(let grant): allow(original, request, grant, dialect, (plan, time.now))
    case .redirect(let location):
      let bytes = request.head.bytes.readableBytesUInt8Span
      let isSafe =
        ByteClass.equalCase(bytes, original.method, "GET") || ByteClass.equalCase(bytes, original.method, "HEAD")
      redirect(to: location, status: dialect.redirectStatus(isSafe: isSafe))
    case .noRoute: refuse(original, in: request.head, .denied, reason: "no route")
    case .refuse(let refusal): refuse(refusal.about(original.detail(in: request.head)))
    case .loops(let found):
      // nginx does not show the body of a 401.
      refuse(
        found, about: original.detail(in: request.head), page: dialect == .nginx ? plan.issuer + PagePath.error : nil)
    case .needsLookup(let lookup): look(up: lookup, for: request.head)
    }
  }

  private func allow(
    _ original: OriginalRequest, _ request: AccessRequest, _ grant: AccessGrant, _ dialect: ForwardDialect,
    _ context: (plan: GenerationPlan, now: Timestamp)
  ) {
    let (plan, now) = context
    // Attack: a proxy that passes everything on, such as a terminator of TLS, passes on a client's own question as
    // well. The answer would tell each user, and each script of a page, the password of a service.
    guard grant.authorization.isEmpty || plan.settings.answersCredentials else {
      let reason = "the route states Authorization, and gateway.lua has no forward_auth_credentials = true"
      return refuse(original, in: request.head, .denied, reason: reason)
    }
    let authorization = dialect.authorization(
      request.head, isDropped: grant.dropsAuthorization, own: grant.authorization)
    guard let session = grant.session else { return answer(plan.anonymousForwardAnswer, and: authorization) }
    if session.snapshot.token == nil { recordArrival(session, request, now) }
    recordUse(of: grant, request, now)
    do {
      let allowed = try session.forwardAnswer(
        by: loop.shared.assertions, plan, grant.entitlements,
        for: (grant.route.rule.host ?? original.host.host.name, grant.route.identity), now: now)
      answer(allowed, and: authorization)
    } catch {
      refuse(original, in: request.head, .policyError, reason: "the assertion cannot be signed: \(error)")
    }
  }

  private func refuse(_ original: OriginalRequest, in head: RequestHead, _ code: RefusalCode, reason: String) {
    refuse(RequestRefusal(code, reason: reason).about(original.detail(in: head)))
  }
}
