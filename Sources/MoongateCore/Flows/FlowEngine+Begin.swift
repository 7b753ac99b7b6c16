import Logging
import MoongateSDK

// Opening a step: who it is for, whether a message may go, and the message.

extension FlowEngine {
  /// Opens a step.
  /// - Parameter provider: nil where the step has one choice and the client names none.
  package func begin(_ id: FlowID, provider: String?, fields: [String: InputValue], client: ClientContext) async -> Result<FlowView, Refusal> {
    await answer(client, flow: id) { visit throws(Halt) in
      let input = ProviderInput(fields: fields, defaultRegion: visit.generation.gateway.region)
      // Malformed comes before all else (exact.md, order of checks): it says nothing about the flow.
      let named = provider.flatMap(ProviderName.init(rawValue:)).flatMap { providers[$0] }
      if let code = named as? any CodeProvider { _ = try read(code, input, visit) }
      let machine = try await load(id, visit)
      guard case .offer(let choices) = machine.next else { throw visit.refusal(.stepNotOpen) }
      let chosen = provider == nil && choices.count == 1 ? providers[choices[0]] : named
      guard let chosen, choices.contains(chosen.descriptor.name), let policy = visit.generation.policies[chosen.descriptor.name] else {
        throw visit.refusal(.stepNotOpen)
      }
      if let code = chosen as? any CodeProvider {
        return try await send(code, to: try read(code, input, visit), policy, machine, id: id, visit)
      }
      guard let full = chosen as? any FullProvider else { throw visit.refusal(.stepNotOpen) }
      return try await open(full, input, policy, machine, id: id, visit)
    }
  }

  /// Sends another code for the open step; the one before it is dead.
  package func resend(_ id: FlowID, client: ClientContext) async -> Result<FlowView, Refusal> {
    await answer(client, flow: id) { visit throws(Halt) in
      let machine = try await load(id, visit)
      guard let step = machine.record.step, let identifier = step.identifier, let policy = visit.generation.policies[step.provider],
        let provider = providers[step.provider] as? any CodeProvider
      else { throw visit.refusal(.stepNotOpen) }
      return try await send(provider, to: identifier, policy, machine, id: id, visit)
    }
  }

  private func read(_ provider: any CodeProvider, _ input: ProviderInput, _ visit: Visit) throws(Halt) -> Identifier {
    do { return try provider.readIdentifier(input) } catch { throw visit.refusal(error) }
  }

