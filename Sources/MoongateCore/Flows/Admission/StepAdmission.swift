import MoongateSDK

/// Decides whether a step may be begun or an attempt at it be judged: the policy's verdict, locks and limits. Its
/// callers charge the attempt before anything is compared.
struct StepAdmission: FlowPart {
  let services: FlowServices
  let lookup: AccountLookup
  let ledger: AttemptLedger
  let policies: PolicyEvaluation
  let calls: ProviderCalls

  var fallbacks: FallbackRules { policies.fallbacks }

  /// The limits that an attempt is charged to, and the policy's verdict before anything is compared.
  func admit(_ step: StepRecord, _ policy: ProviderPolicy, _ flow: FlowTransaction) async throws(FlowError) -> (
    limits: StepLimits, also: ProviderName?
  ) {
    let subject = try await policies.subject(of: step, policy, flow)
    let needsAccount = policy.verify != nil || policy.hasVaryingNumbers
    let account = needsAccount ? try await lookup.loadAccount(subject.account, flow) : nil
    let facts = policies.facts(flow, subject: subject, account: account)
    let limits = try policies.limits(policy, subject, facts: facts, flow.request)
    let question = StepQuestion(
      action: .verify, policy: policy, limits: limits, facts: facts, account: account, passed: flow.record.passed)
    return (limits, try await policies.judge(question, flow.request))
  }

  /// The limits of a step, for an account whose facts are only read if a function chooses a number.
  func limits(of step: StepRecord, _ policy: ProviderPolicy, _ flow: FlowTransaction) async throws(FlowError)
    -> StepLimits
  {
    let subject = try await policies.subject(of: step, policy, flow)
    let account = policy.hasVaryingNumbers ? try await lookup.loadAccount(subject.account, flow) : nil
    return try policies.limits(
      policy, subject, facts: policies.facts(flow, subject: subject, account: account), flow.request)
  }

  /// The attempt limits that the step's other senders add to those of its own provider.
  /// - Parameter own: the limits of the step's provider. Counters that appear in both are returned once.
  func otherVerifyLimits(of step: StepRecord, beside own: [ResolvedLimit], _ flow: FlowTransaction)
    async throws(FlowError) -> [ResolvedLimit]
  {
    var others: [ResolvedLimit] = []
    for name in fallbacks.senders(beside: step.provider, flow) where name != step.provider {
      guard let policy = flow.request.generation.policies[name] else { continue }
      let verify = try await limits(of: step.sent(by: name), policy, flow).verify
      others += verify.notCounted(by: own + others)
    }
    return others
  }

  /// More than five parameters: what is revealed, and what is charged for it.
  /// Charges the client address, then returns a refusal that reveals whether an account exists.
  func revealing(
    _ code: RefusalCode, _ provider: ProviderName, _ limits: [ResolvedLimit], _ action: LimitAction,
    detail: String? = nil, _ request: RequestContext
  ) async throws(FlowError) -> FlowError {
    switch code {
    case .registrationClosed, .invitationRequired: request.decidedByRegistration()
    default: request.decided(by: "unknown_account", of: provider)
    }
    let perAddress = limits.filter { $0.key == .ip }
    let reservation = try await ledger.charge(perAddress, for: action, timer: nil, request)
    // Limits on failures count this too: asking who is registered is a failed attempt.
    let outcome: Settlement.Outcome = action == .send ? .success : .failure
    try await ledger.settle([reservation.settled(outcome, request)], request)
    let invites =
      code == .accountNotFound && request.generation.registers(identifiersOf: provider, by: registry(request))
    return request.refusal(code, detail: invites ? "No account found. Create one?" : detail)
  }

  /// How many refusals of a provider may be refunded per identifier and day.
  static let maxUncounted = 20

  /// Whether to refund the attempt for a refusal that its provider declares as not a failure.
  ///
  /// Attack: a provider declares the refusal of a wrong answer as not a failure, by mistake, and its secret can be
  /// guessed without limit. Only the first refusals per day are therefore refunded, counted per account, otherwise per
  /// identifier, otherwise per flow.
  func isGivenBack(_ step: StepRecord, _ policy: ProviderPolicy, _ flow: FlowTransaction) async throws(FlowError)
    -> Bool
  {
    let subject = try await policies.subject(of: step, policy, flow)
    let key = [LimitKey.account, .identifier, .flow].first { subject.value(of: $0) != nil } ?? .flow
    let counted =
      ["uncounted", policy.provider.rawValue, key.rawValue].map { Array($0.utf8) } + [subject.value(of: key) ?? []]
    let limit = ResolvedLimit(
      provider: policy.provider, name: "uncounted", key: key, counter: keys.counterKey(counted),
      max: Self.maxUncounted, window: .seconds(86_400))
    if case .reserved = try await ledger.count(limit, flow.request) { return true }
    flow.request.decided(by: limit, used: limit.max, lockedUntil: nil)
    return false
  }
}
