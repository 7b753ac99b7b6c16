import Logging
import MoongateSDK

// Opening a step of a code provider: who it is for, whether a message may go, and the message.

extension FlowEngine {
  /// Opens a step. A full provider is judged at once where the input holds all that it asks for.
  /// - Parameter provider: nil where the client names none: the step has one choice, or one that the fields fit.
  package func begin(_ id: FlowID, provider: String?, fields: [String: InputValue], client: ClientContext) async -> Result<FlowView, Refusal> {
    await answer(client, flow: id) { visit throws(Halt) in
      visit.notes.note("act", LimitAction.send.rawValue)
      let sent = ProviderInput(fields: fields, defaultRegion: visit.generation.gateway.region)
      let named = provider.flatMap(ProviderName.init(rawValue:)).flatMap { registry(visit)[$0] }
      var input = named.map { sent.declared(by: $0.descriptor) } ?? sent
      let (machine, said) = try await load(id, for: named, input, visit)
      try demandChangeProof(machine.record, visit)
      guard case .offer(let choices) = machine.next else { throw visit.refusal(.stepNotOpen) }
      let chosen = provider == nil ? meant(of: choices, input, visit) : named
      guard let chosen, choices.contains(chosen.descriptor.name), let policy = visit.generation.policies[chosen.descriptor.name] else {
        throw visit.refusal(.stepNotOpen)
      }
      input = sent.declared(by: chosen.descriptor)
      if let code = chosen as? any CodeProvider {
        let own = try await loadOwn(machine.record, visit)
        let identifier = try recipient(of: code, said, input, machine.record, own, visit)
        return try await send(code, to: identifier, policy, machine, of: own, isBegin: true, id: id, visit)
      }
      guard let full = chosen as? any FullProvider else { throw visit.refusal(.stepNotOpen) }
      return try await open(full, input, policy, machine, id: id, visit)
    }
  }

  /// Sends another code for the open step; the one before it is dead.
  package func resend(_ id: FlowID, client: ClientContext) async -> Result<FlowView, Refusal> {
    await answer(client, flow: id) { visit throws(Halt) in
      visit.notes.note("act", LimitAction.send.rawValue)
      let machine = try await load(id, visit)
      guard let step = machine.record.step, let identifier = step.identifier, let policy = visit.generation.policies[step.provider],
        let provider = registry(visit)[step.provider] as? any CodeProvider
      else { throw visit.refusal(.stepNotOpen) }
      try demandChangeProof(machine.record, visit)
      let own = try await loadOwn(machine.record, visit)
      return try await send(provider, to: identifier, policy, machine, of: own, id: id, visit)
    }
  }

  /// The provider that is meant where none is named: the only choice, or the only one that the input has something for.
  private func meant(of choices: [ProviderName], _ input: ProviderInput, _ visit: Visit) -> (any Provider)? {
    let able = choices.compactMap { registry(visit)[$0] }
    if able.count == 1 { return able[0] }
    let fitting = able.filter { provider in provider.descriptor.beginFields.contains { $0.isRequired && input.fields[$0.name] != nil } }
    return fitting.count == 1 ? fitting[0] : nil
  }

  /// The flow, and whom the input names. Malformed comes before all else (exact.md, order of checks): it says nothing about the flow.
  private func load(
    _ id: FlowID, for named: (any Provider)?, _ input: ProviderInput, _ visit: Visit
  ) async throws(Halt) -> (FlowMachine, said: Identifier?) {
    if let full = named as? any FullProvider {
      do throws(InputProblem) { _ = try full.readIdentifier(input) } catch { throw visit.refusal(error) }
    }
    guard let code = named as? any CodeProvider else { return (try await load(id, visit), nil) }
    let said = code.isNamed(in: input) ? try read(code, input, visit) : nil
    do {
      return (try await load(id, visit), said)
    } catch {
      // Whom a code is for may be left unsaid in an account's own flow, and only there.
      if case .refused(let refusal) = error, refusal.code != .unauthenticated { _ = try read(code, input, visit) }
      throw error
    }
  }

