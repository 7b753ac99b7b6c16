import MoongateSDK

// Judging what a person sent. The order is exact.md's: malformed, flow, policy function, lock, expiry, charge, compare.

extension FlowEngine {
  /// Judges what the person sent for the open step.
  package func submit(_ id: FlowID, fields: [String: InputValue], client: ClientContext) async -> Result<FlowView, Refusal> {
    await answer(client, flow: id) { visit throws(Halt) in
      let input = ProviderInput(fields: fields, defaultRegion: visit.generation.gateway.region)
      let machine = try await load(id, visit)
      guard let step = machine.record.step, let policy = visit.generation.policies[step.provider], let provider = providers[step.provider] else {
        throw visit.refusal(.stepNotOpen)
      }
      if let challenge = step.challenge {
        let typed: String
        do throws(InputProblem) { typed = try input.text("code") } catch { throw visit.refusal(error) }
        guard let code = challenge.rule.read(typed) else {
          throw visit.refusal(.invalidInput, detail: "Enter the \(challenge.rule.length)-\(challenge.rule.unit) code.", field: "code")
        }
        return try await compare(code, challenge, step, policy, machine, id: id, visit)
      }
      guard let full = provider as? any FullProvider else { throw visit.refusal(.stepNotOpen) }
      return try await judge(full, input, step, policy, machine, id: id, visit)
    }
  }

  /// What a try is charged against, and what the policy says of it before anything is compared.
  private func admit(
    _ step: StepRecord, _ policy: ProviderPolicy, _ machine: FlowMachine, id: FlowID, _ visit: Visit
  ) async throws(Halt) -> (limits: StepLimits, also: ProviderName?) {
    let subject = subject(of: step, machine.record, visit)
    let needsAccount = policy.verify != nil || policy.hasVaryingNumbers
    let account = needsAccount ? try await loadAccount(subject.account) : nil
    let facts = facts(machine.record, subject: subject, account: account, visit)
    let limits = try limits(policy, subject, facts: facts, expiredAt: nil, visit)
    let also = try await judge(.verify, by: policy, limits, facts: facts, account: account, visit)
    return (limits, also)
  }

  /// Compares a code.
  private func compare(
    _ code: String, _ challenge: Challenge, _ step: StepRecord, _ policy: ProviderPolicy, _ before: FlowMachine, id: FlowID, _ visit: Visit
  ) async throws(Halt) -> FlowView {
    let (limits, also) = try await admit(step, policy, before, id: id, visit)
    if visit.now >= challenge.expiresAt {
      try await refuseWhileLocked(limits.verify, visit)
      throw visit.refusal(.codeExpired)
    }
    // Charge first, then compare: a thousand parallel guesses get as many comparisons as the policy says.
    let charged = try await charge(limits.verify, for: .verify, timer: nil, visit)
    let identifier = step.identifier
    let mac = keys.codeMAC(
      code, flow: id.hash, provider: step.provider.rawValue, identifier: identifier?.value ?? "", purpose: before.record.name)
    guard KeyRing.equal(mac, challenge.mac) else { throw try await failed(charged, .invalidCode, step, before.record, id: id, visit) }
    return try await pass(charged, step, identifier, sealed: nil, also, limits.timer, before, id: id, visit)
  }

  /// Lets a full provider judge.
  private func judge(
    _ provider: any FullProvider, _ input: ProviderInput, _ step: StepRecord, _ policy: ProviderPolicy, _ before: FlowMachine, id: FlowID,
    _ visit: Visit
  ) async throws(Halt) -> FlowView {
    let (limits, also) = try await admit(step, policy, before, id: id, visit)
    let context = try await context(provider, step, before.record, visit)
    let charged = try await charge(limits.verify, for: .verify, timer: nil, visit)
    let refund = Change.settle(Settlement(reservation: charged.id, outcome: .refund, limits: charged.limits, timer: nil, now: visit.now))
    let answer: StepAnswer
    do {
      answer = try await fulfil(visit) { () async throws in try await provider.submit(context, input) }
    } catch {
      try await settle([refund], visit)
      throw error
    }
    switch answer {
    case .proved(let proof):
      let sealed: (String, [UInt8])?
      do {
        sealed = try proof.replacement.flatMap { record in
          try (step.account ?? before.record.account).map { ($0, try keys.seal(record, for: "\(step.provider) \($0)")) }
        }
      } catch {
        throw .store(StoreFault("a record of \(step.provider) could not be sealed"))
      }
      return try await pass(charged, step, proof.proved.first ?? step.identifier, sealed: sealed, also, limits.timer, before, id: id, visit)
    case .refused(let reason): throw try await failed(charged, RefusalCode(reason), step, before.record, id: id, visit)
    case .malformed(let problem):
      try await settle([refund], visit)
      throw visit.refusal(problem)
    case .ask(_, let state), .redirect(_, let state):
      var machine = before
      machine.keeps(state)
      return try await store(machine, [refund], id: id, visit)
    }
  }

