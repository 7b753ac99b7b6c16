import Logging
import MoongateSDK

// Steps of providers that verify by themselves: opening one, what it is lent, and its judgement. The core charges, they compare.

/// A step that is open, and whether what its provider asks for is there already.
struct OpenedStep: Sendable {
  var machine: FlowMachine
  let step: StepRecord
  let isComplete: Bool
}

/// A step that was found to be right. Nothing of it is stored yet.
struct ProvedStep: Sendable {
  var machine: FlowMachine
  var changes: [Change]
  let charged: Charged
}

/// What came of a full provider's judgement that is not a refusal.
enum Judgement: Sendable {
  case proved(ProvedStep)
  /// It asks for something more: the try is given back.
  case waits(FlowMachine, refund: Change)
}

extension FlowEngine {
  /// Opens the step of a full provider; judges it at once where the input holds all that it asks for.
  func open(
    _ provider: any FullProvider, _ input: ProviderInput, _ policy: ProviderPolicy, _ before: FlowMachine, id: FlowID, _ visit: Visit
  ) async throws(Halt) -> FlowView {
    let opened = try await opening(provider, input, policy, before, id: id, visit)
    guard opened.isComplete else {
      return try await store(
        opened.machine, [.audit(event(.flowBegun, visit, record: opened.machine.record, id: id, step: opened.step))], id: id, visit)
    }
    return try await judge(provider, input, opened.step, policy, opened.machine, isNew: true, id: id, visit)
  }

  /// Opens the step, without storing it.
  func opening(
    _ provider: any FullProvider, _ input: ProviderInput, _ policy: ProviderPolicy, _ before: FlowMachine, id: FlowID, _ visit: Visit
  ) async throws(Halt) -> OpenedStep {
    var machine = before
    let name = policy.provider
    let purpose = machine.record.purpose.step(of: name)
    try demandProof(before: purpose, machine.record, visit)
    let identifier: Identifier?
    do throws(InputProblem) { identifier = try provider.readIdentifier(input) } catch { throw visit.refusal(error) }
    let own = try await loadAccount(machine.record.account)
    var account = own
    var isTaken = false
    if let identifier {
      if let own {
        guard own.identifiers.contains(where: { $0.identifier == identifier }) else { throw visit.refusal(.denied) }
      } else if purpose == .set {
        // Whoever has the address already has no part in what is being made.
        isTaken = try await holder(of: identifier) != nil && machine.record.accountRule == .new
      } else {
        account = try await owner(of: identifier, claimedWith: name, visit)
      }
    }
    if account?.isLocked ?? false { throw visit.refusal(.disabled) }
    let conceals = policy.unknownAccount == .conceal
    let subject = subject(policy, identifier, account: account?.id, flow: id.hash, visit)
    let facts = facts(machine.record, subject: subject, account: account, visit)
    let limits = try limits(policy, subject, facts: facts, expiredAt: nil, visit)
    if isTaken, !conceals { throw try await revealing(.alreadyRegistered, name, limits.verify, .verify, visit) }
    if account == nil, identifier != nil, purpose == .prove, machine.record.accountRule == .existing, !conceals {
      throw try await revealing(.accountNotFound, name, limits.verify, .verify, visit)
    }
    try await refuseWhileLocked(limits.verify(for: purpose).filter(\.key.isPersonal), visit)
    machine.opened(
      StepRecord(provider: name, identifier: identifier, isSkippable: machine.due?.isSkippable ?? false, account: account?.id, challenge: nil))
    guard let step = machine.record.step else { throw visit.refusal(.stepNotOpen) }
    let context = try await context(provider, step, machine.record, id: id, visit)
    switch try await fulfil(visit, { () async throws in try await provider.begin(context, input) }) {
    case .ask(let fields, let state):
      machine.waits(for: fields, at: nil, state: try seal(state, for: name, id: id))
      let required = fields.filter(\.isRequired)
      let isComplete = !required.isEmpty && required.allSatisfy { input.fields[$0.name] != nil }
      return OpenedStep(machine: machine, step: machine.record.step ?? step, isComplete: isComplete)
    case .redirect(let site, let state):
      machine.waits(for: nil, at: site, state: try seal(state, for: name, id: id))
      return OpenedStep(machine: machine, step: machine.record.step ?? step, isComplete: false)
    case .malformed(let problem): throw visit.refusal(problem)
    case .refused(let reason): throw visit.refusal(RefusalCode(reason))
    case .proved:
      // Attack: a step that passes without a try would be a step that no limit counts.
      throw visit.refusal(.denied)
    }
  }

