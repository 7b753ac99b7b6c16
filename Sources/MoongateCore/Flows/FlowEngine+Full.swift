import Logging
import MoongateSDK

// Steps of full providers: opening them, the capabilities that they receive, and their judgement. The core charges the
// attempt, and the provider compares.

/// An open step, and whether the input already holds everything that its provider asks for.
struct OpenedStep: Sendable {
  var machine: FlowMachine
  let step: StepRecord
  let isComplete: Bool
}

/// A step that was judged right. It is not stored yet.
struct ProvedStep: Sendable {
  var machine: FlowMachine
  var changes: [Change]
  var charged: Charged
}

/// The hashing permit of a step.
struct HashingGrant: Sendable {
  var hasher: (any SecretHasher)?
  /// Whether the account that the step creates was counted for it.
  var isRegistration = false
}

/// A full provider's judgement, other than a refusal.
enum Judgement: Sendable {
  case proved(ProvedStep)
  /// The provider asks for more or waits. The attempt is refunded.
  case waits(FlowMachine, refund: Change)
}

extension FlowEngine {
  /// Opens the step of a full provider. If the input holds everything that the provider asks for, the step is judged at
  /// once.
  func open(
    _ provider: any FullProvider, _ input: ProviderInput, _ policy: ProviderPolicy, _ before: FlowMachine, id: FlowID,
    _ request: RequestContext
  ) async throws(FlowError) -> FlowView {
    let opened = try await opening(provider, input, policy, before, isBegin: true, id: id, request)
    guard opened.isComplete else {
      return try await store(
        opened.machine, [.audit(event(.flowBegun, request, record: opened.machine.record, id: id, step: opened.step))],
        id: id, request)
    }
    return try await judge(provider, input, opened.step, policy, opened.machine, isNew: true, id: id, request)
  }

  /// Opens the step without storing it.
  /// - Parameter isBegin: whether the client begins the step, so that it counts as begun.
  func opening(
    _ provider: any FullProvider, _ input: ProviderInput, _ policy: ProviderPolicy, _ before: FlowMachine,
    isBegin: Bool = false, id: FlowID,
    _ request: RequestContext
  ) async throws(FlowError) -> OpenedStep {
    var machine = before
    let name = policy.provider
    let purpose = machine.record.stepPurpose(of: name)
    try await demandProof(before: purpose, machine.record, request)
    let identifier: Identifier?
    do throws(InputProblem) { identifier = try provider.readIdentifier(input) } catch { throw request.refusal(error) }
    if isBegin { try demandBeginning(input, by: provider.descriptor, request) }
    try demandDeclared([identifier].compactMap(\.self), by: name, request)
    let own = try await loadOwn(machine.record, request)
    if let own, machine.record.purpose.connectsSite { try demandUnconnected(name, own, request) }
    var owners = IdentifierOwners(holder: own)
    var isTaken = false
    if let identifier {
      if let own {
        guard own.identifiers.contains(where: { $0.identifier == identifier }) else { throw request.refusal(.denied) }
      } else if purpose == .set {
        // An account that already has the address is not part of setting a new secret.
        isTaken = try await holder(of: identifier) != nil && machine.record.accountRule == .new
      } else {
        owners = try await self.owners(of: identifier, claimedWith: name, request)
      }
    }
    try demandUnlocked(owners.only, policy, machine.record, request)
    let conceals = policy.unknownAccount == .conceal
    let subject = subject(
      policy, identifier, account: owners.holder?.id, claimants: owners.claimants.map(\.id), flow: id.hash, request)
    let facts = facts(machine.record, subject: subject, account: owners.only, request)
    let limits = try limits(policy, subject, facts: facts, expiredAt: nil, request)
    if isBegin { try await count(limits.begin, as: .begin, request) }
    if isTaken, !conceals { throw try await revealing(.alreadyRegistered, name, limits.verify, .verify, request) }
    if owners.isEmpty, identifier != nil, purpose == .prove, machine.record.accountRule == .existing, !conceals {
      throw try await revealing(.accountNotFound, name, limits.verify, .verify, request)
    }
    try await refuseWhileLocked(
      limits.verify(for: purpose).filter(\.key.isPersonal), hidesDisabled: hides(policy, machine.record), request)
    var fresh = StepRecord(
      provider: name, identifier: identifier, isSkippable: machine.due?.isSkippable ?? false,
      account: owners.holder.map(AccountVersion.init),
      challenge: nil)
    if !owners.claimants.isEmpty { fresh.claimants = owners.claimants.map(AccountVersion.init) }
    machine.opened(fresh)
    guard let step = machine.record.step else { throw request.refusal(.stepNotOpen) }
    var capabilities = try await makeCapabilities(provider, step, input, machine.record, id: id, request)
    capabilities.context.asked = provider.descriptor.beginFields
    let begun = capabilities.context
    let answer = try await fulfil(.begin, of: name, capabilities, request) { () async throws in
      try await provider.begin(begun, input)
    }
    switch answer {
    case .ask, .redirect, .wait:
      guard let opened = try round(after: answer, machine, by: name, id: id, request), let step = opened.record.step
      else {
        throw request.refusal(.stepNotOpen)
      }
      let required = step.redirectTo == nil ? (step.fields ?? []).filter(\.isRequired) : []
      let isComplete = !required.isEmpty && required.allSatisfy { input.fields[$0.name] != nil }
      return OpenedStep(machine: opened, step: step, isComplete: isComplete)
    case .malformed(let problem): throw request.refusal(problem)
    case .refused(let reason), .refusedAndAsked(let reason, _):
      throw request.refusal(try outcome(reason, of: name, request))
    case .proved:
      // Attack: a step that passes without an attempt would not be counted by any limit.
      throw request.refusal(.denied)
    }
  }