  /// Sends a code, if everything allows it, and stores the step that waits for it.
  private func send(
    _ provider: any CodeProvider, to identifier: Identifier, _ policy: ProviderPolicy, _ before: FlowMachine, id: FlowID, _ visit: Visit
  ) async throws(Halt) -> FlowView {
    var machine = before
    let name = policy.provider
    let account = try await asking { () async throws(StoreFault) in try await store.account(holding: identifier) }
    if account?.isLocked ?? false { throw visit.refusal(.disabled) }
    // Attack: a second step passed with an identifier of the attacker's own. A step of a known account is for what it holds.
    if let bound = machine.record.account, account?.id != bound { throw visit.refusal(.denied) }
    let conceals = policy.unknownAccount == .conceal
    let open = machine.record.step.flatMap { $0.provider == name && $0.identifier == identifier ? $0 : nil }
    let subject = StepSubject(
      provider: name, identifier: identifier, account: account?.id, conceals: conceals, flow: id.hash, challenge: nil, address: visit.client.address)
    let facts = facts(machine.record, subject: subject, account: account, visit)
    let expiredAt = open?.challenge.map(\.expiresAt).flatMap { visit.now >= $0 ? $0 : nil }
    let limits = try limits(policy, subject, facts: facts, expiredAt: expiredAt, visit)

    let isKnown = account != nil
    let isWanted = machine.record.accountRule == .any || isKnown == (machine.record.accountRule == .existing) || machine.record.account != nil
    if !isWanted, !conceals {
      // It tells who is registered: so it costs the address that asks.
      visit.decided(by: "unknown_account", of: name)
      let perAddress = limits.send.filter { $0.key == .ip }
      let reservation = try await charge(perAddress, for: .send, timer: nil, visit)
      try await settle([.settle(Settlement(reservation: reservation.id, outcome: .success, limits: perAddress, timer: nil, now: visit.now))], visit)
      throw visit.refusal(isKnown ? .alreadyRegistered : .accountNotFound)
    }

    if let first = try await judge(.send, by: policy, limits, facts: facts, account: account, visit) {
      // That step first. It is for a person who is known in this flow already: a number alone proves nobody.
      guard machine.record.account != nil else { throw visit.refusal(.denied) }
      machine.requireNext(first)
      return try await store(machine, [], id: id, visit)
    }
    try await refuseWhileLocked(limits.verify.filter(\.key.isPersonal), visit)

    let charged = try await charge(limits.send, for: .send, timer: limits.timer, visit)
    let settlement = { (outcome: Settlement.Outcome) in
      Change.settle(Settlement(reservation: charged.id, outcome: outcome, limits: limits.send, timer: limits.timer, now: visit.now))
    }
    let texts = machine.record.codes[name] ?? CodeTexts(policy)
    let code = texts.rule.make(from: random)
    // Nobody is told the code of an unknown person whom the policy conceals: no answer to it can be right.
    let reaches = isWanted || isKnown
    let mac =
      reaches
      ? keys.codeMAC(code, flow: id.hash, provider: name.rawValue, identifier: identifier.value, purpose: machine.record.name) : random.bytes(32)
    let challenge = Challenge(mac: mac, issuedAt: visit.now, expiresAt: visit.now + texts.rule.lifetime, rule: texts.rule)
    let step = StepRecord(
      provider: name, identifier: identifier, isSkippable: machine.due?.isSkippable ?? false, account: account?.id, challenge: challenge)
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

  /// The delivery itself; it answers with what went wrong.
  private func deliverer(
    _ provider: any CodeProvider, _ code: String, _ texts: CodeTexts, _ identifier: Identifier, _ visit: Visit
  ) -> @Sendable () async -> DeliveryFault? {
    let gateway = visit.generation.gateway
    let message = CodeMessage(
      code: code, text: texts.text(code: code, service: gateway.service), domainBoundLine: "@\(gateway.publicURL.host) #\(code)",
      service: gateway.service)
    let messenger = messenger(for: provider, visit)
    return { () async in
      guard let messenger else { return DeliveryFault(reason: "gateway.lua names no way for its messages to leave") }
      do throws(DeliveryFault) {
        try await provider.deliver(message, to: identifier, by: messenger)
        return nil
      } catch {
        return error
      }
    }
  }

  /// The way that gateway.lua names for a provider's messages.
  func messenger(for provider: any Provider, _ visit: Visit) -> (any Messenger)? {
    let settings = visit.generation.gateway.providers[provider.descriptor.name]
    let names = provider.descriptor.settings.compactMap { if case .messages = $0.kind { $0.name } else { nil } }
    return names.lazy.compactMap { settings?.deliveries[$0] }.first.map(delivery.messenger(for:))
  }

  /// Opens the step of a provider that verifies by itself.
  private func open(
    _ provider: any FullProvider, _ input: ProviderInput, _ policy: ProviderPolicy, _ before: FlowMachine, id: FlowID, _ visit: Visit
  ) async throws(Halt) -> FlowView {
    var machine = before
    let identifier: Identifier?
    do throws(InputProblem) { identifier = try provider.readIdentifier(input) } catch { throw visit.refusal(error) }
    var account = try await loadAccount(machine.record.account)
    if let identifier {
      let holder = try await asking { () async throws(StoreFault) in try await store.account(holding: identifier) }
      if let bound = account, holder?.id != bound.id { throw visit.refusal(.denied) }
      account = holder
    }
    if account?.isLocked ?? false { throw visit.refusal(.disabled) }
    let subject = StepSubject(
      provider: policy.provider, identifier: identifier, account: account?.id, conceals: policy.unknownAccount == .conceal, flow: id.hash,
      challenge: nil, address: visit.client.address)
    let facts = facts(machine.record, subject: subject, account: account, visit)
    let limits = try limits(policy, subject, facts: facts, expiredAt: nil, visit)
    try await refuseWhileLocked(limits.verify.filter(\.key.isPersonal), visit)
    let step = StepRecord(
      provider: policy.provider, identifier: identifier, isSkippable: machine.due?.isSkippable ?? false, account: account?.id, challenge: nil)
    machine.opened(step)
    let context = try await context(provider, step, machine.record, visit)
    switch try await fulfil(visit, { () async throws in try await provider.begin(context, input) }) {
    case .ask(_, let state), .redirect(_, let state):
      machine.keeps(state)
      return try await store(machine, [.audit(event(.flowBegun, visit, record: machine.record, id: id, step: step))], id: id, visit)
    case .malformed(let problem): throw visit.refusal(problem)
    case .refused(let reason): throw visit.refusal(RefusalCode(reason))
    case .proved:
      // Attack: a step that passes without a try would be a step that no limit counts.
      throw visit.refusal(.denied)
    }
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
  func context(_ provider: any FullProvider, _ step: StepRecord, _ record: FlowRecord, _ visit: Visit) async throws(Halt) -> StepContext {
    var account: StepAccount?
    if let id = step.account ?? record.account {
      let sealed = try await asking { () async throws(StoreFault) in try await store.providerRecord(of: id, for: step.provider) }
      do {
        account = StepAccount(id: id, record: try sealed.map { try keys.open($0, for: "\(step.provider) \(id)") })
      } catch {
        throw .store(StoreFault("the record of \(step.provider) for \(id) cannot be opened: it was changed, or sealed under another key"))
      }
    }
    let settings = visit.generation.gateway.providers[step.provider]
    return StepContext(
      flow: record.name, purpose: .prove, account: account, identifier: step.identifier, state: step.state, now: visit.now.milliseconds,
      callback: nil,
      tools: StepTools(
        randomBytes: { [random] in random.bytes($0) },
        settings: StepSettings(
          texts: settings?.texts ?? [:], secrets: (settings?.secrets ?? [:]).mapValues { secret in { @Sendable in secret.reveal() } }),
        web: web, messenger: messenger(for: provider, visit)))
  }
}
