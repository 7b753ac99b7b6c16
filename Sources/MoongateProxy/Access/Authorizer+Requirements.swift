import MoongateCore
import MoongateSDK
import NIOCore

/// The session of a request with its groups and claims.
struct Requester {
  let session: CachedSession?
  let entitlements: Result<Entitlements, PolicyFault>
}

/// The requirements of a route.
extension Authorizer {
  /// Checks the requirements of the route.
  /// - Returns: nil if the request may pass.
  func judge(
    _ request: AccessRequest, _ credentials: Credentials, _ requester: Requester, on route: RoutePlan,
    _ time: AccessTime
  ) -> AccessDecision.Outcome? {
    let session = requester.session?.snapshot
    // A program cannot complete a sign-in step, so it gets a refusal instead of a redirect.
    let mayRedirect = request.mayRedirect && session?.token == nil
    var detail: [String: String] = [:]
    let verdict = route.rule.verdict(session, requester.entitlements, at: time.now) {
      function, session, entitlements in
      let client = ClientFacts(
        address: request.origin.address, userAgent: request.head.userAgent, isNewDevice: false,
        place: plan.settings.place(of: request.origin.address))
      let known = requester.session?.facts(entitlements, in: plan, at: time.now)
      let facts = (known ?? session.sessionFacts(at: time.now, entitlements)).facts(
        of: request.facts, by: client, at: time.now, clockIsSuspect: clock.isSuspect)
      return ask(function, of: route, facts, for: (session.account.id, time.monotonic), &detail)
    }
    // The token has an outdated state of the sign-in, so the refusal may be outdated too.
    if verdict.isRefusal, session?.session.domain?.isSuperseded ?? false, mayRedirect {
      return .redirect(handoff(flow: nil, request))
    }
    switch verdict {
    case .pass: return nil
    case .noSession:
      guard mayRedirect else {
        var why = RefusalCause.detail(ofSessionToken: sentToken(credentials, request))
        why["at"] = route.rule.location.description
        return .refuse(refusal(.unauthenticated, of: requester, detail: why))
      }
      if session == nil, let found = redirectLoop(request, credentials, time) { return .loops(found) }
      return .redirect(signIn(on: route.rule, request))
    case .emailNotVerified:
      if mayRedirect { return .redirect(location(plan.verificationPage, request)) }
      return .refuse(refusal(.emailNotVerified, of: requester, detail: Self.required(by: route.rule)))
    case .notInGroup(let groups):
      return .refuse(forbidden(groups, requester, on: route.rule, address: mayRedirect ? address(of: request) : nil))
    case .needs(let provider):
      let flow = route.rule.stepUpFlow
      if mayRedirect {
        return .redirect(location(plan.providers.stepPage(of: provider), flow: flow, with: named(provider), request))
      }
      let required = detail.isEmpty ? Self.required(by: route.rule) : detail
      var refusal = refusal(.stepUpRequired, of: requester, detail: required)
      (refusal.provider, refusal.flow) = (provider, flow)
      return .refuse(refusal)
    case .tooNew(let provider, let until):
      var refusal = refusal(
        .identifierTooNew, of: requester, detail: detail.isEmpty ? Self.required(by: route.rule) : detail)
      (refusal.provider, refusal.retryAfter) = (provider, until - time.now)
      return .refuse(refusal)
    case .denied(let reason): return .refuse(refusal(.policyReason(reason), of: requester, detail: detail))
    case .failed(let fault):
      var refusal = refusal(.policyError, of: requester, detail: detail)
      refusal.fault = fault
      return .refuse(refusal)
    }
  }

  /// The hash of the session token in the request; nil if it has none.
  private func sentToken(_ credentials: Credentials, _ request: AccessRequest) -> TokenHash? {
    credentials.token.map { SessionKey(hashing: request.head.bytes.readableBytesUInt8Span, $0).tokenHash }
  }

  private func refusal(_ code: RefusalCode, of requester: Requester, detail: [String: String]) -> RequestRefusal {
    var refusal = RequestRefusal(code, detail: detail)
    refusal.account = requester.session?.snapshot.account.id
    return refusal
  }