  /// Lets a full provider judge, and carries on.
  /// - Parameter isNew: whether the step was opened by the same call.
  func judge(
    _ provider: any FullProvider, _ input: ProviderInput, _ step: StepRecord, _ policy: ProviderPolicy, _ before: FlowMachine, isNew: Bool = false,
    id: FlowID, _ visit: Visit
  ) async throws(Halt) -> FlowView {
    let context = try await context(provider, step, before.record, id: id, visit)
    do throws(InputProblem) { try provider.check(context, input) } catch { throw visit.refusal(error) }
    let slot = try hashingSlot(for: provider, visit)
    switch try await judgement(
      of: provider, input, context.lending(slot), step, policy, before, isNew: isNew, id: id, visit)
    {
    case .proved(let proved): return try await finish(proved.machine, proved.changes, refunding: [proved.charged], id: id, visit)
    case .waits(let machine, let refund): return try await store(machine, [refund], id: id, visit)
    }
  }

  /// Charges a try and lets the provider judge it. Nothing but the try's settlement is stored.
  func judgement(
    of provider: any FullProvider, _ input: ProviderInput, _ context: StepContext, _ step: StepRecord, _ policy: ProviderPolicy,
    _ before: FlowMachine,
    isNew: Bool, id: FlowID, _ visit: Visit
  ) async throws(Halt) -> Judgement {
    try demandProof(before: context.purpose, before.record, visit)
    let (limits, also) = try await admit(step, policy, before, id: id, visit)
    let charged = try await charge(limits.verify(for: context.purpose), for: .verify, timer: nil, visit)
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
      let account: String?
      do {
        account = try await subject(of: proof, step, before.record, visit)
      } catch {
        _ = try await failed(charged, .denied, step, before, isNew: isNew, id: id, visit)
        throw error
      }
      return .proved(try passing(charged, step, proof, for: context.purpose, account, also, nil, before, id: id, visit))
    case .refused(let reason) where reason.isGivenBack:
      try await settle([refund], visit)
      throw visit.refusal(RefusalCode(reason))
    case .refused(let reason): throw try await failed(charged, RefusalCode(reason), step, before, isNew: isNew, id: id, visit)
    case .malformed(let problem):
      try await settle([refund], visit)
      throw visit.refusal(problem)
    case .ask(let fields, let state):
      var machine = before
      machine.waits(for: fields, at: nil, state: try seal(state, for: step.provider, id: id))
      return .waits(machine, refund: refund)
    case .redirect(let site, let state):
      var machine = before
      machine.waits(for: nil, at: site, state: try seal(state, for: step.provider, id: id))
      return .waits(machine, refund: refund)
    }
  }

  /// The account that a proof is about; nil where it is nobody's yet.
  ///
  /// Attack: an identity of the attacker's own, proved in a flow of somebody else. Where the account is known, what was proved must be
  /// the account's; an identity that is nobody's is joined to an account only by an address that both have proved.
  private func subject(of proof: Proof, _ step: StepRecord, _ record: FlowRecord, _ visit: Visit) async throws(Halt) -> String? {
    var holders: [String] = []
    for identifier in proof.proved { if let holder = try await holder(of: identifier) { holders.append(holder.id) } }
    if let known = record.account ?? step.account {
      guard proof.proved.isEmpty || (!holders.isEmpty && holders.allSatisfy { $0 == known }) else { throw visit.refusal(.denied) }
      return known
    }
    return holders.first
  }

  /// A place to hash in, where the provider needs one. Taken before the charge: `busy` costs nobody a try.
  func hashingSlot(for provider: any FullProvider, _ visit: Visit) throws(Halt) -> (any SecretHasher)? {
    guard provider.descriptor.hashesSecrets else { return nil }
    guard let slot = hashing.slot() else { throw visit.refusal(.busy) }
    return slot
  }

  /// Runs a full provider; whatever it throws is a fault, never a pass.
  func fulfil(_ visit: Visit, _ body: () async throws -> StepAnswer) async throws(Halt) -> StepAnswer {
    do {
      return try await body()
    } catch {
      logger.error("a provider failed", metadata: ["decision": "\(visit.client.decision)", "fault": "\(error)"])
      throw visit.refusal(.busy)
    }
  }

  /// What a full provider is given.
  func context(_ provider: any FullProvider, _ step: StepRecord, _ record: FlowRecord, id: FlowID, _ visit: Visit) async throws(Halt) -> StepContext {
    let name = step.provider
    var account: StepAccount?
    if let known = try await loadAccount(step.account ?? record.account) {
      let sealed = try await asking { () async throws(StoreFault) in try await store.providerRecord(of: known.id, for: name) }
      do {
        account = StepAccount(
          id: known.id, record: try sealed.map { try keys.open($0, for: "\(name) \(known.id)") }, identifiers: known.identifiers.map(\.identifier),
          names: [known.firstName, known.lastName].compactMap(\.self))
      } catch {
        throw .store(StoreFault("the record of \(name) for \(known.id) cannot be opened: it was changed, or sealed under another key"))
      }
    }
    let settings = visit.generation.gateway.providers[name]
    return StepContext(
      flow: record.name, purpose: record.purpose.step(of: name), account: account, identifier: step.identifier,
      state: try unseal(step.state, for: name, id: id), now: visit.now.milliseconds, callback: try callback(name, id: id, visit),
      tools: StepTools(
        randomBytes: { [random] in random.bytes($0) },
        settings: StepSettings(
          texts: settings?.texts ?? [:], secrets: (settings?.secrets ?? [:]).mapValues { secret in { @Sendable in secret.reveal() } }),
        web: web, messenger: messenger(for: provider, visit)))
  }

  /// Seals what a provider wants back while its flow waits.
  func seal(_ state: [UInt8], for provider: ProviderName, id: FlowID) throws(Halt) -> [UInt8] {
    guard !state.isEmpty else { return [] }
    do { return try keys.seal(state, for: owner(provider, id)) } catch { throw .store(StoreFault("the state of \(provider) could not be sealed")) }
  }

  /// Opens what `seal` closed.
  func unseal(_ sealed: [UInt8], for provider: ProviderName, id: FlowID) throws(Halt) -> [UInt8] {
    guard !sealed.isEmpty else { return [] }
    do { return try keys.open(sealed, for: owner(provider, id)) } catch { throw .store(StoreFault("the state of \(provider) cannot be opened")) }
  }

  private func owner(_ provider: ProviderName, _ id: FlowID) -> String { "flow \(Base64URL.encode(id.hash.bytes)) \(provider)" }
}

