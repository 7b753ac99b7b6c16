import MoongateSDK

/// A proof that was judged right.
struct AcceptedProof: Sendable {
  let step: StepRecord
  let proof: Proof
  /// What the step does with it.
  let purpose: StepPurpose
  /// The account that the step was about.
  let subject: ProofSubject
  /// An additional provider that the policy requires.
  var also: ProviderName?
  /// The resend timer to clear after a code.
  var timer: ResendTimer?
  /// The provider's record that the proof was judged by.
  var judged = StoredRecord.Judged(hash: nil)
}

/// Settles charged attempts: a right one changes the flow, a wrong one becomes a refusal.
struct StepSettlement: FlowPart {
  let services: FlowServices
  let seals: FlowSeals
  let ledger: AttemptLedger
  let admission: StepAdmission
  let notices: FlowNotices
  let storage: FlowStorage

  // MARK: Right

  /// Applies a right attempt to the flow without storing it.
  func passing(_ accepted: AcceptedProof, _ charged: Charged, _ before: FlowTransaction) throws(FlowError)
    -> FlowTransaction
  {
    let (step, proof, request) = (accepted.step, accepted.proof, before.request)
    let name = step.provider
    var flow = before
    flow.machine.passed(passedProof(accepted, flow))
    if let descriptor = registry(request).descriptor(name) {
      let identifiers = proof.proved.isEmpty ? [step.identifier].compactMap(\.self) : proof.proved
      flow.machine.recordFacts(ProvidedFacts.of(descriptor, proof, about: identifiers), of: name)
    }
    let recheck = try pendingRecheck(of: proof, by: name, request)
    let kept = try storedRecord(accepted, isEnrolment: before.machine.due?.requirement == .enroll, flow)
    flow.machine.updatePendingProofs { pending in
      // Attack: an account of the attacker's at the other site that was once given the victim's address, which the site
      // does not vouch for. The address is not verified here.
      pending.claimed += proof.claimed + proof.attested
      pending.firstName = proof.firstName ?? pending.firstName
      pending.lastName = proof.lastName ?? pending.lastName
      if let kept { pending.records[name] = kept }
      if let recheck { pending.rechecks = (pending.rechecks ?? [:]).merging([name: recheck]) { $1 } }
    }
    if let also = accepted.also { flow.machine.requireNext(also) }
    if let confirmedBy = accepted.subject.confirmedBy { flow.machine.requireNext(confirmedBy) }
    flow.changes += [
      // Attack: someone who claims another user's address signs in there now and then, so that their wrong guesses at
      // that user's password never reach the limit that disables it. A right answer for one of several claimants
      // therefore does not clear the attempts at the others.
      charged.settled(step.challenge == nil && (step.claimants?.count ?? 0) > 1 ? .refund : .success, request),
      .audit(event(.codeVerified, flow, step: step)),
    ]
    if let timer = accepted.timer { flow.changes.append(.clearTimer(timer.key)) }
    return flow
  }

  /// The passed step, as the machine receives it.
  private func passedProof(_ accepted: AcceptedProof, _ flow: FlowTransaction) -> PassedProof {
    let (proof, subject) = (accepted.proof, accepted.subject)
    let main = subject.held.first ?? proof.proved.first
    let (provider, request) = (accepted.step.provider, flow.request)
    var step = PassedStep(
      provider: provider, at: request.now, identifier: main.map { keys.proofHash(of: $0) },
      isMultiFactor: proof.isMultiFactor)
    step.tooNewUntil = subject.account.flatMap { flow.accounts[$0.id] }?.isTooNewUntil(
      main, by: provider, request.generation.accounts, at: request.now)
    step.siteSession = proof.siteSession.map { keys.siteSessionHash($0, at: provider) }
    var passed = PassedProof(step, account: subject.account)
    (passed.proved, passed.held) = (proof.proved, subject.held)
    // Setting a PIN is not passing it. A registration with a password has no other step to pass.
    passed.isFactor = accepted.purpose != .set || flow.record.purpose.registersFactor
    passed.holder = subject.holder
    return passed
  }

  /// What the provider needs to recheck the identity that it has proved; nil if gateway.lua does not say `recheck`.
  private func pendingRecheck(of proof: Proof, by provider: ProviderName, _ request: RequestContext)
    throws(FlowError) -> PendingRecheck?
  {
    guard request.generation.gateway.providers[provider]?.recheck != nil,
      let identity = proof.proved.first(where: { $0.kind == .federated })
    else { return nil }
    do {
      let sealed = try proof.recheck.map { try IdentityRechecks.seal($0, of: identity, by: provider, keys) }
      return PendingRecheck(identity: identity, sealed: sealed, at: request.now)
    } catch {
      throw .store(StoreFault("the state of \(provider) could not be sealed"))
    }
  }