  /// The requester is in none of the required groups.
  /// - Parameter address: the requested URL, if a page can lead back to it.
  private func forbidden(
    _ groups: GroupRequirement, _ requester: Requester, on route: Route, address: String?
  ) -> RequestRefusal {
    var refusal = refusal(.forbidden, of: requester, detail: Self.required(by: route))
    refusal.detail["group"] = "{ \(groups.anyOf.map(\.rawValue).joined(separator: ", ")) }"
    if case .success(let held) = requester.entitlements {
      refusal.detail["fact.session.groups"] = "{ \(held.groups.map(\.rawValue).joined(separator: ", ")) }"
    }
    refusal.groups = groups
    refusal.visitor = requester.session.map { RefusedVisitor(account: $0.snapshot.account, address: address) }
    return refusal
  }

  private static func required(by route: Route) -> [String: String] {
    ["rule": "require", "at": route.location.description]
  }

  /// Runs `decide`, and records its inputs unless it simply allows the request.
  private func ask(
    _ function: FunctionName, of route: RoutePlan, _ facts: Facts, for request: (requester: String, at: NIODeadline),
    _ detail: inout [String: String]
  ) -> Verdict {
    let (requester, now) = request
    guard !route.pauses.isPaused(requester, at: now) else {
      detail["rule"] = function.path
      return .fault(
        PolicyFault(
          kind: .time, location: route.rule.location,
          message: "not run for this account for ten seconds: its requests exceeded the budget five times in a row"))
    }
    let verdict: Verdict
    do {
      let evaluator = try plan.evaluatorOfLoop()
      verdict = evaluator.verdict(of: function, given: facts)
      if verdict == .allow {
        route.pauses.returned(for: requester)
        return .allow
      }
      detail.merge(evaluator.evidence(of: function, given: facts)?.traceLines(keys) ?? [:]) { $1 }
    } catch {
      verdict = .fault(error)
    }
    detail["rule"] = function.path
    detail["verdict"] = verdict.text
    if case .fault(let fault) = verdict, fault.kind != .error, fault.kind != .result {
      route.pauses.stopped(for: requester, at: now)
    } else {
      route.pauses.returned(for: requester)
    }
    return verdict
  }
}

/// The pages that requests are redirected to.
extension Authorizer {
  /// Where a browser signs in for the route.
  fileprivate func signIn(on route: Route, _ request: AccessRequest) -> String {
    let flow = route.flow == FlowPurpose.signIn.usualName || route.requirement != nil ? nil : route.flow
    if plan.settings.furtherDomain(of: request.origin.host.name) != nil { return handoff(flow: flow, request) }
    return location(PagePath.signIn, flow: flow, request)
  }

  /// The page where a browser gets a session token for another root domain: on the same host, with the scheme and port
  /// of public_url.
  fileprivate func handoff(flow: String?, _ request: AccessRequest) -> String {
    let origin = plan.settings.siblingOrigin(request.origin.host.name).description
    return "\(origin)\(GenerationPlan.handoff)?" + (flow.map { "flow=\($0)&" } ?? "") + "return_to="
      + PercentEncoding.encode(request.target)
  }

  /// The provider parameter for `/auth/step`; nil if the provider has its own page.
  fileprivate func named(_ provider: ProviderName) -> ProviderName? {
    plan.providers.stepPage(of: provider) == PagePath.step ? provider : nil
  }

  /// The absolute URL of the request.
  fileprivate func address(of request: AccessRequest) -> String { request.origin.origin + request.target }

  /// The URL of a gateway page that leads back to the request: relative on public_url's own host, otherwise absolute in
  /// both directions.
  fileprivate func location(
    _ page: String, flow: String? = nil, with provider: ProviderName? = nil, _ request: AccessRequest
  ) -> String {
    let isHome = !request.isForwarded && request.origin.host.name == plan.settings.publicURL.host
    let back = isHome ? request.target : address(of: request)
    let about = (flow.map { "flow=\($0)&" } ?? "") + (provider.map { "with=\($0)&" } ?? "")
    return (isHome ? "" : plan.issuer) + page + "?" + about + "return_to=" + PercentEncoding.encode(back)
  }
}