  private func read(_ provider: any CodeProvider, _ input: ProviderInput, _ visit: Visit) throws(Halt) -> Identifier {
    let identifier: Identifier
    do { identifier = try provider.readIdentifier(input) } catch { throw visit.refusal(error) }
    try demandDeclared([identifier], by: provider.descriptor.name, visit)
    return identifier
  }

  /// Whom a code is for: who was named; where nobody was, the account's own address or number, or the one that the flow was told before.
  /// - Parameter said: who was named, where that has been read already.
  private func recipient(
    of provider: any CodeProvider, _ said: Identifier?, _ input: ProviderInput, _ record: FlowRecord, _ own: Account?, _ visit: Visit
  ) throws(Halt) -> Identifier {
    if let said { return said }
    let kinds = provider.descriptor.identifierKinds
    let isGiven = record.purpose.newIdentifier.map(kinds.contains) ?? false
    if isGiven || provider.isNamed(in: input) { return try read(provider, input, visit) }
    if let own {
      // What was said in this flow before: an address that another site has attested is confirmed at that very address.
      let said = record.proved.last { proved in
        kinds.contains(proved.kind) && own.identifiers.contains { $0.identifier == proved && $0.verifiedAt != nil && record.purpose.accepts($0) }
      }
      if let said { return said }
      if let meant = meant(of: kinds, in: own, for: record.purpose, visit) { return meant }
      throw nothingToProve(kinds, own, record.purpose, visit)
    }
    if let claimed = record.gathered.claimed.first(where: { kinds.contains($0.kind) }) { return claimed }
    return try read(provider, input, visit)
  }

  /// The account has nothing of these kinds that could be proved here.
  private func nothingToProve(_ kinds: [IdentifierKind], _ own: Account, _ purpose: FlowPurpose, _ visit: Visit) -> Halt {
    if purpose.isReset { return resetRefusal(kinds, own, visit) }
    return own.identifiers.contains { kinds.contains($0.identifier.kind) && $0.verifiedAt != nil }
      ? visit.refusal(.alreadySet, detail: "This is verified already.")
      : visit.refusal(.denied, detail: "There is no address or number here that a code could go to.")
  }

