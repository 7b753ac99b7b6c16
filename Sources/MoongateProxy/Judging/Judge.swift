import MoongateCore
import MoongateSDK
import NIOCore

/// What is to become of a request.
enum Judgement {
  case pass
  /// To another page: the value of Location.
  case redirect(String)
  case refuse(RefusalCode, detail: [String: String] = [:], provider: ProviderName? = nil, flow: String? = nil)
}

/// The facts of one request that a judgement rests on; texts are made only when they are asked for.
struct RequestFactsSource {
  let method: () -> String
  let path: () -> String
  let query: () -> String?
  let isGET: Bool
  let isBrowser: Bool
  let origin: RequestOrigin
  let userAgent: () -> String?
}

/// Judges a request whose route and session are known (http.md, "Which route").
struct Judge {
  let plan: GenerationPlan
  let now: Timestamp
  let monotonic: NIODeadline
  let clockIsSuspect: Bool

  func judge(_ route: RoutePlan, session: CachedSession?, request: RequestFactsSource) -> Judgement {
    if !route.route.isOpen {
      guard let session else { return unauthenticated(route.route, request) }
      if let requirement = route.route.requirement, let unmet = judge(requirement, session, route.route, request) { return unmet }
    }
    guard let function = route.route.decide, let session else { return .pass }
    return decide(function, route, session, request)
  }

  private func unauthenticated(_ route: Route, _ request: RequestFactsSource) -> Judgement {
    guard request.isGET, request.isBrowser else { return .refuse(.unauthenticated) }
    let flow = route.flow == "login" || route.requirement != nil ? nil : route.flow
    return .redirect(location("/auth/login", flow: flow, request))
  }

  private func judge(_ requirement: Requirement, _ session: CachedSession, _ route: Route, _ request: RequestFactsSource) -> Judgement? {
    switch requirement {
    case .emailVerified:
      if session.snapshot.account.identifier(.email)?.verifiedAt != nil { return nil }
      if request.isGET, request.isBrowser { return .redirect(location("/auth/email", flow: nil, request)) }
      return .refuse(.emailNotVerified)
    case .passed(let provider, let within):
      if let at = session.snapshot.session.passed.last(where: { $0.provider == provider })?.at {
        // Half-open, as all times: passed at t and good for 5 minutes is good until just before t + 5 min.
        guard let within, now >= at + within else { return nil }
      }
      return stepUp(provider, route, request)
    }
  }

  private func stepUp(_ provider: ProviderName, _ route: Route, _ request: RequestFactsSource) -> Judgement {
    let flow = route.flow == "login" ? "step_up" : route.flow
    if request.isGET, request.isBrowser { return .redirect(location(Self.page(of: provider), flow: flow, request)) }
    return .refuse(.stepUpRequired, provider: provider, flow: flow)
  }

  private func decide(_ function: FunctionName, _ route: RoutePlan, _ session: CachedSession, _ request: RequestFactsSource) -> Judgement {
    guard monotonic >= route.pausedUntil else {
      return .refuse(.policyError, detail: ["rule": function.path, "reason": "not run: it was killed again and again"])
    }
    let verdict: Verdict
    do {
      verdict = try plan.evaluatorOfLoop().verdict(of: function, given: facts(session, request))
    } catch {
      verdict = .fault(error)
    }
    switch verdict {
    case .allow:
      route.kills = 0
      return .pass
    case .deny(let reason):
      route.kills = 0
      return .refuse(.policyReason(reason), detail: ["rule": function.path])
    case .requireAlso(let provider):
      route.kills = 0
      // It holds until the session has passed that provider.
      if session.snapshot.session.passed.contains(where: { $0.provider == provider }) { return .pass }
      return stepUp(provider, route.route, request)
    case .fault(let fault):
      if fault.kind != .error, fault.kind != .result {
        route.kills += 1
        if route.kills >= 5 { route.pausedUntil = monotonic + .seconds(10) }
      }
      return .refuse(.policyError, detail: ["rule": function.path, "fault": fault.description])
    }
  }

  private func facts(_ session: CachedSession, _ request: RequestFactsSource) -> Facts {
    let snapshot = session.snapshot
    var passed: [ProviderName: Timestamp] = [:]
    for step in snapshot.session.passed { passed[step.provider] = max(step.at, passed[step.provider] ?? step.at) }
    return Facts(
      now: now, account: snapshot.account.facts(at: now),
      client: ClientFacts(address: request.origin.address, userAgent: request.userAgent(), isNewDevice: false), clockIsSuspect: clockIsSuspect,
      request: RequestFacts(method: request.method(), host: request.origin.host.name, path: request.path(), query: request.query() ?? ""),
      session: SessionFacts(
        account: snapshot.account.id, passed: passed, age: now - snapshot.session.createdAt, aal: snapshot.session.assuranceLevel))
  }

  /// The page where a person passes the provider.
  static func page(of provider: ProviderName) -> String {
    switch provider.rawValue {
    case "pin": "/auth/pin"
    case "email_code": "/auth/email"
    case "phone_otp": "/auth/verify"
    default: "/auth/login"
    }
  }

  /// A page of ours, from which the person comes back: relative on public_url's own host, else absolute both ways.
  private func location(_ page: String, flow: String?, _ request: RequestFactsSource) -> String {
    let isHome = request.origin.host.name == plan.settings.publicURL.host
    var target = request.path()
    if let query = request.query() { target += "?" + query }
    let back = isHome ? target : request.origin.origin + target
    return (isHome ? "" : plan.issuer) + page + "?" + (flow.map { "flow=\($0)&" } ?? "") + "return_to=" + PercentEncoding.encode(back)
  }
}

/// Percent-encoding of text that stands in a query (RFC 3986 section 2.1).
enum PercentEncoding {
  private static let digits = Array("0123456789ABCDEF".utf8)

  /// Everything but unreserved characters is encoded.
  static func encode(_ text: String) -> String {
    var out: [UInt8] = []
    out.reserveCapacity(text.utf8.count * 2)
    for byte in text.utf8 {
      if ByteClass.isDigit(byte) || (byte | 0x20) &- 0x61 < 26 || byte == 0x2d || byte == 0x2e || byte == 0x5f || byte == 0x7e {
        out.append(byte)
      } else {
        out += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: out, as: UTF8.self)
  }
}
