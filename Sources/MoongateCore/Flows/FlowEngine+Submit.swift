import MoongateSDK

// Judges submitted input. The order of checks: malformed input, flow, policy function, lock, expiry, charge,
// comparison.

/// The fields of the step after a code, sent together with the code: a new PIN or a new password.
private struct FollowUpSecret: Sendable {
  let provider: any FullProvider
  let policy: ProviderPolicy
  let place: HashingGrant
}

extension FlowEngine {
  /// Judges what the client sent for the open step. A code may come with the fields of a secret that is set right after
  /// it.
  ///
  /// For a completed flow of an app: redeems its one-time code, `{"code","code_verifier"}`.
  package func submit(_ id: FlowID, fields: [String: InputValue], client: ClientContext) async -> Result<
    FlowView, Refusal
  > {
    await answer(client, flow: id) { request throws(FlowError) in
      request.notes.note("act", "submit")
      let input = ProviderInput(fields: fields, defaultRegion: request.generation.gateway.region)
      if fields["code_verifier"] != nil, let view = try await redeem(id, input, request) { return view }
      let machine = try await load(id, request)
      if let choice = machine.record.accountChoice { return try await choose(choice, input, machine, id: id, request) }
      guard let step = machine.record.step, let policy = request.generation.policies[step.provider],
        let provider = registry(request)[step.provider]
      else {
        throw request.refusal(.stepNotOpen)
      }
      if step.challenge != nil {
        let typed: String
        do throws(InputProblem) { typed = try input.text("code") } catch { throw request.refusal(error) }
        let read = try read(typed, for: step, request)
        let following = try await following(step, machine, input, id: id, request)
        return try await compare(read, step, policy, machine, following, input, id: id, request)
      }
      guard let full = provider as? any FullProvider else { throw request.refusal(.stepNotOpen) }
      if let wait = step.wait { return try await poll(full, wait, input, policy, machine, id: id, request) }
      return try await judge(full, input, step, policy, machine, id: id, request)
    }
  }

  /// The limits that an attempt is charged to, and the policy's verdict before anything is compared.
  func admit(
    _ step: StepRecord, _ policy: ProviderPolicy, _ machine: FlowMachine, id: FlowID, _ request: RequestContext
  ) async throws(FlowError) -> (limits: StepLimits, also: ProviderName?) {
    let subject = subject(of: step, policy, machine.record, request)
    let needsAccount = policy.verify != nil || policy.hasVaryingNumbers
    let account = needsAccount ? try await loadAccount(subject.account) : nil
    let facts = facts(machine.record, subject: subject, account: account, request)
    let limits = try limits(policy, subject, facts: facts, expiredAt: nil, request)
    let also = try await judge(.verify, by: policy, limits, facts: facts, account: account, request)
    return (limits, also)
  }

  /// Compares an entered code with those that the step waits for.
  private func compare(
    _ read: [(code: SentCode, typed: String)], _ step: StepRecord, _ policy: ProviderPolicy, _ before: FlowMachine,
    _ following: FollowUpSecret?,
    _ input: ProviderInput, id: FlowID, _ request: RequestContext
  ) async throws(FlowError) -> FlowView {
    let admitted = try await admit(read, step, before, id: id, request)
    let live = admitted.codes.filter { request.now < $0.challenge.expiresAt }
    if live.isEmpty {
      try await refuseWhileLocked(admitted.limits, hidesDisabled: hides(policy, before.record), request)
      throw request.refusal(.codeExpired)
    }
    // Charge first, then compare: a thousand parallel guesses get only as many comparisons as the policy allows.
    let charged = try await charge(
      admitted.limits, for: .verify, timer: nil, hidesDisabled: hides(policy, before.record), request)
    let right = live.filter { code in
      keys.isMAC(
        code.challenge.mac, of: code.typed, flow: id.hash, provider: code.step.provider.rawValue,
        identifier: step.identifier?.value ?? "",
        purpose: before.record.name)
    }
    guard let code = right.first, !charged.isOff else {
      throw try await failed(charged, .invalidCode, step, before, id: id, request)
    }
    let proof = Proof(proved: step.identifier.map { [$0] } ?? [])
    let found: (subject: ProofSubject, choice: AccountChoice?)
    do throws(FlowError) {
      found = try await whoseCode(code.step, before.record, request)
    } catch {
      try await settle([charged.settled(.refund, request)], request)
      throw error
    }
    // Attack: a right code of one sender, again and again, clears the failures that were made at another sender.
    let (counted, rest) = charged.split(code.limits.verify)
    var proved = try passing(
      counted, code.step, proof, for: .prove, found.subject, code.also, code.limits.timer, before, id: id, request)
    proved.charged = charged
    if !rest.limits.isEmpty { proved.changes.append(rest.settled(.refund, request)) }
    if let choice = found.choice { proved.machine.asks(toChoose: choice) }
    try await demandOldEnough(proved, id: id, request)
    guard let following else {
      return try await finish(proved.machine, proved.changes, refunding: [charged], id: id, request)
    }
    return try await goOn(proved, following, input, id: id, request)
  }