  /// Sends a code, if everything allows it, and stores the step that waits for it.
  /// - Parameters:
  ///   - own: the account that the flow is known to be of.
  ///   - isBegin: whether the step is begun by it, and counted as begun.
  private func send(
    _ provider: any CodeProvider, to identifier: Identifier, _ policy: ProviderPolicy, _ before: FlowMachine, of own: Account?,
    isBegin: Bool = false, id: FlowID, _ visit: Visit
  ) async throws(Halt) -> FlowView {
    var machine = before
    let name = policy.provider
    let purpose = machine.record.purpose
    let found =
      own == nil && purpose.recoveredProvider != nil
      ? try await recoverable(by: identifier, in: purpose, visit) : IdentifierOwners(holder: try await holder(of: identifier))
    let account = own ?? found.only
    try demandUnlocked(account, policy, machine.record, visit)
    try demandRight(to: identifier, of: own, machine.record, visit)
    let conceals = policy.unknownAccount == .conceal
    let open = machine.record.step.flatMap { $0.provider == name && $0.identifier == identifier ? $0 : nil }
    let hides = hides(policy, machine.record)
    var subject = subject(
      policy, identifier, account: counted(identifier, (own ?? found.holder)?.id, machine.record), claimants: found.claimants.map(\.id),
      flow: id.hash, visit)
    // Attack: accounts that claim strangers' addresses, each with a device that knows it. Only what the account has verified is sent to without ceilings.
    subject.isTrusted = subject.isTrusted && account?.identifiers.contains { $0.identifier == identifier && $0.verifiedAt != nil } ?? false
    let facts = facts(machine.record, subject: subject, account: account, visit)
    let expiredAt = open?.challenge.map(\.expiresAt).flatMap { visit.now >= $0 ? $0 : nil }
    let limits = try limits(policy, subject, facts: facts, expiredAt: expiredAt, visit)
    if isBegin { try await count(limits.begin, as: .begin, visit) }

    let isTaken = own.map { own in found.holder.map { $0.id != own.id } ?? false && !purpose.joinsAccounts }
    let isKnown = !found.isEmpty
    let isWanted = isTaken.map { !$0 } ?? (machine.record.accountRule == .any || isKnown == (machine.record.accountRule == .existing))
    if !isWanted, !conceals { throw try await revealing(isKnown ? .alreadyRegistered : .accountNotFound, name, limits.send, .send, visit) }

    if let first = try await judge(.send, by: policy, limits, facts: facts, account: account, visit) {
      // That step first. It is for a person who is known in this flow already: a number alone proves nobody.
      guard machine.record.account != nil else { throw visit.refusal(.denied) }
      machine.requireNext(first)
      return try await store(machine, [], id: id, visit)
    }
    let isOff = try await refuseWhileLocked(limits.verify.filter(\.key.isPersonal), hidesDisabled: hides, visit)

    let charged = try await charge(limits.send, for: .send, timer: limits.timer, hidesDisabled: hides, visit)
    let settlement = { (outcome: Settlement.Outcome) in charged.settled(outcome, timer: limits.timer, visit) }
    let texts = machine.record.codes[name] ?? CodeTexts(policy)
    let code = texts.rule.make(from: random)
    // Nobody is told the code of an unknown person whom the policy conceals, or of one whom a limit has turned off: no answer to it can be right.
    let reaches = (isWanted || isKnown) && !isOff && !charged.isOff
    // Both are made, whichever is kept: the same work for the same time.
    let answerable = keys.codeMAC(
      code, flow: id.hash, provider: name.rawValue, identifier: identifier.value, purpose: machine.record.name)
    let unanswerable = random.bytes(answerable.count)
    let challenge = Challenge(
      mac: reaches ? answerable : unanswerable, issuedAt: visit.now, expiresAt: visit.now + texts.rule.lifetime, rule: texts.rule)
    var step = StepRecord(
      provider: name, identifier: identifier, isSkippable: machine.due?.isSkippable ?? false,
      account: (own ?? found.holder).map(AccountVersion.init), challenge: challenge)
    if let own, let holder = found.holder, holder.id != own.id { step.holder = AccountVersion(holder) }
    if !found.claimants.isEmpty { step.claimants = found.claimants.map(AccountVersion.init) }
    machine.opened(step)
    let deliver = deliverer(provider, code, texts, identifier, visit)
    var changes = [settlement(.success), .audit(event(.codeSent, visit, record: machine.record, id: id, step: step))]
    if conceals {
      let view = try await store(machine, changes, id: id, visit)
      let failed = event(.deliveryFailed, visit, record: machine.record, id: id, step: step)
      let started =
        !reaches
        || deliveries.start { [audit, logger] in
          if let fault = await deliver() {
            var failed = failed
            failed.detail["fault"] = fault.reason
            audit.record(failed)
            logger.error("a code could not be delivered", metadata: ["provider": "\(name)", "fault": "\(fault.reason)"])
          }
        }
      if !started { audit.record(failed) }
      return view
    }
    if let fault = await deliver() {
      var failed = event(.deliveryFailed, visit, record: machine.record, id: id, step: step)
      failed.detail["fault"] = fault.reason
      logger.error("a code could not be delivered", metadata: ["provider": "\(name)", "fault": "\(fault.reason)"])
      changes = [settlement(.refundPerson), .audit(failed)]
      try await settle(changes, visit)
      throw visit.refusal(.deliveryFailed)
    }
    return try await store(machine, changes, id: id, visit)
  }

