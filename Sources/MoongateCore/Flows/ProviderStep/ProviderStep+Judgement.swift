import MoongateSDK

// Charges an attempt at a step of a full provider, and lets the provider judge it.

/// A full provider's judgement, other than a refusal.
enum Judgement: Sendable {
  /// The flow with the passed step. It is not stored yet.
  case proved(FlowTransaction)
  /// The provider asks for more or waits. The attempt is refunded.
  case waits(FlowTransaction, refund: Change)
}

/// An attempt that was charged and that its provider has answered.
private struct AnsweredAttempt: Sendable {
  let attempt: ProviderAttempt
  let purpose: StepPurpose
  let charged: Charged
  let refund: Change
  /// The account that the answer is about.
  let candidate: Candidate
  /// The record that the attempt was judged by.
  let judged: StoredRecord.Judged
  /// The flow before the attempt.
  let before: FlowTransaction

  var step: StepRecord { attempt.step }
  var isPoll: Bool { step.wait != nil }
  /// The flow after a refusal. A refusal ends a wait. Otherwise every further poll of a page that stays open would
  /// count as a failure.
  var refused: FlowTransaction { isPoll ? before.changing { $0.closedStep() } : before }
  /// Whether the flow is stored when the attempt has failed.
  var keepsFlow: Bool { attempt.isNew || isPoll }
}

extension ProviderStep {
  /// Charges an attempt and lets the provider judge it. Stores only the settlement of the attempt and, if a refusal
  /// asks again, the next round.
  func judgement(
    of attempt: ProviderAttempt, _ capabilities: StepCapabilities, _ slot: (any SecretHasher)?,
    _ before: FlowTransaction
  ) async throws(FlowError) -> Judgement {
    let (step, request) = (attempt.step, before.request)
    let purpose = capabilities.context.purpose
    try await checks.demandProof(before: purpose, before)
    let limits: StepLimits
    var candidates: [Candidate]
    if step.claimants == nil {
      // Attack: the time of an attempt tells whether its name exists, because the account of a known one is read, and
      // then its record.
      if purpose == .prove, step.account == nil, before.record.account == nil,
        step.identifier?.kind.isExclusive ?? false
      {
        try await lookup.readNobody()
        _ = try await calls.makeCapabilities(attempt.provider, step, attempt.input, before)
      }
      let (admitted, also) = try await admission.admit(step, attempt.policy, before)
      (limits, candidates) = (admitted, [Candidate(step: step, capabilities: capabilities, also: also)])
    } else {
      (limits, candidates) = try await admission.admitClaimants(attempt, before)
    }
    let charged: Charged
    (charged, candidates) = try await admission.charge(limits.verify(for: purpose), candidates, attempt, before)
    // The attempt may have waited for others.
    before.accounts.forget()
    // If a limit has disabled the credential, nothing is compared, in the same time.
    if charged.isDisabled { candidates = [Candidate(step: step, capabilities: capabilities.withoutAccount, also: nil)] }
    let refund = charged.settled(.refund, request)
    let answer: StepAnswer
    let candidate: Candidate
    do {
      (answer, candidate) = try await ask(attempt, about: candidates, with: slot, before)
    } catch {
      try await ledger.settle([refund], request)
      throw error
    }
    // Attack: a code is judged right, and while its provider waits for another answer the code is used, or the secret
    // replaced or removed, in another flow. The record of the first judgement therefore counts, not the one that exists
    // when the last answer comes.
    let judged = step.judgedBy ?? StoredRecord.Judged(hash: candidate.capabilities.record)
    let answered = AnsweredAttempt(
      attempt: attempt, purpose: purpose, charged: charged, refund: refund, candidate: candidate, judged: judged,
      before: before)
    return try await conclude(attempt.asksAgain ? answer : answer.withoutNextRound, answered)
  }

  /// Lets a provider judge the candidates in turn, until it accepts one or asks for more.
  private func ask(
    _ attempt: ProviderAttempt, about candidates: [Candidate], with slot: (any SecretHasher)?, _ flow: FlowTransaction
  ) async throws(FlowError) -> (StepAnswer, Candidate) {
    var refused: (StepAnswer, Candidate)?
    for candidate in candidates {
      let capabilities = candidate.capabilities.granting(slot)
      let answer = try await calls.callProvider(.submit, of: candidate.step.provider, capabilities, flow) {
        () async throws in
        try await attempt.provider.submit(capabilities.context, attempt.input)
      }
      switch answer {
      case .refused: break
      // If there are several candidates, the next round of one of them is not shown.
      case .refusedAndAsked(let reason, _) where candidates.count > 1:
        refused = refused ?? (.refused(reason), candidate)
      default: return (answer, candidate)
      }
      refused = refused ?? (answer, candidate)
    }
    guard let refused else { throw flow.request.refusal(.stepNotOpen) }
    await balance(attempt, slot, flow)
    return refused
  }

  /// After a refusal where the policy conceals, hashes what another user's attempt would have hashed
  /// (`BalancingHasher`). It follows the comparison, so that its faults cannot refund a wrong guess.
  private func balance(_ attempt: ProviderAttempt, _ slot: (any SecretHasher)?, _ flow: FlowTransaction) async {
    guard let hasher = slot as? any BalancingHasher, attempt.policy.unknownAccount == .conceal,
      flow.record.account == nil, attempt.step.identifier != nil,
      let kinds = try? await store.importedHashes(of: attempt.policy.provider)
    else { return }
    await hasher.balance(kinds)
  }