  /// Lets a full provider judge the input and continues the flow.
  /// - Parameter isNew: whether the same call opened the step.
  func judge(
    _ provider: any FullProvider, _ input: ProviderInput, _ step: StepRecord, _ policy: ProviderPolicy,
    _ before: FlowMachine, isNew: Bool = false,
    id: FlowID, _ request: RequestContext
  ) async throws(FlowError) -> FlowView {
    let input = try answer(input, to: step, by: provider.descriptor, request)
    let step = try await identified(step, by: provider, input, before.record)
    let capabilities = try await makeCapabilities(provider, step, input, before.record, id: id, request)
    do throws(InputProblem) { try provider.check(capabilities.context, input) } catch { throw request.refusal(error) }
    try demandFit(input, to: step, by: provider.descriptor, request)
    let place = try await hashingPlace(for: provider, capabilities.context, policy, step, before.record, request)
    switch try await judgement(
      of: provider, input, capabilities, place.hasher, step, policy, before, isNew: isNew, id: id, request)
    {
    case .proved(var proved):
      if place.isRegistration { proved.machine.countsRegistration(by: step.provider) }
      return try await finish(proved.machine, proved.changes, refunding: [proved.charged], id: id, request)
    case .waits(let machine, let refund):
      if try await keep(machine, givingBack: refund, request) {
        return try await view(of: machine.record, id: id, request)
      }
      // Another request was faster. A poll returns the flow's current state.
      guard step.wait != nil else { throw request.refusal(.stepNotOpen) }
      return try await view(of: try await load(id, request, completeToo: true).record, id: id, request)
    }
  }

