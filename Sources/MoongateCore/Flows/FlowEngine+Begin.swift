import MoongateSDK

// Begins a step of a code provider and determines the recipient. `FlowEngine+Sending` sends the message.

extension FlowEngine {
  /// Begins a step. A full provider judges it at once if the input holds everything that it asks for.
  /// - Parameter provider: nil if the client names none. The step must then have one choice, or one that matches the
  ///   fields.
  package func begin(_ id: FlowID, provider: String?, fields: [String: InputValue], client: ClientContext) async
    -> Result<FlowView, Refusal>
  {
    await answer(client, flow: id) { request throws(FlowError) in
      request.notes.note("act", LimitAction.send.rawValue)
      let sent = ProviderInput(fields: fields, defaultRegion: request.generation.gateway.region)
      let named = provider.flatMap(ProviderName.init(rawValue:)).flatMap { registry(request)[$0] }
      var input = named.map { sent.declared(by: $0.descriptor) } ?? sent
      let (machine, said) = try await load(id, for: named, input, request)
      try demandChangeProof(machine.record, request)
      guard case .offer = machine.next, let due = machine.due else { throw request.refusal(.stepNotOpen) }
      let choices = beginnable(due, request)
      let chosen = provider == nil ? meant(of: choices, input, request) : named
      guard let chosen, let policy = request.generation.policies[chosen.descriptor.name] else {
        throw request.refusal(.stepNotOpen)
      }
      if let code = chosen as? any CodeProvider, let step = machine.record.step,
        isSwitch(to: policy.provider, from: step, machine.record, request)
      {
        return try await switchSender(to: code, policy, said, step, machine, id: id, request)
      }
      guard choices.contains(policy.provider) else { throw request.refusal(.stepNotOpen) }
      input = sent.declared(by: chosen.descriptor)
      if let code = chosen as? any CodeProvider {
        let own = try await loadOwn(machine.record, request)
        let identifier = try recipient(of: code, said, input, machine.record, own, request)
        return try await send(code, to: identifier, policy, machine, of: own, isBegin: true, id: id, request)
      }
      guard let full = chosen as? any FullProvider else { throw request.refusal(.stepNotOpen) }
      return try await open(full, input, policy, machine, id: id, request)
    }
  }

  /// Sends another code for the open step. The previous code stops working.
  package func resend(_ id: FlowID, client: ClientContext) async -> Result<FlowView, Refusal> {
    await answer(client, flow: id) { request throws(FlowError) in
      request.notes.note("act", LimitAction.send.rawValue)
      let machine = try await load(id, request)
      guard let step = machine.record.step, let identifier = step.identifier,
        let policy = request.generation.policies[step.provider],
        let provider = registry(request)[step.provider] as? any CodeProvider
      else { throw request.refusal(.stepNotOpen) }
      try demandChangeProof(machine.record, request)
      let own = try await loadOwn(machine.record, request)
      return try await send(provider, to: identifier, policy, machine, of: own, id: id, request)
    }
  }

  /// The provider to use if the client names none: the only choice, or the only one for which the input has a required
  /// field.
  private func meant(of choices: [ProviderName], _ input: ProviderInput, _ request: RequestContext) -> (any Provider)? {
    let able = choices.compactMap { registry(request)[$0] }
    if able.count == 1 { return able[0] }
    let fitting = able.filter { provider in
      provider.descriptor.beginFields.contains { $0.isRequired && input.fields[$0.name] != nil }
    }
    return fitting.count == 1 ? fitting[0] : nil
  }

  /// Loads the flow and reads the identifier from the input. Malformed input is refused before any other check, because
  /// that refusal reveals nothing about the flow.
  private func load(
    _ id: FlowID, for named: (any Provider)?, _ input: ProviderInput, _ request: RequestContext
  ) async throws(FlowError) -> (FlowMachine, said: Identifier?) {
    if let full = named as? any FullProvider {
      do throws(InputProblem) { _ = try full.readIdentifier(input) } catch { throw request.refusal(error) }
    }
    guard let code = named as? any CodeProvider else { return (try await load(id, request), nil) }
    let said = code.isNamed(in: input) ? try read(code, input, request) : nil
    do {
      return (try await load(id, request), said)
    } catch {
      // Only a flow of a signed-in account may omit the recipient.
      if case .refused(let refusal) = error, refusal.code != .unauthenticated { _ = try read(code, input, request) }
      throw error
    }
  }

  private func read(_ provider: any CodeProvider, _ input: ProviderInput, _ request: RequestContext) throws(FlowError)
    -> Identifier
  {
    let identifier: Identifier
    do { identifier = try provider.readIdentifier(input) } catch { throw request.refusal(error) }
    try demandBeginning(input, by: provider.descriptor, request)
    try demandDeclared([identifier], by: provider.descriptor.name, request)
    return identifier
  }

