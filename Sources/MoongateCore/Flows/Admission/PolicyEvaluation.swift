import MoongateSDK

/// What a step's attempts are counted for.
struct StepTarget: Sendable {
  var identifier: Identifier?
  /// The ID of the account, if it is known.
  var account: String?
  /// The IDs of the accounts that claim the identifier, if no account has verified it.
  var claimants: [String] = []
  var challenge: Challenge?
}

/// What a policy's `send` or `verify` function is asked about.
struct StepQuestion: Sendable {
  let action: LimitAction
  let policy: ProviderPolicy
  let limits: StepLimits
  let facts: Facts
  let account: Account?
  /// The steps that the flow has passed.
  let passed: [PassedStep]
}

/// Evaluates policies: limits with varying numbers, verdicts and conditions.
struct PolicyEvaluation: FlowPart {
  let services: FlowServices
  let lookup: AccountLookup
  let checks: AccountChecks
  let fallbacks: FallbackRules

  /// Resolves the numbers of a step's limits. Runs Lua only if a function chooses one of them.
  func limits(
    _ policy: ProviderPolicy, _ subject: StepSubject, facts: Facts, expiredAt: Timestamp? = nil,
    _ request: RequestContext
  ) throws(FlowError)
    -> StepLimits
  {
    let limits = try settling(policy, facts, request) { number, duration throws(PolicyFault) in
      try policy.stepLimits(for: subject, expiredAt: expiredAt, keys: keys, number: number, duration: duration)
    }
    request.watch?.settled(subject, facts, expiredAt: expiredAt, verify: limits.verify.count)
    return limits
  }

  /// Resolves the numbers of the limits on registrations.
  func registerLimits(_ policy: ProviderPolicy, _ subject: StepSubject, facts: Facts, _ request: RequestContext)
    throws(FlowError) -> [ResolvedLimit]
  {
    request.watch?.settled(subject, facts, expiredAt: nil, verify: 0)
    return try settling(policy, facts, request) { number, duration throws(PolicyFault) in
      try policy.resolve(.register, for: subject, keys: keys, number: number, duration: duration)
    }
  }

  /// Runs the body with functions that resolve varying numbers.
  private func settling<Result>(
    _ policy: ProviderPolicy, _ facts: Facts, _ request: RequestContext,
    _ body: ((Varying<Int>) throws(PolicyFault) -> Int, (Varying<Duration>) throws(PolicyFault) -> Duration)
      throws(PolicyFault) -> Result
  ) throws(FlowError) -> Result {
    do {
      guard policy.hasVaryingNumbers else { return try body(fixed, fixed) }
      return try generations.withEvaluator(of: request.generation) { evaluator throws(PolicyFault) in
        let recorded = RecordedEvaluation(evaluator: evaluator, facts: facts, trace: request.trace, keys: keys)
        return try body(
          { varying throws(PolicyFault) in
            try recorded.run(varying.function, { String($0) }) { () throws(PolicyFault) in
              try evaluator.value(of: varying, given: facts)
            }
          },
          { varying throws(PolicyFault) in
            try recorded.run(varying.function, { "\"\($0.asWritten)\"" }) { () throws(PolicyFault) in
              try evaluator.value(of: varying, given: facts)
            }
          })
      }
    } catch {
      throw .policy(error)
    }
  }

  /// The subject that a step is counted against.
  func subject(_ policy: ProviderPolicy, _ target: StepTarget, _ flow: FlowTransaction) async throws(FlowError)
    -> StepSubject
  {
    let request = flow.request
    var isOwnDevice = false
    var isTrusted = false
    for id in target.claimants + [target.account].compactMap(\.self) {
      guard let account = try await lookup.loadTrusting(request.device, id, flow) else { continue }
      isOwnDevice = isOwnDevice || keys.knows(request.device, account, by: policy.provider)
      isTrusted = isTrusted || id == target.account && keys.knows(request.device, account, by: nil)
    }
    var subject = StepSubject(
      provider: policy.provider, identifier: target.identifier, account: target.account,
      conceals: policy.unknownAccount == .conceal, flow: flow.record.id, challenge: target.challenge,
      address: request.client.address, device: request.device?.id, isClaimed: !target.claimants.isEmpty,
      isOwnDevice: isOwnDevice, isTrusted: isTrusted)
    subject.place = request.place
    return subject
  }

