import MoongateCore
import MoongateSDK
import NIOCore

/// From a head to what becomes of it.
extension ClientConnection {
  private static let root: [UInt8] = [UInt8(ascii: "/")]

  /// Judges a head. Comes a second time, with the store's answer, where the session was not remembered.
  func receive(_ head: RequestHead, answer: SessionCache.Answer?) {
    let bytes = head.bytes.readableBytesUInt8Span
    exchange.isBrowser = namesHTML(head, bytes)
    if exchange.isBrowser { exchange.languages = head.languages }
    guard answer != nil || mayAsk(head) else { return refuse(.rateLimited, head: head, retryAfter: .seconds(1)) }
    guard let host = host(of: head, bytes) else {
      return refuse(.badRequest, detail: ["reason": "a malformed Host"], head: head)
    }
    if let authority = head.authority {
      let isHTTP = bytes[head.target.lowerBound + 4] == UInt8(ascii: ":")
      guard let named = HostName(bytes.extracting(authority)), host.agrees(with: named, defaultPort: isHTTP ? 80 : 443)
      else {
        return refuse(.badRequest, detail: ["reason": "the target's host is not the Host"], head: head)
      }
    }
    let raw = head.path.isEmpty ? Self.root.span : bytes.extracting(head.path)
    guard let path = RequestPath(raw) else {
      return refuse(.badRequest, detail: ["reason": "a path that is not in normal form"], head: head)
    }
    if let decoded = path.decoded {
      receive(head, bytes, host, decoded.span, answer)
    } else {
      receive(head, bytes, host, raw, answer)
    }
  }

  private func receive(
    _ head: RequestHead, _ bytes: Span<UInt8>, _ host: RequestHost, _ path: Span<UInt8>, _ answer: SessionCache.Answer?
  ) {
    if isOwn(path) {
      guard let asked = ForwardDialect.asked(bytes, head.path) else { return beginOwn(head) }
      return answerForward(asked, head, bytes, ownHost: host, answer: answer)
    }
    let plan = loop.currentPlan()
    let origin = origin(of: head, host, plan)
    guard let index = plan.matcher.match(host: origin.host.name, path: path, method: bytes.extracting(head.methodName))
    else {
      watch(nil) { facts(head, origin) }
      return refuse(.noRoute, head: head)
    }
    let route = plan.routes[index]
    exchange.place = route.place
    if origin.address != peer { exchange.client = origin.address }
    exchange.takesTokens = route.route.tokens != nil
    let credentials = Credentials(head, bytes, cookieName: plan.cookieName)
    if credentials.isContradictory { return refuse(.badRequest, detail: ["reason": "more than one token"], head: head) }
    let monotonic = loop.now
    let time = loop.time(at: monotonic)
    var session: CachedSession?
    var storeIsSilent = false
    let token = exchange.takesTokens ? findToken(credentials, on: route, from: origin.address, time, answer) : .absent
    switch token {
    case .found(let found): session = found
    case .refused(let refusal): return refuse(refusal, detail(head))
    case .unknown(let key, let lookup): return look(up: key, in: loop.tokens.cache, by: lookup, for: head)
    case .absent:
      switch find(credentials, bytes, time, answer) {
      // Attack: a token of one root domain, sent to a host of another.
      case .found(let found): session = found.flatMap { plan.accepts($0, at: origin.host) ? $0 : nil }
      case .storeIsSilent: storeIsSilent = true
      case .unknown(let key): return look(up: key, in: loop.sessions, by: loop.lookup(of: key), for: head)
      }
    }
    if storeIsSilent, !route.route.isOpen { return refuse(.storeUnavailable, head: head) }
    // A token that is not looked at here may be good where the candidate looks at it: nobody can say.
    if !storeIsSilent, exchange.takesTokens || !(credentials.program?.isToken ?? false) {
      watch(session) { facts(head, origin) }
    }
    let entitlements = entitlements(of: &session, on: route, plan, monotonic)
    if !route.admits(session, entitlements) {
      let judge = Judge(
        plan: plan, now: time.now, monotonic: monotonic, clockIsSuspect: loop.proxy.dependencies.clock.isSuspect,
        keys: loop.proxy.dependencies.keys)
      let request = facts(head, origin)
      let judgement = judge.judge(route, session: session, entitlements, request: request)
      if route.route.decide != nil { loop.numbers.policy.record(nanoseconds: (loop.now - monotonic).nanoseconds) }
      switch judgement {
      case .redirect(let location):
        if session == nil, let round = goesRound(request, credentials, plan, time.now) {
          return refuseRound(round, detail(head))
        }
        return redirect(to: location)
      case .refuse(let code, let detail, let provider, let flow):
        return refuse(
          code, detail: detail, provider: provider, flow: flow, account: session?.snapshot.account.id, head: head)
      case .forbid(let groups, let address, let detail):
        let visitor = session.map { RefusedVisitor(account: $0.snapshot.account, address: address) }
        return refuse(.forbidden, detail: detail, groups: groups, visitor: visitor, head: head)
      case .fail(let fault, let detail):
        return refuse(.policyError, detail: detail, account: session?.snapshot.account.id, head: head, fault: fault)
      case .pass: break
      }
    }
    if head.wantsUpgrade {
      // Behind a body it would not be known which bytes are the body's and which the tunnel's.
      guard !exchange.hasBody else {
        return refuse(.badRequest, detail: ["reason": "an upgrade with a body"], head: head)
      }
      guard route.route.allowsUpgrade else {
        return refuse(.denied, detail: ["reason": "this route allows no upgrade"], head: head)
      }
      // Attack: behind an upgrade to another HTTP, requests would reach the upstream unjudged, with identities of the
      // client's own.
      guard !head.asksForAnotherHTTP else {
        return refuse(.denied, detail: ["reason": "no upgrade leads to another HTTP"], head: head)
      }
      // Attack: a page of another site opens a socket, and the browser adds our cookie (security.md 26).
      // The same by a token that was typed into the browser's own dialog, which it adds as well. Programs send no
      // Origin.
      let isAdded = credentials.isCookie || credentials.isBasic && head.count(of: .origin) > 0
      if isAdded, session != nil, !hasRightOrigin(head, bytes, origin, plan) {
        return refuse(.originRefused, head: head)
      }
    }
    if let limit = route.route.bodyLimit {
      if case .length(let length) = head.framing, length > limit { return refuse(.tooLarge, head: head) }
      exchange.bodyLeft = limit
    }
    if let session {
      noteUse(session, from: origin.address, time.now)
      if !loop.proxy.returns.isEmpty, session.snapshot.token == nil {
        noteArrival(session, facts(head, origin), time.now)
      }
      exchange.account = session.snapshot.account.id
    }
    let dropsAuthorization = dropsAuthorization(credentials, hasSession: session != nil, storeIsSilent: storeIsSilent)
    forward(
      head, bytes, to: route, plan, host: host, origin: origin, session: session, (try? entitlements.get()) ?? .none,
      now: time.now,
      dropsAuthorization: dropsAuthorization, hasOurCookies: credentials.hasOurCookies)
  }