  /// Charges an attempt and lets the provider judge it. Stores only the settlement of the attempt and, if a refusal
  /// asks again, the next round.
  /// - Parameter asksAgain: whether a refusal may ask again. False for a secret that comes together with a code: the
  ///   caller stores that step as it was opened.
  func judgement(
    of provider: any FullProvider, _ input: ProviderInput, _ capabilities: StepCapabilities, _ slot: (any SecretHasher)?,
    _ step: StepRecord,
    _ policy: ProviderPolicy, _ before: FlowMachine, isNew: Bool, asksAgain: Bool = true, id: FlowID,
    _ request: RequestContext
  ) async throws(FlowError) -> Judgement {
    let purpose = capabilities.context.purpose
    try await demandProof(before: purpose, before.record, request)
    let limits: StepLimits
    var candidates: [Candidate]
    if step.claimants == nil {
      let (admitted, also) = try await admit(step, policy, before, id: id, request)
      (limits, candidates) = (admitted, [Candidate(step: step, capabilities: capabilities, also: also)])
    } else {
      (limits, candidates) = try await admitClaimants(provider, input, step, policy, before, id: id, request)
    }
    let charged: Charged
    (charged, candidates) = try await charge(limits.verify(for: purpose), candidates, step, policy, before, request)
    // If a limit has disabled the credential, nothing is compared, in the same time.
    if charged.isOff { candidates = [Candidate(step: step, capabilities: capabilities.withoutAccount, also: nil)] }
    let refund = charged.settled(.refund, request)
    let answer: StepAnswer
    let candidate: Candidate
    do {
      (answer, candidate) = try await ask(provider, input, about: candidates, with: slot, request)
    } catch {
      try await settle([refund], request)
      throw error
    }
    // Attack: a code is judged right, and while its provider waits for another answer the code is used, or the secret
    // replaced or removed, in another flow. The record of the first judgement therefore counts, not the one that exists
    // when the last answer comes.
    let judged = step.judgedBy ?? StoredRecord.Judged(hash: candidate.capabilities.record)
    // A refusal ends a wait. Otherwise every further poll of a page that stays open would count as a failure.
    let isPoll = step.wait != nil
    var refused = before
    if isPoll { refused.closedStep() }
    switch asksAgain ? answer : answer.withoutNextRound {
    case .proved(let answered):
      let stored = answered.storing(candidate.capabilities.upgraded, in: purpose)
      let proof = before.record.purpose.connectsSite ? stored.identityAlone : stored
      if charged.isOff {
        try await settle([refund], request)
        // The user is authenticated, so the reason may be shown.
        throw request.refusal(.disabled)
      }
      let whose: ProofSubject
      do {
        whose = try await subject(of: proof, candidate.step, before.record, request)
      } catch {
        _ = try await failed(charged, .denied, step, refused, isNew: isNew || isPoll, id: id, request)
        throw error
      }
      return .proved(
        try await giving(back: refund, request) { () throws(FlowError) -> ProvedStep in
          if purpose == .set { try demandChangeProof(before.record, request, isJudged: true) }
          return try passing(
            charged, step, proof, judgedBy: judged, for: purpose, whose, candidate.also, nil, before, id: id, request)
        })
    case .refused(let reason):
      let outcome = try outcome(reason, of: step.provider, request)
      if !outcome.isFailure, try await isGivenBack(step, policy, before.record, request) {
        if isPoll { try await keep(refused, givingBack: refund, request) } else { try await settle([refund], request) }
        throw request.refusal(outcome)
      }
      throw try await failed(charged, RefusalCode(outcome), step, refused, isNew: isNew || isPoll, id: id, request)
    case .refusedAndAsked(let reason, let round):
      let outcome = try outcome(reason, of: step.provider, request)
      let machine = try await giving(back: refund, request) { () throws(FlowError) -> FlowMachine in
        var machine = before
        machine.isAbout(candidate.step.claimants)
        machine.waits(
          for: round.fields, showing: try seal(round.shown, for: step.provider, id: id), at: nil,
          state: try seal(round.state, for: step.provider, id: id), judgedBy: judged)
        return machine
      }
      if !outcome.isFailure, try await isGivenBack(step, policy, before.record, request) {
        try await keep(machine, givingBack: refund, request)
        throw request.refusal(outcome)
      }
      throw try await failed(charged, RefusalCode(outcome), step, machine, isNew: true, id: id, request)
    case .malformed(let problem):
      try await settle([refund], request)
      throw request.refusal(problem)
    case .ask, .redirect, .wait:
      let machine = try await giving(back: refund, request) { () throws(FlowError) -> FlowMachine? in
        var machine = before
        machine.isAbout(candidate.step.claimants)
        return try round(after: answer, machine, by: step.provider, judgedBy: judged, id: id, request)
      }
      guard let machine else { throw request.refusal(.stepNotOpen) }
      return .waits(machine, refund: refund)
    }
  }

