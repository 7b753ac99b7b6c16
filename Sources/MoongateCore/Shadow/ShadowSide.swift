import MoongateSDK

/// A generation's answer to one question, as a shadow compares it.
struct ShadowAnswer: Sendable, Hashable {
  /// `ok`, `pass`, the code of a refusal, or the result of a condition.
  let name: String
  /// The location of the rule that decided; nil if no rule refused.
  let rule: String?

  init(_ name: String, at location: SourceLocation? = nil) {
    self.name = name
    rule = location?.description
  }

  static let ok = ShadowAnswer("ok")
}

/// One of the two generations that a shadow compares, with its own counters. It never reads or writes the gateway's
/// store.
///
/// Must be used by one thread at a time.
final class ShadowSide {
  /// The maximum number of charged attempts before the counters are reset to save memory.
  static let maxCharges = 10_000
  private static let pruneEvery = 1_000

  let generation: any PolicyGeneration
  private let evaluator: any PolicyEvaluator
  private let matcher: RouteMatcher
  private let keys: KeyRing
  private let random: any RandomSource
  private let makeStore: @Sendable () throws -> any Store
  private var store: any Store
  private var charges = 0
  /// How often the counters were reset.
  private(set) var restarts = 0

  /// - Throws: if its functions cannot be loaded or its counters cannot be created.
  init(
    _ generation: any PolicyGeneration, keys: KeyRing, random: any RandomSource,
    makeStore: @escaping @Sendable () throws -> any Store
  ) throws {
    self.generation = generation
    self.keys = keys
    self.random = random
    self.makeStore = makeStore
    evaluator = try generation.makeEvaluator()
    matcher = RouteMatcher(generation.routes)
    store = try makeStore()
  }

  /// Answers a question and updates the counters.
  /// - Throws: if its own counters fail.
  func answer(_ question: ObservedQuestion.Question, at now: Timestamp) async throws -> ShadowAnswer {
    switch question {
    case .step(let step):
      let answer: ShadowAnswer
      do { answer = try await self.answer(step, at: now) } catch let fault as PolicyFault {
        answer = Self.failed(fault)
      }
      try await bound(at: now)
      return answer
    case .condition(let function, let facts): return answer(function, located(facts))
    case .admission(let facts): return admission(located(facts))
    case .flow(let name, let isInvited): return flow(name, isInvited: isInvited)
    case .registration(let new):
      return registered(generation.accounts.registration.refusal(ofNew: new.verified, isInvited: new.isInvited))
    case .request(let request): return answer(request, at: now)
    }
  }

  /// The facts with the client's place by the databases of this generation.
  private func located(_ facts: Facts) -> Facts {
    var facts = facts
    facts.client.place = generation.gateway.place(of: facts.client.address)
    return facts
  }

  private static func failed(_ fault: PolicyFault) -> ShadowAnswer { ShadowAnswer("policy_error", at: fault.location) }

  // MARK: Steps

  private func answer(_ observed: ObservedStep, at now: Timestamp) async throws -> ShadowAnswer {
    var step = observed
    step.subject.place = generation.gateway.place(of: step.subject.address)
    step.facts = located(step.facts)
    guard let policy = generation.policies[step.subject.provider] else {
      return ShadowAnswer("not_configured", at: SourceLocation(file: "gateway.lua", line: 0))
    }
    let number = { [evaluator] (varying: Varying<Int>) throws(PolicyFault) in
      try evaluator.value(of: varying, given: step.facts)
    }
    let duration = { [evaluator] (varying: Varying<Duration>) throws(PolicyFault) in
      try evaluator.value(of: varying, given: step.facts)
    }
    if step.action == .register {
      return try await charge(
        try policy.resolve(.register, for: step.subject, keys: keys, number: number, duration: duration), nil, step,
        policy, now)
    }
    let limits = try policy.stepLimits(
      for: step.subject, expiredAt: step.expiredAt, keys: keys, number: number, duration: duration)
    if step.action == .begin { return try await charge(limits.begin, nil, step, policy, now) }
    if let refused = try await verdict(step, policy, limits, at: now) { return refused }
    if step.action == .send {
      let personal = limits.verify.filter(\.key.isPersonal)
      for (limit, state) in zip(personal, try await store.counters(personal, at: now)) {
        if state.isLocked(at: now) { return refusal(RefusalCode.tooManyAttempts.name, limit, policy) }
        if state.isDisabled, policy.unknownAccount != .conceal {
          return refusal(RefusalCode.disabled.name, limit, policy)
        }
      }
      return try await charge(limits.send, limits.timer, step, policy, now)
    }
    return try await charge(
      step.isSetting ? limits.verify.filter { !$0.key.isPersonal } : limits.verify, nil, step, policy, now)
  }

