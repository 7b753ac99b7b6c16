import MoongateSDK

// Evaluates policies: limits with varying numbers, verdicts and conditions.

extension FlowEngine {
  /// Resolves the numbers of a step's limits. Runs Lua only if a function chooses one of them.
  func limits(
    _ policy: ProviderPolicy, _ subject: StepSubject, facts: Facts, expiredAt: Timestamp?, _ request: RequestContext
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
        try body(
          { varying throws(PolicyFault) in
            try noting(varying.function, evaluator, facts, request, { String($0) }) { () throws(PolicyFault) in
              try evaluator.value(of: varying, given: facts)
            }
          },
          { varying throws(PolicyFault) in
            try noting(varying.function, evaluator, facts, request, { "\"\($0.asWritten)\"" }) {
              () throws(PolicyFault) in
              try evaluator.value(of: varying, given: facts)
            }
          })
      }
    } catch {
      throw .policy(error)
    }
  }

  /// Runs a policy function and records its answer and the facts that it read, even if it fails.
  private func noting<Answer>(
    _ function: FunctionName?, _ evaluator: any PolicyEvaluator, _ facts: Facts, _ request: RequestContext,
    _ told: (Answer) -> String,
    _ body: () throws(PolicyFault) -> Answer
  ) throws(PolicyFault) -> Answer {
    guard let function else { return try body() }
    do {
      let answer = try body()
      request.notes.asked(function, told(answer), evaluator.evidence(of: function, given: facts), keys)
      return answer
    } catch {
      request.notes.rule(function.path, at: error.location)
      request.notes.asked(function, Verdict.fault(error).text, evaluator.evidence(of: function, given: facts), keys)
      throw error
    }
  }

  /// The subject that a step is counted against.
  func subject(
    _ policy: ProviderPolicy, _ identifier: Identifier?, account: String?, claimants: [String] = [],
    challenge: Challenge? = nil, flow: TokenHash,
    _ request: RequestContext
  ) -> StepSubject {
    StepSubject(
      provider: policy.provider, identifier: identifier, account: account, conceals: policy.unknownAccount == .conceal,
      flow: flow,
      challenge: challenge, address: request.client.address, device: request.device?.id, isClaimed: !claimants.isEmpty,
      isOwnDevice: (claimants + [account].compactMap(\.self)).contains {
        keys.knows(request.device, $0, by: policy.provider)
      },
      isTrusted: keys.knows(request.device, account, by: nil))
  }

  /// The subject that an open step is counted against.
  func subject(of step: StepRecord, _ policy: ProviderPolicy, _ record: FlowRecord, _ request: RequestContext)
    -> StepSubject
  {
    let subject = subject(
      policy, step.identifier, account: counted(step.identifier, step.account ?? record.account, record),
      claimants: (step.claimants ?? []).map(\.id),
      challenge: step.challenge, flow: record.id, request)
    return subject.of(ownDevice: hasPassed(anySenderOf: record, beside: policy.provider, for: subject.account, request))
  }

  /// The account that a step's attempts are counted against. Attempts at a new identifier do not count against the
  /// account's current one: if attempts at the current one have disabled it, changing the identifier is the way to
  /// enable it again.
  func counted(_ identifier: Identifier?, _ account: String?, _ record: FlowRecord) -> String? {
    identifier?.kind != nil && identifier?.kind == record.purpose.newIdentifier ? nil : account
  }

  private func fixed<Value>(_ varying: Varying<Value>) throws(PolicyFault) -> Value {
    guard let value = varying.fixedValue else {
      throw PolicyFault(
        kind: .result, location: nil, message: "a number that depends on a function was used as a constant")
    }
    return value
  }

  /// The facts of a step that policy functions see.
  func facts(_ record: FlowRecord, subject: StepSubject?, account: Account?, _ request: RequestContext) -> Facts {
    request.notes.about(
      DecisionTrace.Subject(
        flow: record.name, provider: subject?.provider, identifier: subject?.identifier.map { keys.logHash($0.value) },
        account: account?.id ?? subject?.account ?? record.account))
    return Facts(
      now: request.now, provider: subject?.provider,
      flow: FlowFacts(name: record.name, passed: Set(record.passed.map(\.provider)), told: record.facts ?? [:]),
      identifier: subject?.identifier ?? record.proved.last,
      account: account?.facts(at: request.now, in: request.generation) ?? AccountFacts(),
      client: ClientFacts(
        address: request.client.address, userAgent: request.client.userAgent,
        isNewDevice: !keys.knows(request.device, account?.id ?? subject?.account ?? record.account, by: nil),
        networkChanged: record.network != request.client.address.networkKey),
      clockIsSuspect: clock.isSuspect)
  }

  /// Runs the policy's `send` or `verify` function with the current counters.
  /// - Returns: the additional provider that the verdict requires, if any.
  /// - Throws: the refusal. It does not depend on whether the code was right, and nothing is charged.
  func judge(
    _ action: LimitAction, by policy: ProviderPolicy, _ limits: StepLimits, facts: Facts, account: Account?,
    _ request: RequestContext
  ) async throws(FlowError) -> ProviderName? {
    guard let function = action == .send ? policy.send : policy.verify else { return nil }
    var facts = facts
    facts.action = action
    let states = try await asking { () async throws(StoreFault) in try await store.counters(limits.all, at: request.now)
    }
    request.notes.uncharged(
      action == .send ? limits.send : limits.verify,
      Array(action == .send ? states.prefix(limits.send.count) : states.dropFirst(limits.send.count)))
    facts.limits = zip(limits.all, states).map { limit, state in
      LimitFacts(limit, state, at: request.now)
    }
    let (verdict, evidence): (Verdict, PolicyEvidence?)
    do {
      let given = facts
      (verdict, evidence) = try generations.withEvaluator(of: request.generation) { evaluator throws(PolicyFault) in
        let verdict = evaluator.verdict(of: function, given: given)
        return (verdict, verdict == .allow ? nil : evaluator.evidence(of: function, given: given))
      }
    } catch {
      throw .policy(error)
    }
    if verdict != .allow { note(verdict, of: function, evidence, request) }
    if verdict.endsStep(action) { request.watch?.asked(action) }
    switch verdict {
    case .allow: return nil
    case .deny(let reason):
      throw request.refusal(
        .policyReason(reason), detail: request.generation.text(ofReason: reason, by: policy.provider))
    case .fault(let fault): throw .policy(fault)
    case .requireAlso(let provider):
      if facts.flow?.passed.contains(provider) ?? false { return nil }
      guard hasFactor(account, provider, request) else { throw request.refusal(.denied) }
      return provider
    }
  }

  private func note(
    _ verdict: Verdict, of function: FunctionName, _ evidence: PolicyEvidence?, _ request: RequestContext
  ) {
    request.notes.note("verdict", verdict.text)
    request.notes.note("rule", function.path)
    for (name, value) in evidence?.notes(keys) ?? [:] { request.notes.note(name, value) }
  }

  /// Runs a flow's `when` function.
  func condition(_ function: FunctionName, _ record: FlowRecord, _ request: RequestContext) async throws(FlowError)
    -> Bool
  {
    try condition(function, record, of: try await loadAccount(record.account), request)
  }

  /// Runs a `when` function of a flow or of accounts.lua.
  func condition(_ function: FunctionName, _ record: FlowRecord, of account: Account?, _ request: RequestContext)
    throws(FlowError) -> Bool
  {
    let facts = facts(record, subject: nil, account: account, request)
    request.watch?.asked(.condition(function, facts))
    do {
      return try generations.withEvaluator(of: request.generation) { evaluator throws(PolicyFault) in
        try noting(function, evaluator, facts, request, { String($0) }) { () throws(PolicyFault) in
          try evaluator.condition(of: function, given: facts)
        }
      }
    } catch {
      throw .policy(error)
    }
  }

  /// Whether the account could pass the provider at all.
  func hasFactor(_ account: Account?, _ name: ProviderName, _ request: RequestContext) -> Bool {
    guard let account, let provider = registry(request)[name], request.generation.policies[name] != nil else {
      return false
    }
    if account.credentials.contains(name) { return true }
    let kinds = provider.descriptor.identifierKinds
    if provider is any CodeProvider { return kinds.contains { account.identifier($0)?.verifiedAt != nil } }
    // For a federated identity, nothing but the identifier is stored.
    return kinds.contains(.federated) && account.identifier(.federated)?.verifiedAt != nil
  }

  /// Whether the account can complete a step of the provider, as far as the core knows. A code needs a recipient; a
  /// secret or a federated identity must exist, unless the step creates it.
  func isOpen(_ name: ProviderName, to account: Account, in purpose: FlowPurpose, _ request: RequestContext) -> Bool {
    guard let provider = registry(request)[name] else { return false }
    let kinds = provider.descriptor.identifierKinds
    if purpose.step(of: name) == .set || purpose.newIdentifier.map(kinds.contains) ?? false { return true }
    if provider is any CodeProvider { return meant(of: kinds, in: account, for: purpose, request) != nil }
    if kinds.contains(.federated) { return account.identifier(.federated)?.verifiedAt != nil }
    // If a flow sets up the factor, the account needs it before it can be proved.
    let isMade = provider.descriptor.hashesSecrets || request.generation.flow(for: .factor(name, .set)) != nil
    return !isMade || account.credentials.contains(name)
  }

  func loadAccount(_ id: String?) async throws(FlowError) -> Account? {
    guard let id else { return nil }
    return try await asking { () async throws(StoreFault) in try await store.account(id) }
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