  /// The subject that an open step is counted against.
  func subject(of step: StepRecord, _ policy: ProviderPolicy, _ flow: FlowTransaction) async throws(FlowError)
    -> StepSubject
  {
    let record = flow.record
    let target = StepTarget(
      identifier: step.identifier, account: record.counted(step.identifier, step.account ?? record.account),
      claimants: (step.claimants ?? []).map(\.id), challenge: step.challenge)
    return try await sendersSubject(policy, target, flow)
  }

  /// The subject of a step that other providers may send codes for: a device that has passed one of them has separate
  /// counters.
  func sendersSubject(_ policy: ProviderPolicy, _ target: StepTarget, _ flow: FlowTransaction) async throws(FlowError)
    -> StepSubject
  {
    let subject = try await subject(policy, target, flow)
    guard let id = subject.account, let account = try await lookup.loadTrusting(flow.request.device, id, flow) else {
      return subject.of(ownDevice: false)
    }
    return subject.of(ownDevice: fallbacks.hasPassed(anySenderBeside: policy.provider, for: account, flow))
  }

  private func fixed<Value>(_ varying: Varying<Value>) throws(PolicyFault) -> Value {
    guard let value = varying.fixedValue else {
      throw PolicyFault(
        kind: .result, location: nil, message: "a number that depends on a function was used as a constant")
    }
    return value
  }

  /// The facts of a step that policy functions see.
  func facts(_ flow: FlowTransaction, subject: StepSubject?, account: Account?) -> Facts {
    let (record, request) = (flow.record, flow.request)
    request.trace.about(
      DecisionTrace.Subject(
        flow: record.name, provider: subject?.provider, identifier: subject?.identifier.map { keys.logHash($0.value) },
        account: account?.id ?? subject?.account ?? record.account))
    var facts = Facts(
      now: request.now, provider: subject?.provider,
      flow: FlowFacts(name: record.name, passed: Set(record.passed.map(\.provider)), reported: record.facts ?? [:]),
      identifier: subject?.identifier ?? record.proved.last,
      account: account?.renewed(by: record.proved).facts(at: request.now, in: request.generation) ?? AccountFacts(),
      client: ClientFacts(
        address: request.client.address, userAgent: request.client.userAgent,
        isNewDevice: !(account.map { keys.knows(request.device, $0, by: nil) } ?? subject?.isTrusted ?? false),
        // A flow that an operator made began in no network.
        networkChanged: !record.network.isEmpty && record.network != request.client.address.networkKey,
        place: request.place),
      clockIsSuspect: clock.isSuspect)
    // A shadow asks functions of groups that the active generation may not have.
    if let account, !request.generation.accounts.groups.isEmpty || request.watch != nil {
      facts.account.groups.session = sessionFacts(of: account, flow)
    }
    return facts
  }

  /// The session that the flow began with, or would open now, as functions of groups see it.
  private func sessionFacts(of account: Account, _ flow: FlowTransaction) -> SessionFacts {
    let (record, request) = (flow.record, flow.request)
    var own: Session?
    if record.startedIn != nil, let live = request.client.session, live.account.id == account.id { own = live.session }
    let steps = ((own?.passed ?? []) + record.passed).counted
    return account.sessionFacts(
      passed: steps.latest, age: own.map { request.now - $0.createdAt } ?? .zero,
      aal: Session.assuranceLevel(of: steps))
  }

  /// Runs the policy's `send` or `verify` function with the current counters.
  /// - Returns: the additional provider that the verdict requires, if any.
  /// - Throws: the refusal. It does not depend on whether the code was right, and nothing is charged.
  func judge(_ question: StepQuestion, _ request: RequestContext) async throws(FlowError) -> ProviderName? {
    let (action, policy, limits) = (question.action, question.policy, question.limits)
    guard let function = action == .send ? policy.send : policy.verify else { return nil }
    var facts = question.facts
    facts.action = action
    let states = try await asking { () async throws(StoreFault) in try await store.counters(limits.all, at: request.now)
    }
    request.trace.uncharged(
      action == .send ? limits.send : limits.verify,
      Array(action == .send ? states.prefix(limits.send.count) : states.dropFirst(limits.send.count)))
    facts.limits = zip(limits.all, states).map { limit, state in
      LimitFacts(limit, state, at: request.now)
    }
    let (verdict, evidence) = try verdict(of: function, given: facts, request)
    if verdict != .allow { note(verdict, of: function, evidence, request) }
    if verdict.endsStep(action) { request.watch?.asked(action) }
    switch verdict {
    case .allow: return nil
    case .deny(let reason):
      throw request.refusal(
        .policyReason(reason), detail: request.generation.text(ofReason: reason, by: policy.provider))
    case .fault(let fault): throw .policy(fault)
    case .requireAlso(let provider):
      if checks.counts(question.passed, among: [provider], for: question.account, request) { return nil }
      guard checks.hasFactor(question.account, provider, request) else { throw request.refusal(.denied) }
      return provider
    }
  }

