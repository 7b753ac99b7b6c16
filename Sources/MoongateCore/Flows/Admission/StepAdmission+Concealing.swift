import MoongateSDK

// Hides what a policy with `conceal` must not reveal before the user is authenticated: that an account exists, and
// whether an operator or a limit has locked it.

extension StepAdmission {
  /// Whether the response must be the same as for an unknown account: the policy conceals, and the flow has not
  /// identified the user yet.
  func hides(_ policy: ProviderPolicy, _ flow: FlowTransaction) -> Bool {
    policy.unknownAccount == .conceal && flow.record.account == nil
  }

  /// Refuses an account that an operator has locked.
  ///
  /// Attack: someone who enters the address of a locked account learns that the account exists. If the policy conceals,
  /// the flow continues as for any account and is refused when it completes.
  func demandUnlocked(_ account: Account?, _ policy: ProviderPolicy, _ flow: FlowTransaction) throws(FlowError) {
    if hides(policy, flow) { return }
    try demandUnlocked(account, flow.request)
  }

  /// Refuses an account that an operator has locked. Call this once the user is authenticated.
  func demandUnlocked(_ account: Account?, _ request: RequestContext) throws(FlowError) {
    guard let account, account.isLocked else { return }
    request.trace.about(DecisionTrace.Subject(account: account.id))
    throw request.refusal(.disabled, because: .operatorLock)
  }
}

extension Charged {
  /// A copy for a user who must not learn about limits that disable a credential. The remaining attempts are computed
  /// from the other limits.
  var withoutDisabling: Charged {
    let kept = zip(limits, places).filter { !$0.0.disablesPerson }
    return Charged(id: id, limits: kept.map(\.0), places: kept.map(\.1), isDisabled: isDisabled)
  }

  /// The change that settles the attempt.
  func settled(_ outcome: Settlement.Outcome, timer: ResendTimer? = nil, _ request: RequestContext) -> Change {
    request.watch?.ended(id, outcome)
    return .settle(Settlement(reservation: id, outcome: outcome, limits: limits, timer: timer, now: request.now))
  }
}