  /// What is known of the session that a request names.
  enum SessionFinding {
    case found(CachedSession?)
    /// Nobody can say at the moment.
    case storeIsSilent
    /// The store has to be asked.
    case unknown(SessionKey)
  }

  func find(
    _ credentials: Credentials, _ bytes: Span<UInt8>, _ time: (now: Timestamp, storeIsFresh: Bool),
    _ answer: SessionCache.Answer?
  )
    -> SessionFinding
  {
    guard let token = credentials.token else { return .found(nil) }
    let key = SessionKey(hashing: bytes, token)
    return switch time.storeIsFresh ? answer ?? loop.sessions.known(key, now: time.now) : .unavailable {
    case .live(let session): .found(session)
    case .none: .found(nil)
    case .unavailable, .locked: .storeIsSilent
    case .unknown: .unknown(key)
    }
  }

  /// The groups and claims of a session.
  /// - Parameter session: becomes nobody's where they cannot be told and the route is open to all.
  func entitlements(
    of session: inout CachedSession?, on route: RoutePlan, _ plan: GenerationPlan, _ monotonic: NIODeadline
  ) -> Result<Entitlements, PolicyFault> {
    guard let found = session else { return .success(.none) }
    let outcome = found.entitlements(in: plan, at: monotonic).outcome
    guard case .failure(let fault) = outcome, route.route.isOpen else { return outcome }
    // Attack: a page that is open to all is told somebody's name without the group that bars them. It gets a visitor,
    // as where the store is silent.
    session = nil
    loop.proxy.dependencies.policyFaults.report(fault, rule: "accounts", decision: nil)
    return .success(.none)
  }

  /// Whether the service must not see Authorization: it names a session, or may at a moment when nobody can say; or it
  /// holds a token of a program, on whatever route.
  ///
  /// Attack: a token that was sent to the wrong address of the gateway, where a service reads it that may not have it.
  func dropsAuthorization(_ credentials: Credentials, hasSession: Bool, storeIsSilent: Bool) -> Bool {
    credentials.isBearerUnjudged || credentials.isBearer && (hasSession || storeIsSilent)
      || credentials.program?.isToken ?? false
  }

  func look(up key: SessionKey, in cache: SessionCache, by lookup: @escaping SessionCache.Lookup, for head: RequestHead)
  {
    phase = .looking
    lastActivity = loop.now
    waitingHead = head
    let asked = serial
    cache.ask(key, by: lookup) { [weak self] answer in
      guard let self, self.serial == asked, self.phase == .looking, let head = self.waitingHead else { return }
      self.waitingHead = nil
      self.receive(head, answer: answer)
      self.process()
      self.upstream?.flush()
    }
  }