  private func verdict(of function: FunctionName, given facts: Facts, _ request: RequestContext)
    throws(FlowError) -> (Verdict, PolicyEvidence?)
  {
    do {
      return try generations.withEvaluator(of: request.generation) { evaluator throws(PolicyFault) in
        let verdict = evaluator.verdict(of: function, given: facts)
        return (verdict, verdict == .allow ? nil : evaluator.evidence(of: function, given: facts))
      }
    } catch {
      throw .policy(error)
    }
  }

  /// Runs `admit` of accounts.lua.
  /// - Returns: nil if the answer depends on facts that may still change.
  func admission(of function: FunctionName, given facts: Facts, _ request: RequestContext) throws(FlowError) -> Verdict?
  {
    do {
      return try generations.withEvaluator(of: request.generation) { evaluator throws(PolicyFault) in
        guard let verdict = evaluator.admission(of: function, given: facts) else { return nil }
        if verdict != .allow {
          note(verdict, of: function, evaluator.evidence(of: function, given: facts), request)
        }
        return verdict
      }
    } catch {
      throw .policy(error)
    }
  }

  private func note(
    _ verdict: Verdict, of function: FunctionName, _ evidence: PolicyEvidence?, _ request: RequestContext
  ) {
    request.trace.note("verdict", verdict.text)
    request.trace.note("rule", function.path)
    for (name, value) in evidence?.traceLines(keys) ?? [:] { request.trace.note(name, value) }
  }

  /// Runs a flow's `when` function.
  func condition(_ function: FunctionName, _ flow: FlowTransaction) async throws(FlowError) -> Bool {
    try condition(function, of: try await lookup.loadAccount(flow.record.account, flow), flow)
  }

  /// Runs a `when` function of a flow or of accounts.lua.
  func condition(_ function: FunctionName, of account: Account?, _ flow: FlowTransaction) throws(FlowError) -> Bool {
    let request = flow.request
    let facts = facts(flow, subject: nil, account: account)
    request.watch?.asked(.condition(function, facts))
    do {
      return try generations.withEvaluator(of: request.generation) { evaluator throws(PolicyFault) in
        let recorded = RecordedEvaluation(evaluator: evaluator, facts: facts, trace: request.trace, keys: keys)
        return try recorded.run(function, { String($0) }) { () throws(PolicyFault) in
          try evaluator.condition(of: function, given: facts)
        }
      }
    } catch {
      throw .policy(error)
    }
  }
}

/// Runs policy functions and records their answers and the facts that they read, even if they fail.
private struct RecordedEvaluation {
  let evaluator: any PolicyEvaluator
  let facts: Facts
  let trace: DecisionTrace
  let keys: KeyRing

  func run<Answer>(
    _ function: FunctionName?, _ describe: (Answer) -> String, _ body: () throws(PolicyFault) -> Answer
  ) throws(PolicyFault) -> Answer {
    guard let function else { return try body() }
    do {
      let answer = try body()
      trace.asked(function, describe(answer), evaluator.evidence(of: function, given: facts), keys)
      return answer
    } catch {
      trace.rule(function.path, at: error.location)
      trace.asked(function, Verdict.fault(error).text, evaluator.evidence(of: function, given: facts), keys)
      throw error
    }
  }
}

extension FlowRecord {
  /// The account that a step's attempts are counted against. Attempts at a new identifier do not count against the
  /// account's current one: if attempts at the current one have disabled it, changing the identifier is the way to
  /// enable it again.
  ///
  /// Attack: somebody who has signed in types another user's name of a directory, on one device after another. By the
  /// account of the session, each of those devices would be the owner's and have attempts of its own.
  func counted(_ identifier: Identifier?, _ account: String?) -> String? {
    guard let kind = identifier?.kind else { return account }
    return kind == .federated || kind == purpose.newIdentifier ? nil : account
  }
}

extension Verdict {
  /// Whether the verdict ends the step, so that nothing is charged: no attempt is made, or nothing is sent.
  fileprivate func endsStep(_ action: LimitAction) -> Bool {
    switch self {
    case .allow: false
    case .requireAlso: action == .send
    case .deny, .fault: true
    }
  }
}