  /// The answer of the policy's `send` or `verify` function; nil if it allows the step.
  private func verdict(
    _ step: ObservedStep, _ policy: ProviderPolicy, _ limits: StepLimits, at now: Timestamp
  ) async throws -> ShadowAnswer? {
    guard let function = step.action == .send ? policy.send : policy.verify else { return nil }
    var facts = step.facts
    facts.action = step.action
    facts.limits = zip(limits.all, try await store.counters(limits.all, at: now)).map { limit, state in
      LimitFacts(limit, state, at: now)
    }
    let verdict = evaluator.verdict(of: function, given: facts)
    let location = { [evaluator] in evaluator.evidence(of: function, given: facts)?.location }
    switch verdict {
    case .allow: return nil
    case .deny(let reason): return ShadowAnswer(reason, at: location())
    case .fault(let fault): return ShadowAnswer("policy_error", at: fault.location ?? location())
    case .requireAlso(let provider):
      return facts.flow?.passed.contains(provider) ?? false
        ? nil : ShadowAnswer("require_also \(provider)", at: location())
    }
  }

  /// Charges the step and settles it with its actual outcome.
  private func charge(
    _ limits: [ResolvedLimit], _ timer: ResendTimer?, _ step: ObservedStep, _ policy: ProviderPolicy, _ now: Timestamp
  ) async throws -> ShadowAnswer {
    guard !limits.isEmpty || timer != nil else { return .ok }
    let id = ReservationID(from: random)
    let countsAtOnce = !step.action.hasOutcome
    charges += 1
    switch try await store.reserve(
      ReservationRequest(id: id, now: now, limits: limits, timer: timer, countsAtOnce: countsAtOnce))
    {
    case .filledByPending, .barred, .flowChanged: return .ok
    case .reserved:
      if !countsAtOnce {
        let settlement = Settlement(
          reservation: id, outcome: step.outcome ?? .refund, limits: limits, timer: timer, now: now)
        _ = try await store.apply([.settle(settlement)], at: now)
      }
      return .ok
    case .refused(let refused):
      guard let limit = refused.limit else {
        return ShadowAnswer(RefusalCode.resendTooSoon.name, at: policy.locations["timers.resend_after"])
      }
      guard refused.reason == .disabled else { return refusal(limit.fullCode(of: step.action).name, limit, policy) }
      // If the policy conceals, a limit that disabled a credential answers as if it did not exist.
      return policy.unknownAccount == .conceal && limit.key.isPersonal
        ? .ok : refusal(RefusalCode.disabled.name, limit, policy)
    }
  }

  private func refusal(_ code: String, _ limit: ResolvedLimit, _ policy: ProviderPolicy) -> ShadowAnswer {
    ShadowAnswer(code, at: policy.limits.first { $0.name == limit.name }?.location)
  }

  /// Keeps the counters small.
  private func bound(at now: Timestamp) async throws {
    if charges >= Self.maxCharges {
      store = try makeStore()
      charges = 0
      restarts += 1
    } else if charges > 0, charges % Self.pruneEvery == 0 {
      _ = try await store.prune(at: now)
    }
  }

  // MARK: Flows

  private func answer(_ function: FunctionName, _ facts: Facts) -> ShadowAnswer {
    let steps = facts.flow.flatMap { generation.flows[$0.name]?.steps } ?? []
    let accounts = generation.accounts
    let isKnown =
      steps.contains { $0.when == function } || accounts.signIn.contains { $0.when == function }
      || accounts.offers.contains { $0.when == function }
    guard isKnown else { return ShadowAnswer("no condition") }
    do throws(PolicyFault) {
      let holds = try evaluator.condition(of: function, given: facts)
      return ShadowAnswer(
        holds ? "holds" : "does not hold", at: evaluator.evidence(of: function, given: facts)?.location)
    } catch {
      return Self.failed(error)
    }
  }