  /// Whether the input also holds the next step's secret and can be judged. A PIN that is too weak is refused before
  /// the code is compared, so that the code is neither charged nor used up.
  private func following(
    _ step: StepRecord, _ machine: FlowMachine, _ input: ProviderInput, id: FlowID, _ request: RequestContext
  ) async throws(FlowError) -> FollowUpSecret? {
    // Only for a step that sets a secret. Attack: a PIN beside a wrong code would be a guess that the PIN's own limits
    // do not count.
    guard let name = machine.certainNext, machine.record.stepPurpose(of: name) == .set,
      let full = registry(request)[name] as? any FullProvider,
      let policy = request.generation.policies[name],
      full.descriptor.submitFields.contains(where: { $0.name != "code" && input.fields[$0.name] != nil })
    else { return nil }
    let input = input.declared(by: full.descriptor)
    let known = step.account.flatMap { id in step.epoch.map { AccountVersion(id: id, epoch: $0) } }
    let ahead = StepRecord(provider: name, identifier: nil, isSkippable: false, account: known, challenge: nil)
    var capabilities = try await makeCapabilities(full, ahead, input, machine.record, id: id, request)
    // The step has not begun, so its fields are not known yet. The fields that came are checked now; missing ones are
    // refused when the step begins.
    capabilities.context.asked = full.descriptor.submitFields.filter { input.fields[$0.name] != nil }
    // Attack: without a session the user is not authenticated yet, and "the password must not contain your name" would
    // reveal the name.
    if machine.record.startedIn == nil { capabilities = capabilities.anonymous }
    do throws(InputProblem) { try full.check(capabilities.context, input) } catch { throw request.refusal(error) }
    return FollowUpSecret(
      provider: full, policy: policy,
      place: try await hashingPlace(for: full, capabilities.context, policy, ahead, machine.record, request))
  }

  /// Continues with the secret that came with a right code. If the secret is refused, the code's step stays passed and
  /// the next step is due.
  private func goOn(
    _ proved: ProvedStep, _ following: FollowUpSecret, _ input: ProviderInput, id: FlowID, _ request: RequestContext
  ) async throws(FlowError) -> FlowView {
    var machine = proved.machine
    guard try await advance(&machine, request) == .offer([following.policy.provider]) else {
      return try await finish(machine, proved.changes, refunding: [proved.charged], id: id, request)
    }
    let codeOnly = machine
    // If anything fails from here on, the next step stays open, so that the client can repeat the call with another
    // secret.
    var reached = machine
    do throws(FlowError) {
      let descriptor = following.provider.descriptor
      let opened = try await opening(
        following.provider, input.declared(by: descriptor), following.policy, machine, id: id, request)
      guard opened.isComplete else {
        return try await finish(codeOnly, proved.changes, refunding: [proved.charged], id: id, request)
      }
      reached = opened.machine
      let input = try answer(input, to: opened.step, by: descriptor, request)
      let capabilities = try await makeCapabilities(following.provider, opened.step, input, opened.machine.record, id: id, request)
      do throws(InputProblem) { try following.provider.check(capabilities.context, input) } catch {
        throw request.refusal(error)
      }
      try demandFit(input, to: opened.step, by: descriptor, request)
      let judged = try await judgement(
        of: following.provider, input, capabilities, following.place.hasher, opened.step, following.policy, opened.machine,
        isNew: false, asksAgain: false,
        id: id, request)
      switch judged {
      case .proved(var second):
        if following.place.isRegistration { second.machine.countsRegistration(by: following.policy.provider) }
        return try await finish(
          second.machine, proved.changes + second.changes, refunding: [proved.charged, second.charged], id: id, request)
      case .waits(let waiting, let refund): return try await store(waiting, proved.changes + [refund], id: id, request)
      }
    } catch {
      // The code was right even if the secret was refused. (If another request has changed the flow, that request has
      // stored it already.)
      if case .refused = error { try await settle(proved.changes + [.putFlow(reached.record)], request) }
      throw error
    }
  }

