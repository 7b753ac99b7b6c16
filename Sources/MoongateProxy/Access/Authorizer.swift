import MoongateCore
import MoongateSDK
import NIOCore

/// Decides whether a request may pass. The proxy and forward-auth both use it, so that they cannot decide differently.
///
/// One object serves one event loop and one generation. It sends nothing and uses no sockets: it reads the request,
/// the caches of the event loop and the policies. It changes only cache counters, the counters of `RouteRates`, the
/// arrivals in `RedirectLoopDetector`, and the pause of a `decide` that exceeds its budget for a requester.
///
/// The checks, in order:
///
/// 1. A route matches host, path and method, whichever way the service reads the path.
/// 2. The request is within the rate of the route. A rate per account or token is checked after the lookup (5).
/// 3. The request does not install a service worker over the sign-in pages.
/// 4. The credentials are unambiguous. The session cookie of a frame counts only on a route with `frames`, and for
///    requests of the service's own pages.
/// 5. The access token or session is valid on this route and host. A credential that the caches do not know gives
///    `needsLookup`.
/// 6. The route admits the session: its groups, `require`, then `decide`. A route that is open to the client's network
///    admits a session that it would refuse as an anonymous request.
/// 7. No page of another site uses a token that the browser remembers, or the client's network.
/// 8. A redirect to sign-in would not continue a redirect loop.
/// 9. The token that the service expects (`bearer`) is known. Otherwise the result is `needsLookup` once more.
final class Authorizer {
  let plan: GenerationPlan
  let sessions: SessionCache
  let tokens: TokenCache
  let redirectLoops: RedirectLoopDetector
  let clock: any GatewayClock
  /// Hashes identifiers before they are recorded.
  let keys: KeyRing

  private static let root: [UInt8] = [UInt8(ascii: "/")]

  init(
    _ plan: GenerationPlan, sessions: SessionCache, tokens: TokenCache, redirectLoops: RedirectLoopDetector,
    dependencies: (clock: any GatewayClock, keys: KeyRing)
  ) {
    self.plan = plan
    self.sessions = sessions
    self.tokens = tokens
    self.redirectLoops = redirectLoops
    (clock, keys) = dependencies
  }

  /// Decides about a request.
  /// - Parameter found: what the store answered if the previous decision was `needsLookup`.
  func authorize(
    _ request: AccessRequest, at time: AccessTime, found: SessionCache.LookupResult? = nil
  ) -> AccessDecision {
    let bytes = request.head.bytes.readableBytesUInt8Span
    switch match(request, request.path.isEmpty ? Self.root.span : bytes.extracting(request.path), bytes) {
    case .none: return AccessDecision(.noRoute, shadow: .anonymous)
    case .ambiguous(let reason): return AccessDecision(.refuse(RequestRefusal(.badRequest, reason: reason)))
    case .handoff:
      let reason = "the proxy asks about /auth/handoff: it must send /auth/ of this host to the gateway"
      return AccessDecision(.refuse(RequestRefusal(.denied, reason: reason)))
    case .route(let route):
      // A request whose credential has been looked up was counted before.
      if found == nil, let refusal = rateRefusal(ofAny: request, on: route, time) {
        return AccessDecision(.refuse(refusal), route: route)
      }
      if let refusal = workerRefusal(of: request, on: route) {
        return AccessDecision(.refuse(refusal), route: route)
      }
      var credentials = Credentials(
        request.head, bytes, cookieName: plan.cookieName, framedName: plan.framedCookieName)
      if credentials.hasFramedCookie, let refusal = useFramedCookie(&credentials, of: request, on: route) {
        return AccessDecision(.refuse(refusal), route: route)
      }
      if credentials.isContradictory {
        return AccessDecision(.refuse(RequestRefusal(.badRequest, reason: "more than one token")), route: route)
      }
      let finding = find(credentials, of: request, on: route, time, found)
      if let refusal = rateRefusal(of: finding, request, on: route, time) {
        return AccessDecision(.refuse(refusal), route: route)
      }
      return decide(request, credentials, finding, on: route, time)
    }
  }

