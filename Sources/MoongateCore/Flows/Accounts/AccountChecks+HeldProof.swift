import MoongateSDK

// Checks that a change to an account has a recent proof of something that the account already holds.

extension AccountChecks {
  /// Refuses a change unless the session has passed, within `change_within`, something that its account already holds.
  ///
  /// Attack: a stolen session adds a number or a PIN of the thief's own, and locks the owner out with it.
  /// - Parameters:
  ///   - session: the session as stored at the time of the request.
  ///   - passed: further steps that count, such as those of the current flow.
  /// - Throws: 403 `step_up_required` with the provider and the flow that authorise the change; 403
  ///   `identifier_too_new` with the time to wait if everything that the account could prove was added too recently.
  func demandRecentProof(of session: SessionSnapshot, _ request: RequestContext, counting passed: [PassedStep] = [])
    throws(FlowError)
  {
    guard !hasRecentProof(session, request, counting: passed) else { return }
    throw unauthorised(authority(over: session.account, request), request)
  }

  /// Whether the session has a recent proof of something that its account already holds.
  func hasRecentProof(_ session: SessionSnapshot, _ request: RequestContext, counting passed: [PassedStep] = []) -> Bool
  {
    (session.session.passed + passed).contains(where: authority(over: session.account, request).accepts)
  }

  /// The providers that can authorise a change to the account now, each with the flow in which a session can pass it.
  /// Flows with the purpose `step_up` come first.
  func changeProofs(_ authority: ChangeAuthority, _ request: RequestContext) -> [(provider: ProviderName, flow: String)]
  {
    let flows = request.generation.flows.values.filter {
      $0.needsSession(by: registry(request)) && $0.purpose.isProofAlone
    }
    let ordered = flows.sorted { ($0.purpose == .stepUp ? 0 : 1, $0.name) < ($1.purpose == .stepUp ? 0 : 1, $1.name) }
    var found: [(provider: ProviderName, flow: String)] = []
    for flow in ordered {
      // A flow of several steps would ask for more than the change needs.
      guard flow.steps.count == 1, let step = flow.steps.first, step.when == nil else { continue }
      for provider in step.choices
      where authority.canAuthorise(provider) && !found.contains(where: { $0.provider == provider }) {
        found.append((provider, flow.name))
      }
    }
    return found
  }

  /// The change authority for an account at the time of the request.
  func authority(over account: Account, _ request: RequestContext) -> ChangeAuthority {
    let registry = registry(request)
    let usable = registry.all.map(\.descriptor.name).filter { request.generation.policies[$0] != nil }
    let descriptors = usable.compactMap { name in registry.descriptor(name).map { (name, $0) } }
    return ChangeAuthority(
      account: account, rules: request.generation.accounts, descriptors: Dictionary(descriptors) { first, _ in first },
      keys: keys, now: request.now)
  }

  /// The refusal of a change that no proof authorises.
  func unauthorised(_ authority: ChangeAuthority, _ request: RequestContext) -> FlowError {
    guard let named = changeProofs(authority, request).first else {
      if let until = authority.firstTrustedAt { return request.refusal(.identifierTooNew, until: until) }
      return request.refusal(.stepUpRequired)
    }
    return .refused(
      Refusal(.stepUpRequired, decision: request.client.decision, provider: named.provider, flow: named.flow))
  }

  /// Refuses the flow if the account no longer holds what the flow relied on.
  func demandBasis(_ flow: FlowTransaction, by account: Account?) throws(FlowError) {
    let (record, request) = (flow.record, flow.request)
    guard let account else { return }
    // Attack: a thief begins a change of the phone number before the owner sets a PIN, and completes it afterwards. (A
    // secret that was set in the meantime is not replaced: the transaction requires the record that was checked.)
    let isMade =
      record.purpose.setProvider.map { account.credentials.contains($0) && !keepsSeveral($0, request) } ?? false
    if record.purpose.needsHeldProof, !isMade, let own = request.client.session {
      let authority = self.authority(over: account, request)
      guard (own.session.passed + record.passed).contains(where: authority.authorises) else {
        throw unauthorised(authority, request)
      }
    }
    let isHeld =
      record.basis.held.allSatisfy { proved in account.identifiers.contains { $0.identifier == proved } }
    guard isHeld, account.epoch == record.basis.epoch else {
      throw request.refusal(.flowExpired, because: .accountChanged)
    }
  }

  /// Whether the flow resets a secret, or changes or removes an existing one.
  func replacesSecret(of account: Account?, _ flow: FlowTransaction) -> Bool {
    let record = flow.record
    guard let account else { return false }
    return record.purpose.isReset
      || record.pendingProofs.records.keys.contains { name in
        let purpose = record.stepPurpose(of: name)
        return account.credentials.contains(name) && purpose != .prove
          && !(purpose == .set && keepsSeveral(name, flow.request))
      }
  }

  /// The session's account, if its proof is recent enough.
  func accountForChange(_ request: RequestContext) throws(FlowError) -> Account {
    let own = try request.liveSession()
    try demandRecentProof(of: own, request)
    return own.account
  }
}