  /// The change of the provider's record that waits in the flow; nil if the record is kept.
  /// - Parameter isEnrolment: whether `accounts.lua` required the step, to set up a factor.
  private func storedRecord(_ accepted: AcceptedProof, isEnrolment: Bool, _ flow: FlowTransaction) throws(FlowError)
    -> StoredRecord?
  {
    let name = accepted.step.provider
    let judged = accepted.judged
    // Attack: someone who has one factor opens the step that sets up another one during sign-in, and finishes it when
    // the owner has set one up. The step was required because the account had no such factor, so the account must still
    // have none.
    let basis = isEnrolment ? StoredRecord.Judged(hash: nil) : judged
    switch accepted.proof.record {
    case .keep: return nil
    case .remove: return StoredRecord(sealed: nil, judgedBy: judged)
    // A step that only proves may change the record's form, such as a hash at today's cost, and nothing else.
    case .replace(let new) where accepted.purpose == .prove:
      return StoredRecord(sealed: try seals.seal(record: new, of: name, flow), judgedBy: judged, isRenewal: true)
    // Attack: a flow of the thief's that sets a PIN waits until the owner has set one, or completes at the same moment,
    // and replaces it.
    case .replace(let new):
      let isAddition = flow.record.purpose.needsHeldProof || isEnrolment
      return StoredRecord(sealed: try seals.seal(record: new, of: name, flow), judgedBy: isAddition ? basis : nil)
    case .replaceOnce(let new):
      return StoredRecord(sealed: try seals.seal(record: new, of: name, flow), judgedBy: basis)
    }
  }

  // MARK: Wrong

  /// Settles a wrong attempt and builds the refusal from the attempt's position in its limits.
  /// - Parameter isNew: whether the same call opened the step. The step then stays open.
  func settleWrong(
    _ charged: Charged, _ code: RefusalCode, _ step: StepRecord, _ flow: FlowTransaction, isNew: Bool = false
  ) async throws(FlowError) -> FlowError {
    let (record, request) = (flow.record, flow.request)
    request.watch?.ended(charged.id, .failure)
    let settlement = Settlement(
      reservation: charged.id, outcome: .failure, limits: charged.limits, timer: nil, now: request.now,
      attempts: attempts(charged.limits, step, flow))
    let locks = try await storage.settleFailure(settlement, keeping: isNew ? record : nil, request)
    for account in step.claimants?.map(\.id) ?? [step.account ?? record.account].compactMap(\.self) {
      try await notices.notify(of: locks, account: account, flow)
    }
    for lock in locks {
      var event = event(.locked, flow, step: step)
      event.detail["limit"] = lock.limit.name
      event.detail["lock"] = Base64URL.encode(lock.limit.counter)
      event.detail["until"] = lock.until.map { String($0.seconds) } ?? "an operator re-enables it"
      audit.record(event)
    }
    for (limit, place) in zip(charged.limits, charged.places) {
      request.trace.note("counter.\(limit.name)", "\(place - 1) -> \(place) of \(limit.max)")
    }
    let tightest = zip(charged.limits, charged.places).min { $0.0.max - $0.1 < $1.0.max - $1.1 }?.0
    if let tightest {
      request.decided(by: tightest, used: nil, lockedUntil: locks.first { $0.limit.name == tightest.name }?.until)
    }
    // The position decides, not the order in which concurrent attempts were settled: of 200 attempts under `max = 5`,
    // four answer 401.
    let isHidden = request.generation.policies[step.provider].map { admission.hides($0, flow) } ?? false
    let charged = isHidden ? charged.withoutDisabling : charged
    guard let left = charged.left else { return request.refusal(code) }
    if left >= 1 { return request.refusal(code, attemptsLeft: left) }
    if !isHidden, locks.contains(where: { $0.until == nil }) { return request.refusal(.disabled) }
    if let until = locks.compactMap(\.until).max() { return request.refusal(.tooManyAttempts, until: until) }
    return try await lastAttempt(charged, request)
  }

  /// The refusal of the last attempt that a limit allows, if no lock has begun: its lock waits for earlier attempts
  /// that are still being judged, or the limit has no lock.
  private func lastAttempt(_ charged: Charged, _ request: RequestContext) async throws(FlowError) -> FlowError {
    let full = zip(charged.limits, charged.places).filter { $0.max <= $1 }.map(\.0)
    let states = try await asking { () async throws(StoreFault) in try await store.counters(full, at: request.now) }
    let until = zip(full, states).compactMap { limit, state -> Timestamp? in
      let next = state.isLocked(at: request.now) ? nil : state.nextLock(limit, at: request.now)
      return next?.until ?? state.opensAt(limit, at: request.now)
    }
    return request.refusal(.tooManyAttempts, until: until.max() ?? request.now + .seconds(1))
  }

  /// The data stored about a failed attempt, for an operator who examines a lock.
  private func attempts(_ limits: [ResolvedLimit], _ step: StepRecord, _ flow: FlowTransaction) -> [FailedAttempt] {
    let (record, request) = (flow.record, flow.request)
    let origin = AttemptOrigin(
      identifier: step.identifier, account: record.counted(step.identifier, step.account ?? record.account),
      address: request.client.address.description)
    // If the origin cannot be sealed, the attempt still counts, but the lock's details do not show its origin.
    return limits.filter(\.remembersFailures).compactMap { try? origin.attempt(at: $0.counter, request.now, by: keys) }
  }
}