  /// Attack: a second step passed with an identifier of the attacker's own. A step of a known account is for what it holds, except for
  /// the one that it is to be given; a step beside a claimed address is for that one.
  private func demandRight(to identifier: Identifier, of own: Account?, _ record: FlowRecord, _ visit: Visit) throws(Halt) {
    guard let own else {
      let claimed = record.gathered.claimed.filter { $0.kind == identifier.kind }
      guard claimed.isEmpty || claimed.contains(identifier) else { throw visit.refusal(.denied) }
      return
    }
    let held = own.identifiers.first { $0.identifier == identifier }
    switch record.purpose {
    case .join(let kind) where identifier.kind == kind:
      if own.identifiers.contains(where: { $0.identifier.kind == kind && $0.verifiedAt != nil }) {
        throw visit.refusal(.alreadySet, detail: "There is a phone number here already. Change it instead.")
      }
    case .change(let kind) where identifier.kind == kind: break
    default:
      guard let held else { throw visit.refusal(.denied) }
      // Attack: a factor that the account requires, passed by a code to an address that was only claimed.
      guard record.purpose.accepts(held), record.due?.requirement == nil || held.verifiedAt != nil else {
        throw nothingToProve([identifier.kind], own, record.purpose, visit)
      }
      if record.purpose.isReset, let until = own.isTooNewUntil(held, visit.generation.accounts, at: visit.now) {
        throw visit.refusal(.identifierTooNew, until: until)
      }
    }
  }

  /// Refuses with what tells who is registered: so it costs the address that asks.
  func revealing(
    _ code: RefusalCode, _ provider: ProviderName, _ limits: [ResolvedLimit], _ action: LimitAction, _ visit: Visit
  ) async throws(Halt) -> Halt {
    visit.decided(by: "unknown_account", of: provider)
    let perAddress = limits.filter { $0.key == .ip }
    let reservation = try await charge(perAddress, for: action, timer: nil, visit)
    // A limit of failures counts it too: to ask who is registered is a try that went wrong.
    let outcome: Settlement.Outcome = action == .send ? .success : .failure
    try await settle([.settle(Settlement(reservation: reservation.id, outcome: outcome, limits: perAddress, timer: nil, now: visit.now))], visit)
    return visit.refusal(code)
  }

  /// The delivery itself; it answers with what went wrong.
  private func deliverer(
    _ provider: any CodeProvider, _ code: String, _ texts: CodeTexts, _ identifier: Identifier, _ visit: Visit
  ) -> @Sendable () async -> DeliveryFault? {
    let gateway = visit.generation.gateway
    let message = CodeMessage(
      code: code, text: texts.text(code: code, service: gateway.service), domainBoundLine: "@\(gateway.publicURL.host) #\(code)",
      service: gateway.service)
    let redaction = redaction(of: provider.descriptor.name, nil, [identifier], code: message, visit)
    let tools = tools(for: provider, redaction, visit)
    let name = provider.descriptor.name
    return { [providerMetrics] () async in
      let start = ContinuousClock.now
      do throws(DeliveryFault) {
        try await provider.deliver(message, to: identifier, with: tools)
        providerMetrics.record(.deliver, of: name, .delivered, since: start)
        return nil
      } catch {
        providerMetrics.record(.deliver, of: name, .fault, since: start)
        // It goes into the log and the audit trail.
        return DeliveryFault(reason: redaction(error.reason))
      }
    }
  }

  /// The way that gateway.lua names for a provider's messages.
  func messenger(for provider: any Provider, _ visit: Visit) -> (any Messenger)? {
    let settings = visit.generation.gateway.providers[provider.descriptor.name]
    let names = provider.descriptor.settings.compactMap { if case .messages = $0.kind { $0.name } else { nil } }
    return names.lazy.compactMap { settings?.deliveries[$0] }.first.map(delivery.messenger(for:))
  }
}

extension CodeProvider {
  /// Whether the input says whom the code is for.
  func isNamed(in input: ProviderInput) -> Bool { descriptor.beginFields.contains { $0.isRequired && input.fields[$0.name] != nil } }
}
