import MoongateSDK

// Compares an entered code. The order of checks: flow, malformed input, the secret beside the code, policy function,
// expiry (429 while a limit is locked), charge (refused while a limit is locked), comparison.

/// The fields of the step after a code, sent together with the code: a new PIN or a new password.
private struct FollowUpSecret: Sendable {
  let provider: any FullProvider
  let policy: ProviderPolicy
  let permit: HashingGrant
}

/// A step that was judged right. It is not stored yet.
private struct VerifiedCode: Sendable {
  let flow: FlowTransaction
  let charged: Charged
}

extension CodeStep {
  /// Judges the code that the client sent for the open step. It may come with the fields of a secret that is set right
  /// after it.
  func submit(_ input: ProviderInput, _ step: StepRecord, _ policy: ProviderPolicy, _ flow: FlowTransaction)
    async throws(FlowError) -> FlowView
  {
    let typed: String
    do throws(InputProblem) { typed = try input.text("code") } catch { throw flow.request.refusal(error) }
    let read = try admission.read(typed, for: step, flow.request)
    let secret = try await followUpSecret(step, input, flow)
    let proved = try await judge(read, step, policy, flow)
    guard let secret else { return try await completion.finishRefunding(proved.flow) }
    return try await submitFollowUp(proved, secret, input)
  }

  /// Judges an entered code: asks the policy, charges the attempt, and compares.
  private func judge(
    _ read: [(code: SentCode, typed: String)], _ step: StepRecord, _ policy: ProviderPolicy, _ before: FlowTransaction
  ) async throws(FlowError) -> VerifiedCode {
    let request = before.request
    let admitted = try await admission.admit(read, step, before)
    let live = admitted.codes.filter { request.now < $0.challenge.expiresAt }
    if live.isEmpty {
      try await ledger.refuseWhileLocked(
        admitted.limits, hidesDisabled: admission.hides(policy, before), request)
      throw request.refusal(.codeExpired)
    }
    // Charge first, then compare: a thousand parallel guesses get only as many comparisons as the policy allows.
    //
    // Attack: an account is read only if one has the number, so the time of a wrong code's refusal tells which numbers
    // are registered. Without an account, the same statement finds nothing.
    let charged = try await ledger.charge(
      admitted.limits, for: .verify, timer: nil, hidesDisabled: admission.hides(policy, before),
      in: before.recent, reading: before.record.account ?? step.account ?? AccountLookup.nobody, request)
    // The attempt may have waited for others. The account is the one that was read with the charge.
    before.accounts.forget()
    before.accounts.keep(charged.account)
    let right = live.filter { code in
      keys.isMAC(
        code.challenge.mac, of: code.typed, flow: before.id.hash, provider: code.step.provider.rawValue,
        identifier: step.identifier?.value ?? "",
        purpose: before.record.name)
    }
    guard let code = right.first, !charged.isDisabled else {
      throw try await settlement.settleWrong(charged, .invalidCode, step, before)
    }
    let found: (subject: ProofSubject, choice: AccountChoice?)
    do throws(FlowError) {
      found = try await account(ofCode: code.step, before)
      // Needed to know whether the identifier is too new.
      _ = try await lookup.loadAccount(found.subject.account?.id, before)
    } catch {
      try await ledger.settle([charged.settled(.refund, request)], request)
      throw error
    }
    // Attack: a right code of one sender, again and again, clears the failures that were made at another sender.
    let (counted, rest) = charged.split(code.limits.verify)
    let accepted = AcceptedProof(
      step: code.step, proof: Proof(proved: step.identifier.map { [$0] } ?? []), purpose: .prove,
      subject: found.subject, also: code.also, timer: code.limits.timer)
    var flow = try settlement.passing(accepted, counted, before)
    flow.attempts.append(charged)
    if !rest.limits.isEmpty { flow.changes.append(rest.settled(.refund, request)) }
    if let choice = found.choice { flow.machine.asks(toChoose: choice) }
    try await demandOldEnough(flow)
    return VerifiedCode(flow: flow, charged: charged)
  }

  /// The account that a right code is about, or the accounts from which the user must choose.
  /// - Throws: 410 if none of the accounts for which the code was sent may be recovered any more.
  private func account(ofCode step: StepRecord, _ flow: FlowTransaction) async throws(FlowError) -> (
    subject: ProofSubject, choice: AccountChoice?
  ) {
    guard let claimants = step.claimants, let identifier = step.identifier else {
      return (subject(ofCode: step, flow.record), nil)
    }
    let left = try await lookup.recoverable(claimants, by: identifier, flow).map(AccountVersion.init)
    switch left.count {
    case 0: throw flow.request.refusal(.flowExpired)
    case 1: return (ProofSubject(account: left[0], held: [identifier]), nil)
    default: return (ProofSubject(), AccountChoice(provider: step.provider, identifier: identifier, accounts: left))
    }
  }

