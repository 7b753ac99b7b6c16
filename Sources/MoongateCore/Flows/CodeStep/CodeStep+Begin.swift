import MoongateSDK

// Begins a step of a code provider and determines the recipient of the code.

extension CodeStep {
  /// Begins a step, or asks another sender of the open step for a code.
  /// - Parameter said: the identifier in the input, if it was read already.
  func begin(
    _ provider: any CodeProvider, _ policy: ProviderPolicy, _ said: Identifier?, _ input: ProviderInput,
    _ flow: FlowTransaction
  ) async throws(FlowError) -> FlowView {
    let own = try await lookup.loadOwn(flow)
    let identifier = try recipient(of: provider, said, input, own, flow)
    return try await send(
      CodeRequest(provider: provider, policy: policy, identifier: identifier, own: own, isBegin: true), flow)
  }

  /// Sends another code for the open step. The previous code stops working.
  func resend(_ flow: FlowTransaction) async throws(FlowError) -> FlowView {
    let request = flow.request
    guard let step = flow.record.step, let identifier = step.identifier,
      let policy = request.generation.policies[step.provider],
      let provider = registry(request)[step.provider] as? any CodeProvider
    else { throw request.refusal(.stepNotOpen) }
    try checks.demandChangeProof(flow)
    let own = try await lookup.loadOwn(flow)
    return try await send(CodeRequest(provider: provider, policy: policy, identifier: identifier, own: own), flow)
  }

  /// Sends a code by another provider of the `fallback`. The code goes only to the identifier of the open step.
  func switchSender(
    to provider: any CodeProvider, _ policy: ProviderPolicy, _ said: Identifier?, _ step: StepRecord,
    _ flow: FlowTransaction
  ) async throws(FlowError) -> FlowView {
    guard let identifier = step.identifier, said == nil || said == identifier else {
      throw flow.request.refusal(
        .stepNotOpen, detail: "This step is for another phone number or email address. Start it again.")
    }
    guard !(step.unreachable ?? []).contains(policy.provider) else { throw flow.request.refusal(.stepNotOpen) }
    let own = try await lookup.loadOwn(flow)
    return try await send(
      CodeRequest(provider: provider, policy: policy, identifier: identifier, own: own, isBegin: true), flow)
  }

  /// Reads the recipient from the input.
  func read(_ provider: any CodeProvider, _ input: ProviderInput, _ request: RequestContext) throws(FlowError)
    -> Identifier
  {
    let identifier: Identifier
    do { identifier = try provider.readIdentifier(input) } catch { throw request.refusal(error) }
    try calls.demandBeginning(input, by: provider.descriptor, request)
    try calls.demandDeclared([identifier], by: provider.descriptor.name, request)
    return identifier
  }

  /// The recipient of a code: the identifier in the input; otherwise the account's own address or number, or one given
  /// earlier in this flow.
  /// - Parameter said: the identifier in the input, if it was read already.
  private func recipient(
    of provider: any CodeProvider, _ said: Identifier?, _ input: ProviderInput, _ own: Account?,
    _ flow: FlowTransaction
  ) throws(FlowError) -> Identifier {
    if let said { return said }
    let (record, request) = (flow.record, flow.request)
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
      if let used = checks.identifierToUse(of: kinds, in: own, for: record.purpose, request) { return used }
      throw nothingToProve(kinds, own, record.purpose, request)
    }
    if let claimed = record.pendingProofs.claimed.first(where: { kinds.contains($0.kind) }) { return claimed }
    return try read(provider, input, request)
  }

  /// The refusal if the account has no identifier of these kinds that can be verified in this flow.
  private func nothingToProve(
    _ kinds: [IdentifierKind], _ own: Account, _ purpose: FlowPurpose, _ request: RequestContext
  ) -> FlowError {
    if purpose.isReset { return checks.resetRefusal(kinds, own, request) }
    let held = own.identifiers.filter { kinds.contains($0.identifier.kind) && purpose.accepts($0) }
    if purpose.refusesTooNew,
      let until = held.compactMap({ own.isTooNewUntil($0, request.generation.accounts, at: request.now) }).min()
    {
      return request.refusal(.identifierTooNew, until: until)
    }
    return own.identifiers.contains { kinds.contains($0.identifier.kind) && $0.verifiedAt != nil }
      ? request.refusal(.alreadySet, detail: "This is already verified.")
      : request.refusal(.denied, detail: "There is no email address or phone number to send a code to.")
  }

  /// Checks that a step may use an identifier.
  ///
  /// Attack: a second step passed with an identifier of the attacker's own. A step for a known account accepts only
  /// identifiers that the account holds, except the new one that the flow adds. A step beside a claimed address accepts
  /// only that address.
  func demandRight(to identifier: Identifier, of own: Account?, _ flow: FlowTransaction) throws(FlowError) {
    let (record, request) = (flow.record, flow.request)
    guard let own else {
      let claimed = record.pendingProofs.claimed.filter { $0.kind == identifier.kind }
      guard claimed.isEmpty || claimed.contains(identifier) else {
        throw request.refusal(.denied, because: .foreignIdentifier)
      }
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
      guard let held else { throw request.refusal(.denied, because: .foreignIdentifier) }
      // Attack: a factor that the account requires, passed by a code to an address that was only claimed.
      guard record.purpose.accepts(held), record.due?.requirement == nil || held.verifiedAt != nil else {
        throw nothingToProve([identifier.kind], own, record.purpose, request)
      }
      // Attack: a thief adds an address of their own within a stolen session, and passes a step-up by it.
      if record.purpose.refusesTooNew, let until = own.isTooNewUntil(held, request.generation.accounts, at: request.now)
      {
        throw request.refusal(.identifierTooNew, until: until)
      }
    }
  }
}

extension CodeProvider {
  /// Whether the input names the recipient of the code.
  func isNamed(in input: ProviderInput) -> Bool {
    descriptor.beginFields.contains { $0.isRequired && input.fields[$0.name] != nil }
  }
}