  /// Refunds the attempt if what follows from the provider's answer is not allowed or cannot be stored.
  private func giving<Answer>(
    back refund: Change, _ request: RequestContext, _ body: () throws(FlowError) -> Answer
  ) async throws(FlowError) -> Answer {
    do {
      return try body()
    } catch {
      try await settle([refund], request)
      throw error
    }
  }

  /// The account that a proof belongs to; nil if no account has the identity yet.
  ///
  /// Attack: an identity of the attacker's own, proved in someone else's flow. If the account is known, the proved
  /// identity must belong to it. An identity without an account is joined to one only by an address that both have
  /// verified.
  private func subject(of proof: Proof, _ step: StepRecord, _ record: FlowRecord, _ request: RequestContext)
    async throws(FlowError) -> ProofSubject
  {
    if record.purpose.connectsSite,
      registry(request).descriptor(step.provider)?.identifierKinds.contains(.federated) ?? false
    {
      return try await connected(by: proof, of: step.provider, record, request)
    }
    var holders: [(identifier: Identifier, account: Account)] = []
    for identifier in proof.proved {
      if let holder = try await holder(of: identifier) { holders.append((identifier, holder)) }
    }
    if let known = record.account ?? step.account {
      guard proof.proved.isEmpty || (!holders.isEmpty && holders.allSatisfy { $0.account.id == known }) else {
        throw request.refusal(.denied)
      }
      guard let epoch = record.account == nil ? step.epoch : record.basis?.epoch else {
        throw request.refusal(.flowExpired)
      }
      return ProofSubject(account: AccountVersion(id: known, epoch: epoch), held: holders.map(\.identifier))
    }
    if let first = holders.first?.account {
      return ProofSubject(
        account: AccountVersion(first), held: holders.filter { $0.account.id == first.id }.map(\.identifier))
    }
    let confirmation = try await confirmation(of: proof, step, request)
    // Attack: the attacker signs in at the other site with an account of their own that names the victim's address, and
    // sends the victim the link that leads back. A flow that an app started therefore never asks for another account's
    // proof.
    if confirmation.confirmedBy != nil, record.isSentByApp ?? false { throw request.refusal(.alreadyRegistered) }
    return confirmation
  }

  /// The account of a flow that connects another site. The identity must be new to the account, and does not count as a
  /// factor.
  ///
  /// Attack: an identity of another account is connected with the thief's, to take that account over or to make it
  /// disappear. The identity stays where it is.
  private func connected(by proof: Proof, of provider: ProviderName, _ record: FlowRecord, _ request: RequestContext)
    async throws(FlowError)
    -> ProofSubject
  {
    guard let identity = proof.proved.first, let own = try await loadOwn(record, request) else {
      throw request.refusal(.denied)
    }
    if let holder = try await holder(of: identity), holder.id != own.id {
      throw request.refusal(
        .alreadyRegistered, detail: "This identity belongs to another account here. Nothing was changed.")
    }
    try demandUnconnected(provider, own, request)
    return ProofSubject(account: AccountVersion(own))
  }

  /// An account has at most one identity at a site: with a second one, someone else could sign in unnoticed.
  private func demandUnconnected(_ provider: ProviderName, _ account: Account, _ request: RequestContext)
    throws(FlowError)
  {
    guard account.identifiers.contains(where: { registry(request).proves($0.identifier, by: provider) }) else { return }
    throw request.refusal(.alreadySet, detail: "This site is already connected. Disconnect it first.")
  }

