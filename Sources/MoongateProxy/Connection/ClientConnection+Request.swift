import MoongateCore
import MoongateSDK
import NIOCore

/// A request from its head to the upstream, to the gateway itself, or to a refusal.
extension ClientConnection {
  private static let root: [UInt8] = [UInt8(ascii: "/")]

  /// Handles a decoded head.
  /// - Parameter found: what the store answered about the session or token, on the second call for the same head.
  func receive(_ head: RequestHead, found: SessionCache.LookupResult?) {
    let bytes = head.bytes.readableBytesUInt8Span
    if found == nil { readFacts(of: head) }
    guard found != nil || isWithinRequestLimit() else {
      var refusal = RequestRefusal(.rateLimited, detail: detail(head))
      refusal.retryAfter = .seconds(1)
      return refuse(refusal)
    }
    guard let host = host(of: head, bytes) else { return refuse(.badRequest, reason: "a malformed Host", head: head) }
    if let authority = head.authority {
      let isHTTP = bytes[head.target.lowerBound + 4] == UInt8(ascii: ":")
      guard let named = HostName(bytes.extracting(authority)), host.agrees(with: named, defaultPort: isHTTP ? 80 : 443)
      else {
        return refuse(.badRequest, reason: "the target's host is not the Host", head: head)
      }
    }
    if head.isAboutServer { return answerOptions() }
    let raw = head.path.isEmpty ? Self.root.span : bytes.extracting(head.path)
    guard let path = RequestPath(raw, taking: .all) else {
      return refuse(.badRequest, reason: RequestPath.fault, head: head)
    }
    let isOwn =
      if let decoded = path.decoded { isOwn(decoded.span, head, host) } else { isOwn(raw, head, host) }
    if !isOwn {
      serve(head, host, path, found)
    } else if let (dialect, rest) = ForwardDialect.asked(bytes, head.path) {
      answerForwardAuth(dialect, rest: rest, head, found: found)
    } else if path.encoded.isEmpty {
      beginOwn(head)
    } else {
      refuse(.badRequest, reason: RequestPath.fault, head: head)
    }
  }

  /// Authorizes a request to a protected service, and acts on the decision.
  private func serve(
    _ head: RequestHead, _ host: RequestHost, _ path: RequestPath, _ found: SessionCache.LookupResult?
  ) {
    let authorizer = loop.currentAuthorizer()
    let plan = authorizer.plan
    let origin: RequestOrigin
    let judged: RequestHost
    do throws(ForwardingFault) {
      (origin, judged) = try self.origin(of: head, host)
    } catch {
      return refuse(error, head)
    }
    var request = AccessRequest(head, normalPath: path, origin: origin)
    request.isRateCounted = state.exchange.isRateCounted
    let time = loop.accessTime()
    let decision = authorizer.authorize(request, at: time, found: found)
    record(decision, of: request)
    if decision.requirementsRan, decision.route?.rule.decide != nil {
      loop.metrics.policy.record(nanoseconds: (loop.now - time.monotonic).nanoseconds)
    }
    switch decision.outcome {
    case .pass(let grant):
      if head.wantsUpgrade, let refusal = upgradeRefusal(request, grant, plan) {
        return refuse(refusal.about(detail(head)))
      }
      if let limit = grant.route.rule.bodyLimit {
        if case .length(let length) = head.framing, length > limit { return refuse(.tooLarge, head: head) }
        state.exchange.bodyLeft = limit
      }
      if let session = grant.session {
        recordUse(of: grant, request, time.now)
        if session.snapshot.token == nil { recordArrival(session, request, time.now) }
        state.exchange.account = session.snapshot.account.id
      }
      forward(request, grant, host: judged, plan, now: time.now)
    case .redirect(let location): redirect(to: location)
    case .noRoute: refuse(.noRoute, head: head)
    case .refuse(let refusal): refuse(refusal.about(detail(head)))
    case .loops(let found): refuse(found, about: detail(head))
    case .needsLookup(let lookup): look(up: lookup, for: head)
    }
  }

