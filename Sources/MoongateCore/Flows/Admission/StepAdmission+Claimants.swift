import MoongateSDK

// Admits an attempt at a step whose identifier several accounts claim without having verified it.

/// An account that a step may be about.
struct Candidate: Sendable {
  /// The step as if it were about this account alone.
  let step: StepRecord
  let capabilities: StepCapabilities
  /// An additional provider that the policy requires.
  let also: ProviderName?
}

extension StepAdmission {
  /// The limits that an attempt is charged against, and the accounts that it may be about. Returns at least one
  /// candidate: without an account if none exists.
  ///
  /// Attack: someone registers an account with another person's address to lock that person out, to get extra attempts
  /// at that person's password, or to pass a policy that would refuse that person. All claimants share one counter, and
  /// the policy judges each account separately.
  func admitClaimants(_ attempt: ProviderAttempt, _ flow: FlowTransaction) async throws(FlowError) -> (
    limits: StepLimits, candidates: [Candidate]
  ) {
    let (step, policy) = (attempt.step, attempt.policy)
    let subject = try await policies.subject(of: step, policy, flow)
    let accounts = try await unchangedClaimants(of: step, flow)
    let only = accounts.count == 1 ? accounts[0] : nil
    let limits = try policies.limits(
      policy, subject, facts: policies.facts(flow, subject: subject, account: only), flow.request)
    var candidates: [Candidate] = []
    var refused: FlowError?
    for account in accounts {
      do throws(FlowError) {
        candidates.append(try await candidate(account, attempt, limits, subject, flow))
      } catch {
        guard case .refused = error else { throw error }
        refused = refused ?? error
      }
    }
    if !candidates.isEmpty { return (limits, candidates) }
    if let refused { throw refused }
    return (limits, [try await candidate(nil, attempt, limits, subject, flow)])
  }

  /// The accounts that claim the step's identifier, without those that have lost it or have changed since the step
  /// began.
  private func unchangedClaimants(of step: StepRecord, _ flow: FlowTransaction) async throws(FlowError) -> [Account] {
    var accounts: [Account] = []
    for version in step.claimants ?? [] {
      guard let account = try await lookup.loadAccount(version.id, flow), AccountVersion(account) == version,
        account.identifiers.contains(where: { $0.identifier == step.identifier })
      else { continue }
      accounts.append(account)
    }
    return accounts
  }

  /// The candidate for an account, or for no account, if the policy allows the attempt.
  private func candidate(
    _ account: Account?, _ attempt: ProviderAttempt, _ limits: StepLimits, _ subject: StepSubject,
    _ flow: FlowTransaction
  ) async throws(FlowError) -> Candidate {
    let step = attempt.step.of(account.map(AccountVersion.init))
    let facts = policies.facts(flow, subject: subject, account: account)
    let question = StepQuestion(
      action: .verify, policy: attempt.policy, limits: limits, facts: facts, account: account,
      passed: flow.record.passed)
    let also = try await policies.judge(question, flow.request)
    let capabilities = try await calls.makeCapabilities(attempt.provider, step, attempt.input, flow)
    return Candidate(step: step, capabilities: capabilities, also: also)
  }

  /// Charges an attempt at a step that may be about several accounts.
  ///
  /// A device that has passed the provider for one of the accounts has separate counters, which do not apply to the
  /// other accounts. If all accounts are candidates, the attempt is charged against both sets of counters. If the
  /// shared counters are used up, only the accounts that this device knows are judged.
  func charge(
    _ limits: [ResolvedLimit], _ candidates: [Candidate], _ attempt: ProviderAttempt, _ flow: FlowTransaction
  ) async throws(FlowError) -> (Charged, [Candidate]) {
    let (step, policy, request) = (attempt.step, attempt.policy, flow.request)
    let hides = hides(policy, flow)
    var known: [Candidate] = []
    for candidate in candidates {
      guard let id = candidate.step.account, let account = try await lookup.loadTrusting(request.device, id, flow)
      else {
        continue
      }
      if keys.knows(request.device, account, by: policy.provider) { known.append(candidate) }
    }
    guard step.claimants != nil, known.count < candidates.count else {
      return (try await ledger.charge(limits, for: .verify, timer: nil, hidesDisabled: hides, request), candidates)
    }
    var subject = try await policies.subject(of: step, policy, flow)
    subject.isOwnDevice = false
    let unknownDevice = try policies.limits(
      policy, subject, facts: policies.facts(flow, subject: subject, account: nil), request
    ).verify
    if known.isEmpty {
      return (
        try await ledger.charge(unknownDevice, for: .verify, timer: nil, hidesDisabled: hides, request), candidates
      )
    }
    let both = limits + unknownDevice.notCounted(by: limits)
    do throws(FlowError) {
      let charged = try await ledger.charge(both, for: .verify, timer: nil, hidesDisabled: hides, request)
      if !charged.isDisabled { return (charged, candidates) }
      try await ledger.settle([charged.settled(.refund, request)], request)
    } catch {
      guard case .refused = error else { throw error }
    }
    return (try await ledger.charge(limits, for: .verify, timer: nil, hidesDisabled: hides, request), known)
  }
}

extension StepRecord {
  /// A copy that is about this account alone, or about no account if nil.
  fileprivate func of(_ account: AccountVersion?) -> StepRecord {
    var step = StepRecord(
      provider: provider, identifier: identifier, isSkippable: isSkippable, account: account, challenge: challenge,
      state: state)
    step.claimants = account.map { [$0] }
    step.fields = fields
    step.redirectTo = redirectTo
    step.shown = shown
    step.wait = wait
    step.judgedBy = judgedBy
    return step
  }
}