  /// Handles an identity without an account whose address another site has verified once but does not vouch for today.
  /// If an account holds that address, the flow asks for that account's own proof next, and joins the identity only
  /// after that.
  ///
  /// Attack: a former employee still has the account at the other site that was made with the company's address, and
  /// gets into the account of the address's current owner.
  private func confirmation(of proof: Proof, _ step: StepRecord, _ request: RequestContext) async throws(FlowError)
    -> ProofSubject
  {
    for identifier in proof.attested {
      guard let account = try await holder(of: identifier) else { continue }
      let able = registry(request).all.filter { other in
        let descriptor = other.descriptor
        return descriptor.name != step.provider && request.generation.policies[descriptor.name] != nil
          && descriptor.identifierKinds.contains(identifier.kind) && !descriptor.identifierKinds.contains(.federated)
          && isOpen(descriptor.name, to: account, in: .stepUp, request)
      }
      // A code to that very address, or the password that goes with it. Attack: a code to the account's number would
      // show the number to a stranger.
      guard let chosen = able.first(where: { $0 is any CodeProvider }) ?? able.first else {
        throw request.refusal(.alreadyRegistered)
      }
      return ProofSubject(account: AccountVersion(account), confirmedBy: chosen.descriptor.name)
    }
    return ProofSubject()
  }

  /// The hasher for a step. If the provider declares that it hashes, the permit is acquired before the attempt is
  /// charged, so that `busy` costs no attempt.
  ///
  /// Attack: an unlimited number of registrations, each of which costs a hash. If the hash is for a new account, the
  /// account is counted first, and registrations over the limit do not wait for a permit.
  func hashingPlace(
    for provider: any FullProvider, _ context: StepContext, _ policy: ProviderPolicy, _ step: StepRecord,
    _ record: FlowRecord,
    _ request: RequestContext
  ) async throws(FlowError) -> HashingGrant {
    guard provider.descriptor.hashesSecrets else {
      return HashingGrant(
        hasher: HasherOnDemand(
          hashing: hashing, address: request.client.address.countingKey, salt: salt(for: provider, context)))
    }
    guard hashing.hasRoom else { throw request.refusal(.busy) }
    var grant = HashingGrant()
    if record.makesAccount(setting: step) {
      grant.isRegistration = try await countRegistration(by: policy, step.identifier, record, request)
    }
    grant.hasher = await hashing.acquirePermit(for: request.client.address.countingKey, salt: salt(for: provider, context))
    guard grant.hasher != nil else { throw request.refusal(.busy) }
    return grant
  }

  /// Runs a full provider. An error that it throws is a fault and never a pass.
  func fulfil(
    _ call: ProviderMetrics.Call, of provider: ProviderName, _ capabilities: StepCapabilities, _ request: RequestContext,
    _ body: () async throws -> StepAnswer
  ) async throws(FlowError) -> StepAnswer {
    let start = ContinuousClock.now
    let answer: StepAnswer
    do {
      let attributes = [("moongate.provider", provider.rawValue)]
      answer = try await traced(
        "provider \(call.rawValue)", .internal, attributes, outcome: { ProviderMetrics.Outcome($0).rawValue }
      ) {
        try await body()
      }
    } catch {
      providerMetrics.record(call, of: provider, .fault, since: start)
      // Attack: a decoder's error quotes what it could not decode, such as the code that was entered.
      let fault = capabilities.redaction("\(error)")
      request.notes.note(faultDetail(fault, of: provider, in: call, at: request.now))
      logger.error(
        "a provider failed",
        metadata: ["decision": "\(request.client.decision)", "provider": "\(provider)", "fault": "\(fault)"])
      throw request.refusal(.busy)
    }
    do {
      try demandProper(answer, of: provider, request)
    } catch {
      providerMetrics.record(call, of: provider, .fault, since: start)
      request.notes.note(faultDetail(request.notes.lines["fault"] ?? "", of: provider, in: call, at: request.now))
      throw error
    }
    providerMetrics.record(call, of: provider, ProviderMetrics.Outcome(answer), since: start)
    return answer
  }