  /// Checks an upgrade, such as to WebSocket, of an allowed request.
  /// - Returns: nil if it may continue.
  private func upgradeRefusal(
    _ request: AccessRequest, _ grant: AccessGrant, _ plan: GenerationPlan
  ) -> RequestRefusal? {
    let head = request.head
    // After a body, it would be unclear which bytes belong to the body and which to the tunnel.
    guard !state.exchange.hasBody else { return RequestRefusal(.badRequest, reason: "an upgrade with a body") }
    guard grant.route.rule.allowsUpgrade else {
      return RequestRefusal(.denied, reason: "this route allows no upgrade")
    }
    // Attack: after an upgrade to another version of HTTP, requests would reach the upstream without authorization, and
    // with identity headers of the client's choice.
    guard !head.asksForAnotherHTTP else {
      return RequestRefusal(.denied, reason: "no upgrade leads to another HTTP")
    }
    // Attack: a page of another site opens a WebSocket, and the browser adds the session cookie (threat-model.md T26).
    // The same applies to a token that the user typed into the browser's password dialog. Programs send no Origin.
    if grant.isByNetwork { return request.isOfForeignPage(plan) ? RequestRefusal(.originRefused) : nil }
    let isAddedByBrowser = grant.isCookie || grant.isBasic && head.count(of: .origin) > 0
    if isAddedByBrowser, grant.session != nil, !request.hasRightOrigin(plan) { return RequestRefusal(.originRefused) }
    return nil
  }

  private func forward(
    _ request: AccessRequest, _ grant: AccessGrant, host: RequestHost, _ plan: GenerationPlan, now: Timestamp
  ) {
    let origin = request.origin
    let rewriting = grant.route.rewriting
    let path = request.head.bytes.readableBytesUInt8Span.extracting(request.path)
    guard let cut = rewriting == nil ? 0 : rewriting?.path.cut(path) else {
      return refuse(
        .badRequest, reason: "the path does not begin with `strip`, or begins with // without it", head: request.head)
    }
    var assertion: [UInt8] = []
    if let session = grant.session {
      do {
        assertion = try session.assertionLine(
          by: loop.shared.assertions, plan, grant.entitlements,
          audience: grant.route.rule.host ?? origin.host.name, now: now)
      } catch {
        return refuse(
          RequestRefusal(.policyError, detail: ["fault": "the assertion cannot be signed: \(error)"]).about(
            detail(request.head)))
      }
    }
    let moment = loop.now
    if grant.route.usesHTTP2 { state.exchange.isCall = request.head.isCall }
    let identity = grant.session?.entitlements(in: plan, at: moment).lines(grant.route.identity) ?? []
    let rewriter = RequestRewriter(
      route: grant.route, host: host, cut: cut, origin: origin, dropsAuthorization: grant.dropsAuthorization,
      hasOurCookies: grant.hasOurCookies,
      identity: grant.authorization.isEmpty ? identity : identity + grant.authorization, assertion: assertion,
      passesUpgrade: request.head.wantsUpgrade, trace: state.exchange.trace)
    let address = origin.address == peer ? peerAddressText() : Array(origin.address.description.utf8)
    let upstreamHead = rewriter.write(request.head, address: address)
    let keepsWorkerScope = plan.keepsWorkerScope(of: grant.route.rule, at: origin.host)
    let service = ServiceExchange(
      grant, head: upstreamHead, client: rewriting == nil ? nil : origin, keepsWorkerScope: keepsWorkerScope)
    if grant.route.hasAttempts { service.chooseAttempts(for: request.head, from: origin.address, at: moment) }
    beginExchange(service, at: moment)
  }

  // MARK: parts of the request