  /// Settles a wrong attempt and builds the refusal from the attempt's position in its limits.
  /// - Parameter isNew: whether the same call opened the step. The step then stays open.
  func failed(
    _ charged: Charged, _ code: RefusalCode, _ step: StepRecord, _ machine: FlowMachine, isNew: Bool = false,
    id: FlowID, _ request: RequestContext
  ) async throws(FlowError) -> FlowError {
    let record = machine.record
    request.watch?.ended(charged.id, .failure)
    let settlement = Settlement(
      reservation: charged.id, outcome: .failure, limits: charged.limits, timer: nil, now: request.now,
      attempts: attempts(charged.limits, step, record, request))
    let locks = try await settleFailure(settlement, keeping: isNew ? record : nil, request)
    for account in step.claimants?.map(\.id) ?? [step.account ?? record.account].compactMap(\.self) {
      try await tell(of: locks, account: account, request)
    }
    for lock in locks {
      var event = event(.locked, request, record: record, id: id, step: step)
      event.detail["limit"] = lock.limit.name
      event.detail["lock"] = Base64URL.encode(lock.limit.counter)
      event.detail["until"] = lock.until.map { String($0.seconds) } ?? "an operator turns it on"
      audit.record(event)
    }
    for (limit, place) in zip(charged.limits, charged.places) {
      request.notes.note("counter.\(limit.name)", "\(place - 1) -> \(place) of \(limit.max)")
    }
    let tightest = zip(charged.limits, charged.places).min { $0.0.max - $0.1 < $1.0.max - $1.1 }?.0
    if let tightest {
      request.decided(by: tightest, used: nil, lockedUntil: locks.first { $0.limit.name == tightest.name }?.until)
    }
    // The position decides, not the order in which concurrent attempts were settled: of 200 attempts under `max = 5`,
    // four answer 401.
    let isHidden = request.generation.policies[step.provider].map { hides($0, record) } ?? false
    let charged = isHidden ? charged.withoutTurningOff : charged
    guard let left = charged.left else { return request.refusal(code) }
    if left >= 1 { return request.refusal(code, attemptsLeft: left) }
    if !isHidden, locks.contains(where: { $0.until == nil }) { return request.refusal(.disabled) }
    if let until = locks.compactMap(\.until).max() { return request.refusal(.tooManyAttempts, until: until) }
    // This was the last attempt. Its lock waits for earlier attempts that are still being judged, or the limit has no
    // lock.
    let full = zip(charged.limits, charged.places).filter { $0.max <= $1 }.map(\.0)
    let states = try await asking { () async throws(StoreFault) in try await store.counters(full, at: request.now) }
    let until = zip(full, states).compactMap { limit, state -> Timestamp? in
      if state.isLocked(at: request.now) { return state.lockedUntil }
      if let next = state.nextLock(limit, at: request.now) { return next.until }
      guard let window = limit.window, let oldest = state.oldest else { return nil }
      return oldest + window
    }
    return request.refusal(.tooManyAttempts, until: until.max() ?? request.now + .seconds(1))
  }

  /// The data stored about a failed attempt, for an operator who examines a lock.
  private func attempts(_ limits: [ResolvedLimit], _ step: StepRecord, _ record: FlowRecord, _ request: RequestContext)
    -> [FailedAttempt]
  {
    let origin = AttemptOrigin(
      identifier: step.identifier, account: counted(step.identifier, step.account ?? record.account, record),
      address: request.client.address.description)
    // If the origin cannot be sealed, the attempt still counts, but the lock's details do not show its origin.
    return limits.filter(\.remembersFailures).compactMap { try? origin.attempt(at: $0.counter, request.now, by: keys) }
  }

  /// Settles a failure. A step that was opened by the same call stays open. For a flow in memory, the flow itself is
  /// not written.
  private func settleFailure(_ settlement: Settlement, keeping record: FlowRecord?, _ request: RequestContext)
    async throws(FlowError) -> [LockBegun]
  {
    guard let record else { return try await settle([.settle(settlement)], request) }
    guard record.version > 0 else {
      let locks = try await settle([.settle(settlement)], request)
      pending.update(record)
      return locks
    }
    switch try await asking({ () async throws(StoreFault) in
      try await store.apply([.settle(settlement), .putFlow(record)], at: request.now)
    }) {
    case .applied(let locks): return locks
    // Another request has changed the flow. The failure still counts.
    case .conflict: return try await settle([.settle(settlement)], request)
    }
  }