  /// The try was wrong: it stays charged, and the answer follows from its own place.
  private func failed(
    _ charged: Charged, _ code: RefusalCode, _ step: StepRecord, _ record: FlowRecord, id: FlowID, _ visit: Visit
  ) async throws(Halt) -> Halt {
    let settlement = Settlement(reservation: charged.id, outcome: .failure, limits: charged.limits, timer: nil, now: visit.now)
    let locks = try await settle([.settle(settlement)], visit)
    for lock in locks {
      var event = event(.locked, visit, record: record, id: id, step: step)
      event.detail["limit"] = lock.limit.name
      event.detail["until"] = lock.until.map { String($0.seconds) } ?? "an operator turns it on"
      audit.record(event)
    }
    for (limit, place) in zip(charged.limits, charged.places) {
      visit.notes.note("counter.\(limit.name)", "\(place - 1) -> \(place) of \(limit.max)")
    }
    let tightest = zip(charged.limits, charged.places).min { $0.0.max - $0.1 < $1.0.max - $1.1 }?.0
    if let tightest {
      visit.decided(by: tightest, used: nil, lockedUntil: locks.first { $0.limit.name == tightest.name }?.until)
    }
    // The place decides, not the order in which tries that ran at once were settled: of 200 under max = 5 four answer 401.
    guard let left = charged.left else { return visit.refusal(code) }
    if left >= 1 { return visit.refusal(code, attemptsLeft: left) }
    if locks.contains(where: { $0.until == nil }) { return visit.refusal(.disabled) }
    if let until = locks.compactMap(\.until).max() { return visit.refusal(.tooManyAttempts, until: until) }
    // It was the last one, and its lock waits for others before it that are still being judged; or there is no lock.
    let full = zip(charged.limits, charged.places).filter { $0.max <= $1 }.map(\.0)
    let states = try await asking { () async throws(StoreFault) in try await store.counters(full, at: visit.now) }
    let until = zip(full, states).compactMap { limit, state -> Timestamp? in
      if state.isLocked(at: visit.now) { return state.lockedUntil }
      if let next = state.nextLock(limit, at: visit.now) { return next.until }
      guard let window = limit.window, let oldest = state.oldest else { return nil }
      return oldest + window
    }
    return visit.refusal(.tooManyAttempts, until: until.max() ?? visit.now + .seconds(1))
  }

  /// The try was right.
  private func pass(
    _ charged: Charged, _ step: StepRecord, _ identifier: Identifier?, sealed: (account: String, record: [UInt8])?, _ also: ProviderName?,
    _ timer: ResendTimer, _ before: FlowMachine, id: FlowID, _ visit: Visit
  ) async throws(Halt) -> FlowView {
    var machine = before
    machine.passed(step.provider, identifier: identifier, account: step.account, at: visit.now)
    if let also { machine.requireNext(also) }
    var changes: [Change] = [
      .settle(Settlement(reservation: charged.id, outcome: .success, limits: charged.limits, timer: nil, now: visit.now)),
      .clearTimer(timer.key), .audit(event(.codeVerified, visit, record: machine.record, id: id, step: step)),
    ]
    if let sealed { changes.append(.putProviderRecord(account: sealed.account, step.provider, sealed: sealed.record)) }
    do {
      return try await carryOn(&machine, id: id, visit, changes: changes)
    } catch {
      // The pass was not stored, whatever the reason: the try was none. Its code is spent by a rival, or it still works.
      if case .refused = error {
        try await settle([.settle(Settlement(reservation: charged.id, outcome: .refund, limits: charged.limits, timer: nil, now: visit.now))], visit)
      }
      throw error
    }
  }

  /// Whom an open step counts against.
  func subject(of step: StepRecord, _ record: FlowRecord, _ visit: Visit) -> StepSubject {
    StepSubject(
      provider: step.provider, identifier: step.identifier, account: step.account ?? record.account,
      conceals: visit.generation.policies[step.provider]?.unknownAccount == .conceal, flow: record.id, challenge: step.challenge,
      address: visit.client.address)
  }
}

extension CodeRule {
  /// For sentences: a 6-digit code, an 8-character code.
  var unit: String { alphabet == .digits ? "digit" : "character" }
}

extension Proof {
  /// The record that takes the place of the one before.
  fileprivate var replacement: [UInt8]? { if case .replace(let record) = record { record } else { nil } }
}