  /// Reads what a refusal needs to know about the request, and the client's address.
  ///
  /// It is also called for a head that could not be read to its end, with the fields that were read.
  func readFacts(of head: RequestHead) {
    state.exchange.isBrowser = head.acceptsHTML
    if state.exchange.isBrowser { state.exchange.languages = head.languages }
    let plan = loop.currentPlan()
    let bytes = head.bytes.readableBytesUInt8Span
    if !plan.corsOrigins.isEmpty, Self.begins(bytes.extracting(head.path), CrossOriginMarks.prefix) {
      let named = head.fields.filter { $0.kind == .origin }.map { head.text($0.value) }
      state.exchange.marks = CrossOriginMarks(named, allowed: plan.corsOrigins)
    }
    guard isTrusted(plan), head.first(.forwardedFor) != nil else { return }
    do throws(ForwardingFault) {
      let named = try head.forwardingFields.address(bytes, trusted: plan.trustedProxies)
      state.exchange.client = named ?? peer
    } catch {
      state.exchange.client = peer
      loop.shared.forwardingFaults.report(LoggedForwardingFault(error, from: peer))
    }
  }

  /// Whether the gateway itself serves the path.
  private func isOwn(_ path: Span<UInt8>, _ head: RequestHead, _ host: RequestHost) -> Bool {
    guard path.count > 1 else { return false }
    switch path[1] {
    case UInt8(ascii: "a"):
      return Self.begins(path, "/auth") && (path.count == 5 || path[5] == UInt8(ascii: "/"))
        || Self.begins(path, "/api/auth/")
    case UInt8(ascii: "."):
      let plan = loop.currentPlan()
      return Self.begins(path, "/.well-known/moongate/") || Self.isAmong(plan.wellKnown, path)
        || Self.isAmong(plan.discovery, path) && isForSignInHost(head, host, plan)
    default: return false
    }
  }

  private static func isAmong(_ paths: [[UInt8]], _ path: Span<UInt8>) -> Bool {
    paths.contains { own in own.count == path.count && own.indices.allSatisfy { own[$0] == path[$0] } }
  }

  /// Whether the request is for the host of the sign-in pages. A service at another host may be an OpenID provider
  /// itself, and its documents are its own.
  private func isForSignInHost(_ head: RequestHead, _ host: RequestHost, _ plan: GenerationPlan) -> Bool {
    guard let (_, judged) = try? origin(of: head, host) else { return false }
    return judged.host.name == plan.signInHost
  }

  private static func begins(_ path: Span<UInt8>, _ text: StaticString) -> Bool {
    path.count >= text.utf8CodeUnitCount && ByteClass.equalCase(path, 0..<text.utf8CodeUnitCount, text)
  }

  private func host(of head: RequestHead, _ bytes: Span<UInt8>) -> RequestHost? {
    // HTTP/1.0 without Host (RFC 9112 section 3.3). An absolute target names a host too.
    guard let range = head.host ?? head.authority else { return loop.currentPlan().home }
    if let last = known.lastHost, last.isSpelled(bytes, range) { return last }
    guard let found = loop.host(bytes, range) else { return nil }
    known.lastHost = found
    return found
  }

  /// Where the request comes from, and the host by which it is judged.
  ///
  /// Attack: behind a trusted proxy that passes the client's `X-Forwarded-Host` on, a client names an open host there
  /// and a closed one in Host. The service must get the host that was judged.
  private func origin(
    of head: RequestHead, _ host: RequestHost
  ) throws(ForwardingFault) -> (RequestOrigin, judged: RequestHost) {
    var origin = RequestOrigin(address: state.exchange.client ?? peer, isSecure: isSecure, host: host.host)
    guard isTrusted(loop.currentPlan()) else { return (origin, host) }
    let bytes = head.bytes.readableBytesUInt8Span
    let forwarding = head.forwardingFields
    if let isSecure = try forwarding.isSecure(bytes) { origin.isSecure = isSecure }
    guard let named = try forwarding.host(bytes) else { return (origin, host) }
    guard let found = originalHost(bytes, named) else { throw ForwardingFault(.host, bytes, named) }
    origin.host = found.host
    return (origin, found)
  }

  /// A host that a proxy names in a header.
  func originalHost(_ bytes: Span<UInt8>, _ range: Range<Int>) -> RequestHost? {
    if let last = known.lastAskedHost, last.isSpelled(bytes, range) { return last }
    guard let found = loop.host(bytes, range) else { return nil }
    known.lastAskedHost = found
    return found
  }

  private func peerAddressText() -> [UInt8] {
    if known.addressText.isEmpty { known.addressText = Array(peer.description.utf8) }
    return known.addressText
  }
}