  /// Whether accounts.lua lets a flow open a session, as far as it can be known.
  private func admission(_ facts: Facts) -> ShadowAnswer {
    guard let function = generation.accounts.admit, let verdict = evaluator.admission(of: function, given: facts),
      verdict != .allow
    else { return .ok }
    let location = evaluator.evidence(of: function, given: facts)?.location
    guard case .deny(let reason) = verdict else { return ShadowAnswer("policy_error", at: location) }
    return ShadowAnswer(reason, at: location)
  }

  /// A description of the flow as users see it.
  private func flow(_ name: String, isInvited: Bool) -> ShadowAnswer {
    guard let flow = generation.flows[name] else { return ShadowAnswer("no such flow") }
    if let code = generation.accounts.registration.refusal(of: flow.account, isInvited: isInvited) {
      return registered(code)
    }
    let steps = flow.steps.map { step in
      step.choices.map(\.rawValue).joined(separator: step.isFallback ? " then " : " or ")
        + (step.isSkippable ? " (may be skipped)" : "")
        + (step.when == nil ? "" : " (when)")
    }
    return ShadowAnswer("\(flow.account.rawValue): \(steps.joined(separator: ", "))", at: flow.location)
  }

  /// Whether accounts.lua lets a flow create an account.
  private func registered(_ code: RefusalCode?) -> ShadowAnswer {
    ShadowAnswer(code?.name ?? "ok", at: generation.accounts.locations["registration"])
  }

  // MARK: Requests

  private func answer(_ request: ObservedRequest, at now: Timestamp) -> ShadowAnswer {
    let route: Route
    switch matcher.find(request.facts.path, host: request.facts.host, method: request.facts.method) {
    case .route(let index): route = generation.routes.routes[index]
    case .refused: return ShadowAnswer(RefusalCode.badRequest.name)
    case .none: return ShadowAnswer(RefusalCode.noRoute.name, at: SourceLocation(file: "routes.lua", line: 0))
    }
    if route.isOpen(to: request.address, at: request.facts.host, in: generation.gateway) {
      return ShadowAnswer("pass", at: route.location)
    }
    var decided: SourceLocation?
    let verdict = route.verdict(request.session, entitlements(of: request.session), at: now) {
      function, session, entitlements in
      let facts = session.facts(
        of: request.facts,
        by: ClientFacts(
          address: request.address, userAgent: request.userAgent, isNewDevice: false,
          place: generation.gateway.place(of: request.address)),
        entitlements, at: now, clockIsSuspect: false)
      let verdict = evaluator.verdict(of: function, given: facts)
      if verdict != .allow { decided = evaluator.evidence(of: function, given: facts)?.location }
      return verdict
    }
    let place = decided ?? route.location
    return switch verdict {
    case .pass: ShadowAnswer("pass", at: route.location)
    case .noSession: ShadowAnswer(RefusalCode.unauthenticated.name, at: place)
    case .emailNotVerified: ShadowAnswer(RefusalCode.emailNotVerified.name, at: place)
    case .notInGroup: ShadowAnswer(RefusalCode.forbidden.name, at: place)
    case .tooNew(let provider, _): ShadowAnswer("\(RefusalCode.identifierTooNew.name) \(provider)", at: place)
    case .needs(let provider): ShadowAnswer("\(RefusalCode.stepUpRequired.name) \(provider)", at: place)
    case .denied(let reason): ShadowAnswer(reason, at: place)
    case .failed(let fault): ShadowAnswer(RefusalCode.policyError.name, at: fault.location ?? place)
    }
  }

  private func entitlements(of session: SessionSnapshot?) -> Result<Entitlements, PolicyFault> {
    guard let session, generation.accounts.definesEntitlements else { return .success(.none) }
    return Result { () throws(PolicyFault) in
      try generation.accounts.entitlements(of: session, in: generation) { () throws(PolicyFault) in evaluator }
    }
  }
}