  /// Attack: a service, or a user who can store a file at one, makes the victim's browser install a service worker at
  /// the root of the host that also has the sign-in pages. It then reads what the victim types there, and answers in
  /// place of the gateway. Scripts in other folders control only their folder, because services cannot send
  /// `Service-Worker-Allowed` there (`AnswerRewriter`).
  /// - Returns: nil unless the request asks for the script of such a worker.
  private func workerRefusal(of request: AccessRequest, on route: RoutePlan) -> RequestRefusal? {
    guard request.head.isForServiceWorker, request.isAtRoot,
      plan.keepsWorkerScope(of: route.rule, at: request.origin.host)
    else { return nil }
    return RequestRefusal(
      .denied,
      reason: "this script would be a service worker over the sign-in pages, and the route has no `service_worker`",
      sentence: "A service worker of this script would control the sign-in pages.")
  }

  /// Why a request of a page of another site that does not only read is refused: its browser would add a right to it
  /// that is not the page's.
  ///
  /// Attack: a user has typed an access token into the browser's dialog for Basic authentication. The browser then adds
  /// it to the forms of other sites, because `SameSite` does not apply to it. Programs send no Origin.
  private func otherSiteRefusal(
    of request: AccessRequest, _ session: CachedSession?, isBasic: Bool, isByNetwork: Bool
  ) -> RequestRefusal? {
    guard isByNetwork || isBasic && session != nil, !request.isSafe || request.mayOpenTunnel else { return nil }
    if isByNetwork {
      guard request.isOfForeignPage(plan) else { return nil }
      return RequestRefusal(
        .originRefused, reason: "a page of another site, and only the client's network admits the request")
    }
    guard request.head.count(of: .origin) > 0, !request.hasRightOrigin(plan) else { return nil }
    return RequestRefusal(
      .originRefused, reason: "a page of another site uses a token that the browser remembers",
      account: session?.snapshot.account.id)
  }

  private enum Match {
    case none, handoff
    /// The path may lead to another route, for the reason.
    case ambiguous(String)
    case route(RoutePlan)
  }

  private func match(_ request: AccessRequest, _ path: Span<UInt8>, _ bytes: Span<UInt8>) -> Match {
    let found = plan.matcher.find(
      request.normalPath, raw: path, host: request.origin.host.name, method: bytes.extracting(request.method))
    switch found {
    case .none: return .none
    case .refused(let reason): return .ambiguous(reason)
    case .route(let index):
      return plan.hasFurtherDomains && isHandoff(request, path) ? .handoff : .route(plan.routes[index])
    }
  }

  /// A redirect to the handoff page would itself be asked about, in an endless loop. Only forward-auth can ask: the
  /// proxy serves the page before it looks for a route.
  private func isHandoff(_ request: AccessRequest, _ path: Span<UInt8>) -> Bool {
    if let decoded = request.normalPath.decoded {
      return ByteClass.equalCase(decoded.span, 0..<decoded.count, GenerationPlan.handoff)
    }
    return ByteClass.equalCase(path, 0..<path.count, GenerationPlan.handoff)
  }