  /// The subject that a right code of the step proves.
  func subject(ofCode step: StepRecord, _ record: FlowRecord) -> ProofSubject {
    guard let id = step.account, let epoch = record.account == nil ? step.epoch : record.basis?.epoch else {
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
  private func demandOldEnough(_ proved: ProvedStep, id: FlowID, _ request: RequestContext) async throws(FlowError) {
    let record = proved.machine.record
    guard record.purpose.isReset, let account = try await loadAccount(record.account) else { return }
    do throws(FlowError) {
      try demandResetProof(record, account, request)
    } catch {
      var machine = proved.machine
      machine.failed()
      _ = try await store(machine, proved.changes, id: id, request)
      throw error
    }
  }

  /// Applies a right attempt to the flow without storing it.
  /// - Parameters:
  ///   - subject: the account that the step was about.
  ///   - timer: the resend timer to clear after a code.
  ///   - judged: the provider's record that the proof was judged by.
  func passing(
    _ charged: Charged, _ step: StepRecord, _ proof: Proof, judgedBy judged: StoredRecord.Judged = .init(hash: nil),
    for purpose: StepPurpose,
    _ subject: ProofSubject, _ also: ProviderName?, _ timer: ResendTimer?, _ before: FlowMachine, id: FlowID,
    _ request: RequestContext
  ) throws(FlowError) -> ProvedStep {
    var machine = before
    let name = step.provider
    // Setting a PIN is not passing it. A registration with a password has no other step to pass.
    let isFactor = purpose != .set || machine.record.purpose.registersFactor
    let main = subject.held.first ?? proof.proved.first
    var passed = PassedProof(
      PassedStep(
        provider: name, at: request.now, identifier: main.map { keys.proofHash(of: $0) },
        isMultiFactor: proof.isMultiFactor),
      account: subject.account)
    (passed.proved, passed.held) = (proof.proved, subject.held)
    (passed.isFactor, passed.holder) = (isFactor, subject.holder)
    machine.passed(passed)
    if let descriptor = registry(request).descriptor(name) {
      let identifiers = proof.proved.isEmpty ? [step.identifier].compactMap(\.self) : proof.proved
      machine.tells(ProvidedFacts.of(descriptor, proof, about: identifiers), of: name)
    }
    // Attack: someone who has one factor opens the step that sets up another one during sign-in, and finishes it when
    // the owner has set one up. The step was required because the account had no such factor, so the account must still
    // have none.
    let isEnrolment = before.due?.requirement == .enroll
    let basis = isEnrolment ? StoredRecord.Judged(hash: nil) : judged
    let kept: StoredRecord?
    switch proof.record {
    case .keep: kept = nil
    case .remove: kept = StoredRecord(sealed: nil, judgedBy: judged)
    // A step that only proves may change the record's form, such as a hash at today's cost, and nothing else.
    case .replace(let new) where purpose == .prove:
      kept = StoredRecord(sealed: try seal(record: new, of: name, id: id, request), judgedBy: judged, isRenewal: true)
    // Attack: a flow of the thief's that sets a PIN waits until the owner has set one, or completes at the same moment,
    // and replaces it.
    case .replace(let new):
      let isAddition = machine.record.purpose.needsHeldProof || isEnrolment
      kept = StoredRecord(sealed: try seal(record: new, of: name, id: id, request), judgedBy: isAddition ? basis : nil)
    case .replaceOnce(let new):
      kept = StoredRecord(sealed: try seal(record: new, of: name, id: id, request), judgedBy: basis)
    }
    machine.gathers { gathered in
      // Attack: an account of the attacker's at the other site that was once given the victim's address, which the site
      // does not vouch for. The address is not verified here.
      gathered.claimed += proof.claimed + proof.attested
      gathered.firstName = proof.firstName ?? gathered.firstName
      gathered.lastName = proof.lastName ?? gathered.lastName
      if let kept { gathered.records[name] = kept }
    }
    if let also { machine.requireNext(also) }
    if let confirmedBy = subject.confirmedBy { machine.requireNext(confirmedBy) }
    var changes: [Change] = [
      // Attack: someone who claims another user's address signs in there now and then, so that their wrong guesses at
      // that user's password never reach the limit that disables it. A right answer for one of several claimants
      // therefore does not clear the attempts at the others.
      charged.settled(step.challenge == nil && (step.claimants?.count ?? 0) > 1 ? .refund : .success, request),
      .audit(event(.codeVerified, request, record: machine.record, id: id, step: step)),
    ]
    if let timer { changes.append(.clearTimer(timer.key)) }
    return ProvedStep(machine: machine, changes: changes, charged: charged)
  }

  /// Continues after a right attempt, and refunds the attempt if the result cannot be stored.
  func finish(
    _ before: FlowMachine, _ changes: [Change], refunding tries: [Charged], id: FlowID, _ request: RequestContext
  ) async throws(FlowError)
    -> FlowView
  {
    var machine = before
    do {
      return try await carryOn(&machine, id: id, request, changes: changes)
    } catch {
      // The pass was not stored, so the attempt does not count. Another request has used the code, or it still works.
      switch error {
      case .store: break
      case .refused, .policy:
        let refunds = tries.map { charged in
          Change.settle(
            Settlement(reservation: charged.id, outcome: .refund, limits: charged.limits, timer: nil, now: request.now))
        }
        try await settle(refunds, request)
      }
      throw error
    }
  }

}

extension CodeRule {
  /// For messages: "a 6-digit code", "an 8-character code".
  var unit: String { alphabet == .digits ? "digit" : "character" }
}
