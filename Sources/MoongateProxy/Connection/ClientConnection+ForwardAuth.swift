import MoongateCore
import NIOCore

/// Answers to proxies that ask whether a request may pass (http.md, "Forward-auth"): judged by the routes like a
/// request of its own, on the event loop, from the remembered session; a yes is bytes that lie ready.
extension ClientConnection {
  /// - Parameters:
  ///   - ownHost: the Host of the proxy's request.
  ///   - answer: the store's, where this is the second time.
  func answerForward(
    _ asked: (dialect: ForwardDialect, rest: Range<Int>), _ head: RequestHead, _ bytes: Span<UInt8>,
    ownHost: RequestHost,
    answer: SessionCache.Answer?
  ) {
    let plan = loop.currentPlan()
    guard isTrusted(plan) else {
      return refuse(
        .denied, detail: ["reason": "it asks for another request, and is not in trusted_proxies"], head: head)
    }
    let question: ForwardQuestion
    do throws(MessageFault) {
      question = try ForwardQuestion(asked.dialect, head, bytes, rest: asked.rest, ownHost: ownHost) {
        hostAskedFor(bytes, $0)
      }
    } catch {
      guard case .malformed(let reason) = error else { return refuse(.badRequest, head: head) }
      return refuse(.badRequest, detail: ["reason": reason], head: head)
    }
    if question.path.isEmpty {
      let root = [UInt8(ascii: "/")]
      return answerQuestion(asked.dialect, question, head, bytes, root.span, plan, answer)
    }
    guard let path = RequestPath(bytes.extracting(question.path)) else {
      return refuse(.badRequest, detail: detail(question, head, "a path that is not in normal form"))
    }
    if let decoded = path.decoded {
      answerQuestion(asked.dialect, question, head, bytes, decoded.span, plan, answer)
    } else {
      answerQuestion(asked.dialect, question, head, bytes, bytes.extracting(question.path), plan, answer)
    }
  }