  /// Settles the attempt by the provider's answer.
  private func conclude(_ answer: StepAnswer, _ answered: AnsweredAttempt) async throws(FlowError) -> Judgement {
    let (step, before, request) = (answered.step, answered.before, answered.before.request)
    switch answer {
    case .proved(let proof): return .proved(try await passed(proof, answered))
    case .refused(let reason):
      let outcome = try calls.outcome(reason, of: step.provider, request)
      let refused = answered.refused
      if !outcome.isFailure, try await admission.isGivenBack(step, answered.attempt.policy, before) {
        if answered.isPoll {
          try await storage.storeRefunding(refused, answered.refund)
        } else {
          try await ledger.settle([answered.refund], request)
        }
        throw request.refusal(outcome)
      }
      throw try await settlement.settleWrong(
        answered.charged, RefusalCode(outcome), step, refused, isNew: answered.keepsFlow)
    case .refusedAndAsked(let reason, let round): throw try await askAgain(reason, round, answered)
    case .malformed(let problem):
      try await ledger.settle([answered.refund], request)
      throw request.refusal(problem)
    case .ask, .redirect, .wait:
      return .waits(try await nextRound(answer, answered), refund: answered.refund)
    }
  }

  /// The flow with the step passed, if the proof belongs to its account.
  private func passed(_ proof: Proof, _ answered: AnsweredAttempt) async throws(FlowError) -> FlowTransaction {
    let (candidate, charged, before) = (answered.candidate, answered.charged, answered.before)
    let request = before.request
    let stored = proof.storing(candidate.capabilities.upgraded, in: answered.purpose)
    let proof = before.record.purpose.connectsSite ? stored.identityAlone : stored
    if charged.isDisabled {
      try await ledger.settle([answered.refund], request)
      // The user is authenticated, so the reason may be shown.
      throw request.refusal(.disabled)
    }
    let whose: ProofSubject
    do {
      whose = try await subject(of: proof, candidate.step, before)
    } catch {
      _ = try await settlement.settleWrong(charged, .denied, answered.step, answered.refused, isNew: answered.keepsFlow)
      throw error
    }
    // Needed to know whether what was proved is too new.
    _ = try await lookup.loadAccount(whose.account?.id, before)
    return try await refundingOnFailure(answered.refund, request) { () throws(FlowError) -> FlowTransaction in
      if answered.purpose == .set { try checks.demandChangeProof(before, isJudged: true) }
      let accepted = AcceptedProof(
        step: answered.step, proof: proof, purpose: answered.purpose, subject: whose, also: candidate.also,
        judged: answered.judged)
      var flow = try settlement.passing(accepted, charged, before)
      flow.attempts.append(charged)
      return flow
    }
  }

  /// Stores the next round that came with a refusal.
  /// - Returns: the refusal.
  private func askAgain(_ reason: RefusalReason, _ round: StepAnswer.Round, _ answered: AnsweredAttempt)
    async throws(FlowError) -> FlowError
  {
    let (step, before) = (answered.step, answered.before)
    let outcome = try calls.outcome(reason, of: step.provider, before.request)
    let flow = try await nextRound(.ask(round.fields, state: round.state, showing: round.shown), answered)
    if !outcome.isFailure, try await admission.isGivenBack(step, answered.attempt.policy, before) {
      try await storage.storeRefunding(flow, answered.refund)
      return before.request.refusal(outcome)
    }
    return try await settlement.settleWrong(answered.charged, RefusalCode(outcome), step, flow, isNew: true)
  }

  /// The flow that asks for more, about the account that the answer is about. Stores nothing, except a refund if the
  /// round cannot be sealed.
  private func nextRound(_ answer: StepAnswer, _ answered: AnsweredAttempt) async throws(FlowError) -> FlowTransaction {
    let request = answered.before.request
    return try await refundingOnFailure(answered.refund, request) { () throws(FlowError) -> FlowTransaction in
      let flow = answered.before.changing { $0.updateClaimants(answered.candidate.step.claimants) }
      guard let next = try round(after: answer, by: answered.step.provider, judgedBy: answered.judged, flow) else {
        throw request.refusal(.stepNotOpen)
      }
      return next
    }
  }

  /// Refunds the attempt if what follows from the provider's answer is not allowed or cannot be stored.
  private func refundingOnFailure<Answer>(
    _ refund: Change, _ request: RequestContext, _ body: () throws(FlowError) -> Answer
  ) async throws(FlowError) -> Answer {
    do {
      return try body()
    } catch {
      try await ledger.settle([refund], request)
      throw error
    }
  }
}

extension StepLimits {
  /// The limits that a step of this purpose is charged against. Setting a secret is not a guess, and a locked PIN can
  /// be reset, so only limits by address apply then.
  func verify(for purpose: StepPurpose) -> [ResolvedLimit] {
    purpose == .set ? verify.filter { !$0.key.isPersonal } : verify
  }
}

extension Proof {
  /// The identity at the other site, without the identifiers that came with it.
  ///
  /// Attack: the address of an identity at the other site comes along, and codes to it open the account from then on.
  fileprivate var identityAlone: Proof {
    var proof = self
    proof.proved = proved.filter { $0.kind == .federated }
    (proof.attested, proof.claimed) = ([], [])
    (proof.firstName, proof.lastName) = (nil, nil)
    return proof
  }

  /// A proof that also stores the upgraded record, as a renewal: it is dropped if another record was stored in the
  /// meantime.
  fileprivate func storing(_ upgraded: [UInt8]?, in purpose: StepPurpose) -> Proof {
    guard let upgraded, purpose == .prove, case .keep = record else { return self }
    var proof = self
    proof.record = .replace(upgraded)
    return proof
  }
}

extension StepAnswer {
  /// The answer, with a refusal reduced to its reason.
  fileprivate var withoutNextRound: StepAnswer {
    if case .refusedAndAsked(let reason, _) = self { .refused(reason) } else { self }
  }
}