extension StepLimits {
  /// The limits that a step of the purpose is charged against. Setting a secret guesses nothing, and a locked PIN can be reset: it counts by
  /// address only.
  func verify(for purpose: StepPurpose) -> [ResolvedLimit] { purpose == .set ? verify.filter { !$0.key.isPersonal } : verify }
}

extension StepContext {
  /// The same, with a place to hash in.
  func lending(_ hasher: (any SecretHasher)?) -> StepContext {
    StepContext(
      flow: flow, purpose: purpose, account: account, identifier: identifier, state: state, now: now, callback: callback,
      tools: StepTools(
        randomBytes: tools.randomBytes, settings: tools.settings, hasher: hasher, web: tools.web, messenger: tools.messenger))
  }

  /// The same, as it is before anybody is proved: what the account is called is nobody's to know.
  var anonymous: StepContext {
    StepContext(
      flow: flow, purpose: purpose, account: account.map { StepAccount(id: $0.id, record: nil) }, identifier: identifier, state: state, now: now,
      callback: callback, tools: tools)
  }
}

extension RefusalReason {
  /// Whether it says nothing about a secret, so that the try is given back.
  var isGivenBack: Bool {
    switch self {
    case .alreadySet, .noPIN, .oauthCancelled: true
    case .invalidCode, .invalidPIN, .invalidPassword, .oauthFailed: false
    }
  }
}