  /// The recipient of a code: the identifier in the input; otherwise the account's own address or number, or one given
  /// earlier in this flow.
  /// - Parameter said: the identifier in the input, if it was read already.
  private func recipient(
    of provider: any CodeProvider, _ said: Identifier?, _ input: ProviderInput, _ record: FlowRecord, _ own: Account?,
    _ request: RequestContext
  ) throws(FlowError) -> Identifier {
    if let said { return said }
    let kinds = provider.descriptor.identifierKinds
    let isGiven = record.purpose.newIdentifier.map(kinds.contains) ?? false
    if isGiven || provider.isNamed(in: input) { return try read(provider, input, request) }
    if let own {
      // An identifier given earlier in this flow: an address that another site has attested is confirmed at that very
      // address.
      let said = record.proved.last { proved in
        kinds.contains(proved.kind)
          && own.identifiers.contains { $0.identifier == proved && $0.verifiedAt != nil && record.purpose.accepts($0) }
      }
      if let said { return said }
      if let meant = meant(of: kinds, in: own, for: record.purpose, request) { return meant }
      throw nothingToProve(kinds, own, record.purpose, request)
    }
    if let claimed = record.gathered.claimed.first(where: { kinds.contains($0.kind) }) { return claimed }
    return try read(provider, input, request)
  }

  /// The refusal if the account has no identifier of these kinds that can be verified in this flow.
  private func nothingToProve(
    _ kinds: [IdentifierKind], _ own: Account, _ purpose: FlowPurpose, _ request: RequestContext
  ) -> FlowError {
    if purpose.isReset { return resetRefusal(kinds, own, request) }
    return own.identifiers.contains { kinds.contains($0.identifier.kind) && $0.verifiedAt != nil }
      ? request.refusal(.alreadySet, detail: "This is already verified.")
      : request.refusal(.denied, detail: "There is no email address or phone number to send a code to.")
  }

  /// Checks that a step may use an identifier.
  ///
  /// Attack: a second step passed with an identifier of the attacker's own. A step for a known account accepts only
  /// identifiers that the account holds, except the new one that the flow adds. A step beside a claimed address accepts
  /// only that address.
  func demandRight(to identifier: Identifier, of own: Account?, _ record: FlowRecord, _ request: RequestContext)
    throws(FlowError)
  {
    guard let own else {
      let claimed = record.gathered.claimed.filter { $0.kind == identifier.kind }
      guard claimed.isEmpty || claimed.contains(identifier) else { throw request.refusal(.denied) }
      return
    }
    let held = own.identifiers.first { $0.identifier == identifier }
    switch record.purpose {
    case .join(let kind) where identifier.kind == kind:
      if own.identifiers.contains(where: { $0.identifier.kind == kind && $0.verifiedAt != nil }) {
        throw request.refusal(.alreadySet, detail: "This account already has a phone number. Change it instead.")
      }
    case .change(let kind) where identifier.kind == kind: break
    default:
      guard let held else { throw request.refusal(.denied) }
      // Attack: a factor that the account requires, passed by a code to an address that was only claimed.
      guard record.purpose.accepts(held), record.due?.requirement == nil || held.verifiedAt != nil else {
        throw nothingToProve([identifier.kind], own, record.purpose, request)
      }
      if record.purpose.isReset, let until = own.isTooNewUntil(held, request.generation.accounts, at: request.now) {
        throw request.refusal(.identifierTooNew, until: until)
      }
    }
  }

  /// Charges the client address, then returns a refusal that reveals whether an account exists.
  func revealing(
    _ code: RefusalCode, _ provider: ProviderName, _ limits: [ResolvedLimit], _ action: LimitAction,
    _ request: RequestContext
  ) async throws(FlowError) -> FlowError {
    request.decided(by: "unknown_account", of: provider)
    let perAddress = limits.filter { $0.key == .ip }
    let reservation = try await charge(perAddress, for: action, timer: nil, request)
    // Limits on failures count this too: asking who is registered is a failed attempt.
    let outcome: Settlement.Outcome = action == .send ? .success : .failure
    request.watch?.ended(reservation.id, outcome)
    try await settle(
      [
        .settle(
          Settlement(reservation: reservation.id, outcome: outcome, limits: perAddress, timer: nil, now: request.now))
      ], request)
    return request.refusal(code)
  }
}

extension CodeProvider {
  /// Whether the input names the recipient of the code.
  func isNamed(in input: ProviderInput) -> Bool {
    descriptor.beginFields.contains { $0.isRequired && input.fields[$0.name] != nil }
  }
}