  private func forward(
    _ head: RequestHead, _ bytes: Span<UInt8>, to route: RoutePlan, _ plan: GenerationPlan, host: RequestHost,
    origin: RequestOrigin,
    session: CachedSession?, _ entitlements: Entitlements, now: Timestamp, dropsAuthorization: Bool, hasOurCookies: Bool
  ) {
    var assertion: [UInt8] = []
    if let session {
      do {
        assertion = try session.assertionLine(
          by: loop.proxy.assertions, plan, entitlements, audience: route.route.host ?? origin.host.name, now: now)
      } catch {
        return refuse(.policyError, detail: ["fault": "the assertion cannot be signed: \(error)"], head: head)
      }
    }
    let rewriter = RequestRewriter(
      route: route, host: host, origin: origin, dropsAuthorization: dropsAuthorization, hasOurCookies: hasOurCookies,
      identity: session?.entitlements(in: plan, at: loop.now).identity ?? [], assertion: assertion,
      passesUpgrade: head.wantsUpgrade,
      trace: exchange.trace)
    let address = origin.address == peer ? peerAddressText() : Array(origin.address.description.utf8)
    exchange.upstreamHead = rewriter.write(
      head, address: address, allocator: wire?.allocator ?? ByteBufferAllocator())
    exchange.route = route
    exchange.session = session
    exchange.entitlements = entitlements
    beginExchange()
  }

  // MARK: parts of the judgement

  /// The gateway's own paths (http.md).
  private func isOwn(_ path: Span<UInt8>) -> Bool {
    guard path.count > 1 else { return false }
    switch path[1] {
    case UInt8(ascii: "a"):
      return Self.begins(path, "/auth") && (path.count == 5 || path[5] == UInt8(ascii: "/"))
        || Self.begins(path, "/api/auth/")
    case UInt8(ascii: "."):
      return Self.begins(path, "/.well-known/moongate/")
        || loop.currentPlan().wellKnown.contains { own in
          own.count == path.count && own.indices.allSatisfy { own[$0] == path[$0] }
        }
    default:
      return loop.proxy.ownPrefixes.contains { prefix in
        let count = prefix.utf8.count
        guard path.count >= count, path.count == count || path[count] == UInt8(ascii: "/") else { return false }
        return prefix.utf8.enumerated().allSatisfy { path[$0.offset] == $0.element }
      }
    }
  }

  private static func begins(_ path: Span<UInt8>, _ text: StaticString) -> Bool {
    path.count >= text.utf8CodeUnitCount && ByteClass.equalCase(path, 0..<text.utf8CodeUnitCount, text)
  }

  private func host(of head: RequestHead, _ bytes: Span<UInt8>) -> RequestHost? {
    if let last = known.lastHost, last.isSpelled(bytes, head.host) { return last }
    guard let found = loop.host(bytes, head.host) else { return nil }
    known.lastHost = found
    return found
  }

  private func origin(of head: RequestHead, _ host: RequestHost, _ plan: GenerationPlan) -> RequestOrigin {
    let trusted = plan.trustedProxies
    let isPlain =
      trusted.isEmpty
      || !head.fields.contains { $0.kind == .forwardedFor || $0.kind == .forwardedProto || $0.kind == .forwardedHost }
    if isPlain || !isTrusted(plan) { return RequestOrigin(address: peer, isSecure: isSecure, host: host.host) }
    let values = { (kind: FieldKind) in head.fields.filter { $0.kind == kind }.map { head.text($0.value) } }
    let client = ForwardedClient(
      peer: peer, trusted: trusted, isSecure: isSecure, host: host.host.authority, forwardedFor: values(.forwardedFor),
      forwardedProto: values(.forwardedProto), forwardedHost: values(.forwardedHost))
    exchange.client = client.address
    return RequestOrigin(address: client.address, isSecure: client.isSecure, host: client.host ?? host.host)
  }

  /// Exactly one Origin, and it is public_url's or the request's own.
  private func hasRightOrigin(
    _ head: RequestHead, _ bytes: Span<UInt8>, _ origin: RequestOrigin, _ plan: GenerationPlan
  ) -> Bool {
    guard head.count(of: .origin) == 1, let field = head.first(.origin) else { return false }
    let text = head.text(field.value)
    return text == plan.issuer || text == origin.origin
  }

  /// A browser is who names text/html in Accept.
  private func namesHTML(_ head: RequestHead, _ bytes: Span<UInt8>) -> Bool {
    for field in head.fields where field.kind == .accept {
      let value = field.value
      var start = value.lowerBound
      while start < value.upperBound {
        var end = start
        while end < value.upperBound, bytes[end] != UInt8(ascii: ","), bytes[end] != UInt8(ascii: ";") { end += 1 }
        if ByteClass.equal(bytes, ByteClass.trimmed(bytes, start..<end), "text/html") { return true }
        while end < value.upperBound, bytes[end] != UInt8(ascii: ",") { end += 1 }
        start = end + 1
      }
    }
    return false
  }

  private func facts(_ head: RequestHead, _ origin: RequestOrigin) -> RequestFactsSource {
    RequestFactsSource(
      method: { head.text(head.methodName) }, path: { head.path.isEmpty ? "/" : head.text(head.path) },
      query: { head.query.map { head.text($0) } },
      mayRedirect: head.method == .get && exchange.isBrowser, isForwarded: false, origin: origin,
      userAgent: { head.userAgent })
  }

  private func peerAddressText() -> [UInt8] {
    if known.addressText.isEmpty { known.addressText = Array(peer.description.utf8) }
    return known.addressText
  }
}
