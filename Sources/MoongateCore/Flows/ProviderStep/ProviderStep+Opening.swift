import MoongateSDK

// Begins the step of a full provider.

/// The accounts that a step which begins is about.
private struct BeginSubject: Sendable {
  let identifier: Identifier?
  var owners: IdentifierOwners
  /// Whether an account has the identifier already, where the flow is for new accounts only.
  var isTaken = false
}

extension ProviderStep {
  /// Opens the step without storing it.
  func opening(_ begin: ProviderBegin, _ before: FlowTransaction) async throws(FlowError) -> OpenedStep {
    let (provider, request) = (begin.provider, before.request)
    let name = begin.policy.provider
    try await checks.demandProof(before: before.record.stepPurpose(of: name), before)
    try await checks.demandOldFactor(name, before)
    let subject = try await subject(of: begin, before)
    let owners = subject.owners
    try await admit(begin, subject, before)
    var fresh = StepRecord(
      provider: name, identifier: subject.identifier, isSkippable: before.machine.due?.isSkippable ?? false,
      account: owners.holder.map(AccountVersion.init),
      challenge: nil)
    if !owners.claimants.isEmpty { fresh.claimants = owners.claimants.map(AccountVersion.init) }
    let flow = before.changing { $0.opened(fresh) }
    guard let step = flow.record.step else { throw request.refusal(.stepNotOpen) }
    var capabilities = try await calls.makeCapabilities(provider, step, begin.input, flow)
    capabilities.context.asked = provider.descriptor.beginFields
    let begun = capabilities.context
    let answer = try await calls.callProvider(.begin, of: name, capabilities, flow) { () async throws in
      try await provider.begin(begun, begin.input)
    }
    switch answer {
    case .ask, .redirect, .wait:
      guard let opened = try round(after: answer, by: name, flow), let step = opened.record.step else {
        throw request.refusal(.stepNotOpen)
      }
      let required = step.redirectTo == nil ? (step.fields ?? []).filter(\.isRequired) : []
      let isComplete = !required.isEmpty && required.allSatisfy { begin.input.fields[$0.name] != nil }
      return OpenedStep(flow: opened, step: step, isComplete: isComplete)
    case .malformed(let problem): throw request.refusal(problem)
    case .refused(let reason), .refusedAndAsked(let reason, _):
      throw request.refusal(try calls.outcome(reason, of: name, request))
    case .proved:
      // Attack: a step that passes without an attempt would not be counted by any limit.
      throw request.refusal(.denied)
    }
  }

  /// Reads the identifier from the input and finds the accounts that it leads to.
  private func subject(of begin: ProviderBegin, _ flow: FlowTransaction) async throws(FlowError) -> BeginSubject {
    let request = flow.request
    let name = begin.policy.provider
    let identifier: Identifier?
    do throws(InputProblem) { identifier = try begin.provider.readIdentifier(begin.input) } catch {
      throw request.refusal(error)
    }
    if begin.isBegin { try calls.demandBeginning(begin.input, by: begin.provider.descriptor, request) }
    try calls.demandDeclared([identifier].compactMap(\.self), by: name, request)
    let own = try await lookup.loadOwn(flow)
    if let own, flow.record.purpose.connectsSite { try demandUnconnected(name, own, request) }
    var subject = BeginSubject(identifier: identifier, owners: IdentifierOwners(holder: own))
    // A name that was typed for another site, such as a directory, only counts attempts. Whose account it is, the proof
    // says (`subject(of:)`).
    guard let identifier, identifier.kind != .federated else { return subject }
    if let own {
      guard own.identifiers.contains(where: { $0.identifier == identifier }) else {
        throw request.refusal(.denied, because: .foreignIdentifier)
      }
    } else if flow.record.stepPurpose(of: name) == .set {
      // An account that already has the address is not part of setting a new secret.
      let isTaken = try await lookup.isTaken(identifier, flow)
      subject.isTaken = isTaken && (flow.record.accountRule == .new || identifier.kind.isExclusive)
    } else {
      subject.owners = try await lookup.owners(of: identifier, claimedWith: name, flow)
    }
    return subject
  }

  /// Counts the begin of the step, and refuses it if a policy reveals unknown accounts or a limit is locked.
  private func admit(_ begin: ProviderBegin, _ subject: BeginSubject, _ flow: FlowTransaction) async throws(FlowError) {
    let (policy, owners, request) = (begin.policy, subject.owners, flow.request)
    let name = policy.provider
    let purpose = flow.record.stepPurpose(of: name)
    try admission.demandUnlocked(owners.only, policy, flow)
    let conceals = policy.unknownAccount == .conceal
    let target = StepTarget(
      identifier: subject.identifier, account: flow.record.counted(subject.identifier, owners.holder?.id),
      claimants: owners.claimants.map(\.id))
    let counted = try await policies.subject(policy, target, flow)
    let facts = policies.facts(flow, subject: counted, account: owners.only)
    let limits = try policies.limits(policy, counted, facts: facts, request)
    if begin.isBegin { try await ledger.count(limits.begin, as: .begin, request) }
    // No code can tell the owner of a name that it is taken, so the page does. The limits by address count it, and a
    // sign-in with the name conceals as usual. The sentence is the same for a name that only looks like another one.
    let isTakenName = subject.isTaken && subject.identifier?.kind.isExclusive ?? false
    if subject.isTaken, !conceals || isTakenName {
      throw try await admission.revealing(
        .alreadyRegistered, name, limits.verify, .verify, detail: isTakenName ? Self.takenName : nil, request)
    }
    let namesAccount = subject.identifier.map { $0.kind != .federated } ?? false
    if owners.isEmpty, namesAccount, purpose == .prove, flow.record.accountRule == .existing, !conceals {
      throw try await admission.revealing(.accountNotFound, name, limits.verify, .verify, request)
    }
    try await ledger.refuseWhileLocked(
      limits.verify(for: purpose).filter(\.key.isPersonal), hidesDisabled: admission.hides(policy, flow), request)
  }

  static let takenName = "This name is taken. Please choose another."

  /// The flow with the next round of its open step; nil if the answer has no next round.
  /// - Parameters:
  ///   - answer: validated by `callProvider`, as all answers are.
  ///   - judged: the record that the first attempt was judged by; nil if the step begins.
  func round(
    after answer: StepAnswer, by provider: ProviderName, judgedBy judged: StoredRecord.Judged? = nil,
    _ before: FlowTransaction
  ) throws(FlowError) -> FlowTransaction? {
    let (id, request) = (before.id, before.request)
    var round: StepRound
    switch answer {
    case .ask(let fields, let state, let shown):
      round = StepRound(fields: fields, state: try seals.seal(state, for: provider, id: id))
      round.shown = try seals.seal(shown, for: provider, id: id)
    case .redirect(let site, let state):
      round = StepRound(fields: nil, state: try seals.seal(state, for: provider, id: id))
      round.redirectTo = site
    case .wait(let interval, let state, let shown):
      round = StepRound(fields: [], state: try seals.seal(state, for: provider, id: id))
      round.shown = try seals.seal(shown, for: provider, id: id)
      round.wait = StepWait(interval: interval, from: max(request.now, clock.now()))
    case .proved, .refused, .refusedAndAsked, .malformed: return nil
    }
    round.judgedBy = judged
    return before.changing { $0.waits(for: round) }
  }
}