  private func decide(
    _ request: AccessRequest, _ credentials: Credentials, _ finding: CredentialFinding, on route: RoutePlan,
    _ time: AccessTime
  ) -> AccessDecision {
    var session: CachedSession?
    var tokenAddress: ClientAddress?
    var storeIsSilent = false
    var mayHoldSession = false
    let isOpen = request.needsNoSession(on: route, plan)
    switch finding {
    case .anonymous: break
    case .session(let found):
      mayHoldSession = true
      // Attack: a token of one root domain, sent to a host of another.
      if plan.accepts(found.snapshot.session.domain, at: request.origin.host) { session = found }
    case .token(let found, let address): (session, tokenAddress) = (found, address)
    case .refused(let refusal):
      return AccessDecision(.refuse(refusal), route: route)
    case .needsLookup(let lookup): return AccessDecision(.needsLookup(lookup), route: route)
    case .storeIsSilent:
      guard isOpen else {
        return AccessDecision(
          .refuse(RequestRefusal(.storeUnavailable, reason: "the store does not answer")), route: route)
      }
      storeIsSilent = true
      mayHoldSession = true
    }
    // A token that is not checked here may be valid in the candidate's routes, so the requester is unknown.
    let isKnown = !storeIsSilent && (route.rule.tokens != nil || !(credentials.program?.isToken ?? false))
    let shadow: AccessDecision.ShadowView =
      !isKnown ? .hidden : session.map { .session($0) } ?? .anonymous
    var (entitlements, ignored) = entitlements(of: &session, isOpen: isOpen, time)
    let isAdmitted = route.admits(isSignedIn: session != nil, entitlements) || isOpen && session == nil
    var refusal: AccessDecision.Outcome?
    if !isAdmitted {
      let requester = Requester(session: session, entitlements: entitlements)
      refusal = judge(request, credentials, requester, on: route, time)
      if isOpen, let refused = refusal, session?.snapshot.token == nil {
        ignored = Self.ignored(by: refused)
        (session, refusal, entitlements) = (nil, nil, .success(.none))
      }
    }
    let isByNetwork = isOpen && session == nil && !route.rule.isOpen
    if refusal == nil {
      refusal = otherSiteRefusal(of: request, session, isBasic: credentials.isBasic, isByNetwork: isByNetwork)
        .map { .refuse($0) }
    }
    let outcome =
      refusal
      ?? pass(
        AccessGrant(
          route: route, session: session, entitlements: (try? entitlements.get()) ?? .none,
          isCookie: credentials.isCookie, isByNetwork: isByNetwork, isBasic: credentials.isBasic,
          hasOurCookies: credentials.hasOurCookies,
          dropsAuthorization: Self.dropsAuthorization(credentials, mayHoldSession: mayHoldSession),
          tokenAddress: tokenAddress), request, time)
    return AccessDecision(outcome, route: route, shadow: shadow, requirementsRan: !isAdmitted, ignored: ignored)
  }

  /// The groups and claims of a session.
  /// - Parameters:
  ///   - session: set to nil if they cannot be computed and the route is open.
  ///   - isOpen: whether the route needs no session for the request.
  private func entitlements(
    of session: inout CachedSession?, isOpen: Bool, _ time: AccessTime
  ) -> (Result<Entitlements, PolicyFault>, ignored: IgnoredFault?) {
    guard let found = session?.entitlements(in: plan, at: time.monotonic) else { return (.success(.none), nil) }
    // An access token is refused instead: a program must not act as nobody without noticing.
    guard case .failure(let fault) = found.outcome, isOpen, session?.snapshot.token == nil else {
      return (found.outcome, nil)
    }
    // Attack: an open page gets a user's name without the group that bars the user. It gets an anonymous request
    // instead, as when the store is unavailable.
    session = nil
    return (.success(.none), IgnoredFault(fault, rule: "accounts"))
  }

  /// The policy error in a refusal that does not apply, because the request continues as anonymous.
  ///
  /// Attack: a user who is barred from the route comes from a network that it is open to. The service must not receive
  /// the user's identity, as if the route's rules admitted the user.
  private static func ignored(by refused: AccessDecision.Outcome) -> IgnoredFault? {
    guard case .refuse(let refusal) = refused, let fault = refusal.fault else { return nil }
    return IgnoredFault(fault, rule: refusal.detail["rule"] ?? "routes")
  }

  /// Whether Authorization must not be forwarded: it contains a session token, or may contain one while the store is
  /// unavailable, or it contains an access token, on any route.
  ///
  /// Attack: a token is sent to the wrong address of the gateway, and a service that must not have it reads it. This
  /// includes the token of a session that is ignored here: one of another root domain, or one whose groups cannot be
  /// computed on an open route.
  private static func dropsAuthorization(_ credentials: Credentials, mayHoldSession: Bool) -> Bool {
    credentials.isBearerUnchecked || credentials.isBearer && mayHoldSession || credentials.program?.isToken ?? false
  }
}
