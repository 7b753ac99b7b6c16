import MoongateSDK

// What a policy that conceals must not tell before the person has proved who they are: that an account is there, and
// what an operator or a limit has done to it (account-security.md section 3, rule 7).

extension FlowEngine {
  /// Whether the answer must be the same as for an unknown account: the policy conceals, and the flow does not know yet
  /// who the person is.
  func hides(_ policy: ProviderPolicy, _ record: FlowRecord) -> Bool {
    policy.unknownAccount == .conceal && record.account == nil
  }

  /// Refuses an account that an operator has locked.
  ///
  /// Attack: whoever asks for the address of an account that an operator has locked learns that there is one. Where the
  /// policy conceals, the flow goes on as for any account, and its end is refused (`demandUnlocked` there).
  func demandUnlocked(_ account: Account?, _ policy: ProviderPolicy, _ record: FlowRecord, _ request: RequestContext)
    throws(FlowError)
  {
    if hides(policy, record) { return }
    try demandUnlocked(account, request)
  }

  /// Refuses an account that an operator has locked: the person has proved who they are.
  func demandUnlocked(_ account: Account?, _ request: RequestContext) throws(FlowError) {
    if account?.isLocked ?? false { throw request.refusal(.disabled) }
  }
}

extension ResolvedLimit {
  /// Whether its being full turns off something of the person: what a policy that conceals does not tell.
  var turnsPersonOff: Bool { disables && key.isPersonal }
}

extension Charged {
  /// The same for a person who must not learn that limits turn things off: what is left is left by the others.
  var withoutTurningOff: Charged {
    let kept = zip(limits, places).filter { !$0.0.turnsPersonOff }
    return Charged(id: id, limits: kept.map(\.0), places: kept.map(\.1), isOff: isOff)
  }

  /// The end of the try.
  func settled(_ outcome: Settlement.Outcome, timer: ResendTimer? = nil, _ request: RequestContext) -> Change {
    request.watch?.ended(id, outcome)
    return .settle(Settlement(reservation: id, outcome: outcome, limits: limits, timer: timer, now: request.now))
  }
}