  /// The subject that a right code of the step proves.
  private func subject(ofCode step: StepRecord, _ record: FlowRecord) -> ProofSubject {
    guard let id = step.account, let epoch = record.account == nil ? step.epoch : record.basis.epoch else {
      return ProofSubject(holder: step.holder)
    }
    // The account does not hold a new identifier yet.
    let isNew = record.purpose.newIdentifier.map { $0 == step.identifier?.kind } ?? false
    return ProofSubject(
      account: AccountVersion(id: id, epoch: epoch), held: isNew ? [] : [step.identifier].compactMap(\.self),
      holder: step.holder)
  }

  /// Refuses a reset whose code went to an identifier that is too new. The user may know this now that the code was
  /// right. The flow ends.
  private func demandOldEnough(_ flow: FlowTransaction) async throws(FlowError) {
    guard flow.record.purpose.isReset, let account = try await lookup.loadAccount(flow.record.account, flow) else {
      return
    }
    do throws(FlowError) {
      try checks.demandResetProof(flow, account)
    } catch {
      _ = try await views.store(flow.changing { $0.failed() })
      throw error
    }
  }

  // MARK: - A secret beside the code

  /// The next step's secret, if the input also holds it and it can be judged. A PIN that is too weak, or a password
  /// that attackers know, is refused before the code is compared, so that the code is neither charged nor used up.
  private func followUpSecret(_ step: StepRecord, _ input: ProviderInput, _ flow: FlowTransaction)
    async throws(FlowError)
    -> FollowUpSecret?
  {
    let request = flow.request
    // Only for a step that sets a secret. Attack: a PIN beside a wrong code would be a guess that the PIN's own limits
    // do not count.
    guard let name = flow.machine.certainNext, flow.record.stepPurpose(of: name) == .set,
      let full = registry(request)[name] as? any FullProvider,
      let policy = request.generation.policies[name],
      full.descriptor.submitFields.contains(where: { $0.name != "code" && input.fields[$0.name] != nil })
    else { return nil }
    let input = input.declared(by: full.descriptor)
    let known = step.account.flatMap { id in step.epoch.map { AccountVersion(id: id, epoch: $0) } }
    let ahead = StepRecord(provider: name, identifier: nil, isSkippable: false, account: known, challenge: nil)
    var capabilities = try await calls.makeCapabilities(full, ahead, input, flow)
    // The step has not begun, so its fields are not known yet. The fields that came are checked now; missing ones are
    // refused when the step begins.
    capabilities.context.asked = full.descriptor.submitFields.filter { input.fields[$0.name] != nil }
    // Attack: without a session the user is not authenticated yet, and "the password must not contain your name" would
    // reveal the name.
    if flow.record.startedIn == nil { capabilities = capabilities.anonymous }
    do throws(InputProblem) { try full.check(capabilities.context, input) } catch { throw request.refusal(error) }
    // Before the permit, which others wait for, and before a registration is counted.
    try await providerStep.demandUnexposed(full, capabilities, input, flow)
    let attempt = ProviderAttempt(provider: full, policy: policy, input: input, step: ahead)
    return FollowUpSecret(
      provider: full, policy: policy,
      permit: try await providerStep.hashingPermit(attempt, capabilities.context, flow))
  }

  /// Continues with the secret that came with a right code. If the secret is refused, the code's step stays passed and
  /// the next step is due.
  private func submitFollowUp(_ proved: VerifiedCode, _ secret: FollowUpSecret, _ input: ProviderInput)
    async throws(FlowError)
    -> FlowView
  {
    var flow = proved.flow
    let request = flow.request
    guard try await completion.nextAction(&flow) == .offer([secret.policy.provider]) else {
      return try await completion.finishRefunding(flow)
    }
    let codeOnly = flow
    // If anything fails from here on, the next step stays open, so that the client can repeat the call with another
    // secret.
    var reached = flow
    do throws(FlowError) {
      let descriptor = secret.provider.descriptor
      let begun = ProviderBegin(
        provider: secret.provider, policy: secret.policy, input: input.declared(by: descriptor))
      let opened = try await providerStep.opening(begun, flow)
      guard opened.isComplete else { return try await completion.finishRefunding(codeOnly) }
      reached = opened.flow
      let input = try calls.answer(input, to: opened.step, by: descriptor, request)
      let capabilities = try await calls.makeCapabilities(secret.provider, opened.step, input, opened.flow)
      do throws(InputProblem) { try secret.provider.check(capabilities.context, input) } catch {
        throw request.refusal(error)
      }
      try calls.demandFit(input, to: opened.step, by: descriptor, request)
      let attempt = ProviderAttempt(
        provider: secret.provider, policy: secret.policy, input: input, step: opened.step, asksAgain: false)
      switch try await providerStep.judgement(of: attempt, capabilities, secret.permit.hasher, opened.flow) {
      case .proved(var second):
        if secret.permit.isRegistration { second.machine.countsRegistration(by: secret.policy.provider) }
        return try await completion.finishRefunding(second)
      case .waits(var waiting, let refund):
        waiting.changes.append(refund)
        return try await views.store(waiting)
      }
    } catch {
      // The code was right even if the secret was refused. (If another request has changed the flow, that request has
      // stored it already.)
      if case .refused = error {
        try await ledger.settle(proved.flow.changes + [.putFlow(reached.record)], request)
      }
      throw error
    }
  }
}