  private func answerQuestion(
    _ dialect: ForwardDialect, _ question: ForwardQuestion, _ head: RequestHead, _ bytes: Span<UInt8>,
    _ path: Span<UInt8>, _ plan: GenerationPlan,
    _ answer: SessionCache.Answer?
  ) {
    let isForbidden =
      ByteClass.equalCase(bytes, question.method, "CONNECT") || ByteClass.equalCase(bytes, question.method, "TRACE")
    guard !isForbidden,
      let index = plan.matcher.match(
        host: question.host.host.name, path: path, method: bytes.extracting(question.method))
    else {
      if !isForbidden { watch(nil) { facts(question, head, origin(of: question, head, plan)) } }
      return refuse(
        .denied, detail: detail(question, head, isForbidden ? "CONNECT and TRACE are never passed on" : "no route"))
    }
    // Led to from here, it would be asked about again, round and round.
    guard !plan.hasFurtherDomains || !ByteClass.equalCase(path, 0..<path.count, GenerationPlan.handoff) else {
      return refuse(
        .denied,
        detail: detail(
          question, head, "the proxy asks about /auth/handoff: it must send /auth/ of this host to the gateway"))
    }
    let route = plan.routes[index]
    exchange.place = route.place
    exchange.takesTokens = route.route.tokens != nil
    let credentials = Credentials(head, bytes, cookieName: plan.cookieName)
    if credentials.isContradictory { return refuse(.badRequest, detail: detail(question, head, "more than one token")) }
    let monotonic = loop.now
    let time = loop.time(at: monotonic)
    var session: CachedSession?
    var storeIsSilent = false
    let client = exchange.takesTokens && credentials.program != nil ? clientAddress(head, plan) : peer
    let token = exchange.takesTokens ? findToken(credentials, on: route, from: client, time, answer) : .absent
    switch token {
    case .found(let found): session = found
    case .refused(let refusal):
      exchange.client = client
      return refuse(refusal, detail(question, head, nil))
    case .unknown(let key, let lookup): return look(up: key, in: loop.tokens.cache, by: lookup, for: head)
    case .absent:
      switch find(credentials, bytes, time, answer) {
      case .found(let found): session = found.flatMap { plan.accepts($0, at: question.host.host) ? $0 : nil }
      case .storeIsSilent:
        guard route.route.isOpen else {
          return refuse(.storeUnavailable, detail: detail(question, head, "the store does not answer"))
        }
        storeIsSilent = true
      case .unknown(let key): return look(up: key, in: loop.sessions, by: loop.lookup(of: key), for: head)
      }
    }
    if !storeIsSilent, exchange.takesTokens || !(credentials.program?.isToken ?? false) {
      watch(session) { facts(question, head, origin(of: question, head, plan)) }
    }
    let entitlements = entitlements(of: &session, on: route, plan, monotonic)
    if !route.admits(session, entitlements) || session != nil && !loop.proxy.returns.isEmpty {
      let origin = origin(of: question, head, plan)
      exchange.client = origin.address
      let judge = Judge(
        plan: plan, now: time.now, monotonic: monotonic, clockIsSuspect: loop.proxy.dependencies.clock.isSuspect,
        keys: loop.proxy.dependencies.keys)
      let request = facts(question, head, origin)
      switch judge.judge(route, session: session, entitlements, request: request) {
      case .redirect(let location):
        if session == nil, let round = goesRound(request, credentials, plan, time.now) {
          // nginx shows nobody what a 401 says.
          return refuseRound(
            round, detail(question, head, nil), page: dialect == .nginx ? plan.issuer + "/auth/error" : nil)
        }
        let isSafe =
          ByteClass.equalCase(bytes, question.method, "GET") || ByteClass.equalCase(bytes, question.method, "HEAD")
        return redirect(to: location, status: dialect.redirectStatus(isSafe: isSafe))
      case .refuse(let code, let found, let provider, let flow):
        return refuse(
          code, detail: found.merging(detail(question, head, nil)) { mine, _ in mine }, provider: provider, flow: flow,
          account: session?.snapshot.account.id)
      case .forbid(let groups, let address, let found):
        let notes = found.merging(detail(question, head, nil)) { mine, _ in mine }
        let visitor = session.map { RefusedVisitor(account: $0.snapshot.account, address: address) }
        return refuse(.forbidden, detail: notes, groups: groups, visitor: visitor)
      case .fail(let fault, let found):
        let notes = found.merging(detail(question, head, nil)) { mine, _ in mine }
        return refuse(.policyError, detail: notes, account: session?.snapshot.account.id, fault: fault)
      case .pass: if let session, session.snapshot.token == nil { noteArrival(session, request, time.now) }
      }
    }
    let drops = dropsAuthorization(credentials, hasSession: session != nil, storeIsSilent: storeIsSilent)
    let authorization = dialect.authorization(head, bytes, isDropped: drops)
    guard let session else { return self.answer(plan.forwardAnswerForNobody, and: authorization) }
    noteUse(session, from: client, time.now)
    do {
      self.answer(
        try session.forwardAnswer(
          by: loop.proxy.assertions, plan, (try? entitlements.get()) ?? .none,
          audience: route.route.host ?? question.host.host.name, now: time.now),
        and: authorization)
    } catch {
      refuse(.policyError, detail: detail(question, head, "the assertion cannot be signed: \(error)"))
    }
  }

  private func hostAskedFor(_ bytes: Span<UInt8>, _ range: Range<Int>) -> RequestHost? {
    if let last = known.lastAskedHost, last.isSpelled(bytes, range) { return last }
    guard let found = loop.host(bytes, range) else { return nil }
    known.lastAskedHost = found
    return found
  }

  private func origin(of question: ForwardQuestion, _ head: RequestHead, _ plan: GenerationPlan) -> RequestOrigin {
    RequestOrigin(address: clientAddress(head, plan), isSecure: question.isSecure, host: question.host.host)
  }

  private func facts(_ question: ForwardQuestion, _ head: RequestHead, _ origin: RequestOrigin) -> RequestFactsSource {
    RequestFactsSource(
      method: { head.text(question.method) }, path: { question.path.isEmpty ? "/" : head.text(question.path) },
      query: { question.query.map { head.text($0) } }, mayRedirect: exchange.isBrowser, isForwarded: true,
      origin: origin,
      userAgent: { head.userAgent })
  }

  /// For the operator: which request it was about; never its query.
  private func detail(_ question: ForwardQuestion, _ head: RequestHead, _ reason: String?) -> [String: String] {
    var detail = [
      "host": question.host.host.authority, "path": String(head.text(question.path).prefix(200)),
      "method": String(head.text(question.method).prefix(20)), "asked": "by forward-auth",
    ]
    if let reason { detail["reason"] = reason }
    return detail
  }
}
