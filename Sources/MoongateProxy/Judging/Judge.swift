import MoongateCore
import MoongateSDK
import NIOCore

/// The result of judging a request.
enum Judgement {
  case pass
  /// Redirect to another page, with the value of Location.
  case redirect(String)
  case refuse(RefusalCode, detail: [String: String] = [:], provider: ProviderName? = nil, flow: String? = nil)
  /// The requester is in none of the required groups.
  /// - address: the requested URL, if a page can lead back to it.
  case forbid(GroupRequirement, address: String?, detail: [String: String])
  /// `decide` failed.
  case fail(PolicyFault, detail: [String: String])
}

/// The facts of one request for its judgement. Strings are created only on demand.
struct RequestFactsSource {
  let method: () -> String
  let path: () -> String
  let query: () -> String?
  /// Whether the client can be redirected to a page: a GET of a browser, or any forward-auth request of a browser.
  var mayRedirect: Bool
  /// Whether this is a forward-auth request, which needs absolute URLs in both directions.
  let isForwarded: Bool
  let origin: RequestOrigin
  let userAgent: () -> String?
}

/// Judges a request after its route and session are known.
struct Judge {
  let plan: GenerationPlan
  let now: Timestamp
  let monotonic: NIODeadline
  let clockIsSuspect: Bool
  /// Hashes identifiers before they are recorded.
  let keys: KeyRing

  /// - Parameter entitlements: the entitlements of the session.
  func judge(
    _ route: RoutePlan, session: CachedSession?, _ entitlements: Result<Entitlements, PolicyFault>,
    request: RequestFactsSource
  ) -> Judgement {
    var detail: [String: String] = [:]
    var request = request
    // A program cannot complete a sign-in step, so it gets a refusal instead of a redirect.
    if session?.snapshot.token != nil { request.mayRedirect = false }
    let verdict = route.route.verdict(session?.snapshot, entitlements, at: now) { function, session, entitlements in
      ask(function, route, session, entitlements, request, &detail)
    }
    // The token has an outdated state of the sign-in, so the refusal may be outdated too.
    if verdict.isRefusal, session?.snapshot.session.domain?.isSuperseded ?? false, request.mayRedirect {
      return .redirect(handoff(flow: nil, request))
    }
    switch verdict {
    case .pass: return .pass
    case .noSession: return unauthenticated(route.route, request)
    case .emailNotVerified:
      if request.mayRedirect { return .redirect(location(plan.verificationPage, flow: nil, request)) }
      return .refuse(.emailNotVerified, detail: required(by: route.route))
    case .notInGroup(let groups):
      var notes = required(by: route.route)
      notes["group"] = "{ \(groups.anyOf.map(\.rawValue).joined(separator: ", ")) }"
      if case .success(let held) = entitlements {
        notes["fact.session.groups"] = "{ \(held.groups.map(\.rawValue).joined(separator: ", ")) }"
      }
      return .forbid(
        groups, address: request.mayRedirect ? request.origin.origin + target(request) : nil, detail: notes)
    case .needs(let provider):
      let flow = route.route.stepUpFlow
      if request.mayRedirect {
        return .redirect(location(plan.providers.stepPage(of: provider), flow: flow, with: named(provider), request))
      }
      return .refuse(
        .stepUpRequired, detail: detail.isEmpty ? required(by: route.route) : detail, provider: provider, flow: flow)
    case .denied(let reason): return .refuse(.policyReason(reason), detail: detail)
    case .failed(let fault): return .fail(fault, detail: detail)
    }
  }

  private func unauthenticated(_ route: Route, _ request: RequestFactsSource) -> Judgement {
    guard request.mayRedirect else { return .refuse(.unauthenticated, detail: ["at": route.location.description]) }
    let flow = route.flow == "login" || route.requirement != nil ? nil : route.flow
    if plan.settings.furtherDomain(of: request.origin.host.name) != nil {
      return .redirect(handoff(flow: flow, request))
    }
    return .redirect(location("/auth/login", flow: flow, request))
  }

  /// The page where a browser gets a session token for another root domain: on the same host, with the scheme and port
  /// of public_url.
  private func handoff(flow: String?, _ request: RequestFactsSource) -> String {
    let target = request.path() + (request.query().map { "?" + $0 } ?? "")
    let origin = plan.settings.siblingOrigin(request.origin.host.name).description
    return "\(origin)\(GenerationPlan.handoff)?" + (flow.map { "flow=\($0)&" } ?? "") + "return_to="
      + PercentEncoding.encode(target)
  }

  private func required(by route: Route) -> [String: String] { ["rule": "require", "at": route.location.description] }

  /// Runs `decide`, and records its inputs unless it simply allows the request.
  private func ask(
    _ function: FunctionName, _ route: RoutePlan, _ session: SessionSnapshot, _ entitlements: Entitlements,
    _ request: RequestFactsSource,
    _ detail: inout [String: String]
  ) -> Verdict {
    detail["rule"] = function.path
    guard monotonic >= route.pausedUntil else {
      return .fault(
        PolicyFault(kind: .time, location: route.route.location, message: "not run: it was killed again and again"))
    }
    let client = ClientFacts(address: request.origin.address, userAgent: request.userAgent(), isNewDevice: false)
    let facts = session.facts(
      of: RequestFacts(
        method: request.method(), host: request.origin.host.name, path: request.path(), query: request.query() ?? ""),
      by: client,
      entitlements, at: now, clockIsSuspect: clockIsSuspect)
    let verdict: Verdict
    do {
      let evaluator = try plan.evaluatorOfLoop()
      verdict = evaluator.verdict(of: function, given: facts)
      if verdict != .allow { detail.merge(evaluator.evidence(of: function, given: facts)?.notes(keys) ?? [:]) { $1 } }
    } catch {
      verdict = .fault(error)
    }
    detail["verdict"] = verdict.text
    if case .fault(let fault) = verdict, fault.kind != .error, fault.kind != .result {
      route.kills += 1
      if route.kills >= 5 { route.pausedUntil = monotonic + .seconds(10) }
    } else {
      route.kills = 0
    }
    return verdict
  }

  /// The provider parameter for `/auth/step`; nil if the provider has its own page.
  private func named(_ provider: ProviderName) -> ProviderName? {
    plan.providers.stepPage(of: provider) == ProviderRegistry.allSteps ? provider : nil
  }

  /// Path and query of the request.
  private func target(_ request: RequestFactsSource) -> String {
    request.path() + (request.query().map { "?" + $0 } ?? "")
  }

  /// The URL of a gateway page that leads back to the request: relative on public_url's own host, otherwise absolute in
  /// both directions.
  private func location(
    _ page: String, flow: String?, with provider: ProviderName? = nil, _ request: RequestFactsSource
  ) -> String {
    let isHome = !request.isForwarded && request.origin.host.name == plan.settings.publicURL.host
    let back = isHome ? target(request) : request.origin.origin + target(request)
    let about = (flow.map { "flow=\($0)&" } ?? "") + (provider.map { "with=\($0)&" } ?? "")
    return (isHome ? "" : plan.issuer) + page + "?" + about + "return_to=" + PercentEncoding.encode(back)
  }
}