  /// Validates a provider's answer. An invalid answer is a 503 and counts as the provider's fault. Every answer is
  /// validated here and nowhere else.
  private func demandProper(_ answer: StepAnswer, of provider: ProviderName, _ request: RequestContext)
    throws(FlowError)
  {
    switch answer {
    case .ask(let fields, _, let shown): try demandAskable(fields, showing: shown, by: provider, request)
    case .redirect(let site, _): try demandSite(site, by: provider, request)
    case .wait(let interval, _, _): try demandPollable(interval, by: provider, request)
    case .refused(let reason): _ = try outcome(reason, of: provider, request)
    case .refusedAndAsked(let reason, let round):
      _ = try outcome(reason, of: provider, request)
      try demandAskable(round.fields, showing: round.shown, by: provider, request)
    case .proved(let proof):
      try demandDeclared(proof.proved + proof.attested + proof.claimed, by: provider, request)
      if let long = proof.facts.first(where: { !ProvidedFacts.fits($0.value) }) {
        throw flaw(
          "a provider reports a fact longer than 300 bytes", of: provider, request,
          ["fact": "\(long.key.prefix(48))"])
      }
      warnOfUndeclaredFacts(proof, of: provider, request)
      try demandFactor(proof.record, by: provider, request)
    case .malformed: break
    }
  }

  /// Warns about undeclared facts. They are dropped before policies see them, so the provider's author should know.
  private func warnOfUndeclaredFacts(_ proof: Proof, of provider: ProviderName, _ request: RequestContext) {
    guard !proof.facts.isEmpty else { return }
    let declared = Set((registry(request).descriptor(provider)?.facts ?? []).map(\.name))
    guard let stray = proof.facts.keys.filter({ !declared.contains($0) }).min() else { return }
    logger.warning(
      "a provider reports an undeclared fact, which is ignored",
      metadata: ["decision": "\(request.client.decision)", "provider": "\(provider)", "fact": "\(stray.prefix(48))"])
  }

  /// Checks that a provider reads and proves only identifiers of kinds that it declares.
  ///
  /// Attack: a provider of chat names, or a compromised provider program, "proves" any user's phone number.
  ///
  /// Attack: a federated provider "proves" an identity that begins with the name of another one, and so opens that
  /// provider's accounts.
  func demandDeclared(_ identifiers: [Identifier], by provider: ProviderName, _ request: RequestContext)
    throws(FlowError)
  {
    let registry = registry(request)
    let kinds = registry.descriptor(provider)?.identifierKinds ?? []
    if identifiers.contains(where: { registry.issuer(of: $0) ?? provider != provider }) {
      throw flaw("a provider names an identity of another provider", of: provider, request)
    }
    guard let stray = identifiers.first(where: { !kinds.contains($0.kind) }) else { return }
    throw flaw(
      "a provider names an identifier of a kind that it does not declare", of: provider, request,
      ["kind": "\(stray.kind.rawValue)"])
  }

  /// Checks that only a provider that declares the role `keepsFactor` stores a record.
  ///
  /// Attack: a provider that proves numbers stores a record, becomes a factor of every account, and authorises changes
  /// to them.
  private func demandFactor(_ record: Proof.Record, by provider: ProviderName, _ request: RequestContext)
    throws(FlowError)
  {
    if case .keep = record { return }
    if registry(request).descriptor(provider)?.role.contains(.keepsFactor) ?? false { return }
    throw flaw("a provider stores a record, but its role is not to keep a factor", of: provider, request)
  }

  /// The declared outcome for a provider's refusal. An undeclared reason is a fault, because its meaning for the secret
  /// is unknown.
  private func outcome(_ reason: RefusalReason, of provider: ProviderName, _ request: RequestContext) throws(FlowError)
    -> Outcome
  {
    if let outcome = registry(request).descriptor(provider)?.outcome(reason) { return outcome }
    throw flaw("a provider refused with a reason that it does not declare as an outcome", of: provider, request)
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
