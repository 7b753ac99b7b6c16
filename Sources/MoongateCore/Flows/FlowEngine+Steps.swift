import MoongateSDK

// Begins, sends again and submits steps: finds the provider, and leaves the rest to `CodeStep` or `ProviderStep`.

extension FlowEngine {
  /// Begins a step. A full provider judges it at once if the input holds everything that it asks for.
  /// - Parameter provider: nil if the client names none. The step must then have one choice, or one that matches the
  ///   fields.
  package func begin(_ id: FlowID, provider: String?, fields: [String: InputValue], client: ClientContext) async
    -> Result<FlowView, Refusal>
  {
    await answer(client, flow: id) { request throws(FlowError) in
      request.trace.note("act", LimitAction.send.rawValue)
      let sent = ProviderInput(fields: fields, defaultRegion: request.generation.gateway.region)
      let named = provider.flatMap(ProviderName.init(rawValue:)).flatMap { registry(request)[$0] }
      var input = named.map { sent.declared(by: $0.descriptor) } ?? sent
      let (loaded, said) = try await load(id, for: named, input, request)
      let flow = loaded.remembering(client.remember)
      try checks.demandChangeProof(flow)
      guard case .offer = flow.machine.next, let due = flow.machine.due else { throw request.refusal(.stepNotOpen) }
      let choices = parts.fallbacks.beginnable(due, request)
      let chosen = provider == nil ? unnamedProvider(of: choices, input, request) : named
      guard let chosen, let policy = request.generation.policies[chosen.descriptor.name] else {
        throw request.refusal(.stepNotOpen)
      }
      request.trace.about(
        DecisionTrace.Subject(provider: policy.provider, identifier: said.map { keys.logHash($0.value) }))
      try await parts.requirements.demandAdmission(flow, naming: said)
      if let code = chosen as? any CodeProvider, let step = flow.record.step,
        parts.fallbacks.isSwitch(to: policy.provider, from: step, flow)
      {
        return try await parts.codeStep.switchSender(to: code, policy, said, step, flow)
      }
      guard choices.contains(policy.provider) else { throw request.refusal(.stepNotOpen) }
      input = sent.declared(by: chosen.descriptor)
      if let code = chosen as? any CodeProvider {
        return try await parts.codeStep.begin(code, policy, said, input, flow)
      }
      guard let full = chosen as? any FullProvider else { throw request.refusal(.stepNotOpen) }
      let begin = ProviderBegin(provider: full, policy: policy, input: input, isBegin: true)
      return try await parts.providerStep.begin(begin, flow)
    }
  }

  /// Sends another code for the open step. The previous code stops working.
  package func resend(_ id: FlowID, client: ClientContext) async -> Result<FlowView, Refusal> {
    await answer(client, flow: id) { request throws(FlowError) in
      request.trace.note("act", LimitAction.send.rawValue)
      let flow = try await storage.load(id, request)
      try await parts.requirements.demandAdmission(flow, naming: flow.record.step?.identifier)
      return try await parts.codeStep.resend(flow)
    }
  }

  /// Judges what the client sent for the open step. A code may come with the fields of a secret that is set right after
  /// it.
  ///
  /// For a completed flow of an app: redeems its one-time code, `{"code","code_verifier"}`.
  package func submit(_ id: FlowID, fields: [String: InputValue], client: ClientContext) async -> Result<
    FlowView, Refusal
  > {
    await answer(client, flow: id) { request throws(FlowError) in
      request.trace.note("act", "submit")
      let input = ProviderInput(fields: fields, defaultRegion: request.generation.gateway.region)
      if fields["code_verifier"] != nil, let view = try await parts.completion.redeem(id, input, request) {
        return view
      }
      let flow: FlowTransaction
      switch try await submitRecent(input, id, request) {
      case .judged(let view): return view
      case .changed(let stored): flow = stored.remembering(client.remember)
      case .unknown: flow = try await storage.load(id, request).remembering(client.remember)
      }
      switch flow.machine.state {
      case .choosingAccount(let choice): return try await parts.completion.choose(choice, input, flow)
      case .open(let step, let phase): return try await submit(input, to: step, in: phase, flow)
      case .deciding, .offering, .passed, .handingOver, .complete, .failed: throw request.refusal(.stepNotOpen)
      }
    }
  }

  /// The result of judging a code in a flow that is in memory.
  private enum RecentJudgement {
    case judged(FlowView)
    /// The store has another version. Nothing has happened.
    case changed(FlowTransaction)
    /// The flow is not in memory, or does not wait for a code alone.
    case unknown
  }

  /// Judges a code in a flow that is in memory, which saves a round trip to the store.
  ///
  /// Attack: two gateways, one of which remembers a code that the other has replaced. The transaction that charges the
  /// attempt checks the flow's version, and a refusal before that counts only if the version is still the stored one.
  /// Otherwise, what was recorded about the remembered flow is forgotten: it may be about an account that was deleted.
  private func submitRecent(_ input: ProviderInput, _ id: FlowID, _ request: RequestContext)
    async throws(FlowError) -> RecentJudgement
  {
    let before = request.records
    guard input.fields.keys.elementsEqual(["code"]), let flow = storage.recent(id, request), let recent = flow.recent,
      case .open(let step, let phase) = flow.machine.state, case .code = phase
    else {
      request.restore(before)
      return .unknown
    }
    do throws(FlowError) {
      let flow = flow.remembering(request.client.remember)
      return .judged(try await submit(input, to: step, in: phase, flow))
    } catch {
      if recent.isConfirmed { throw error }
      let after = request.records
      request.restore(before)
      let stored = try await storage.load(id, request)
      guard FlowVersion(stored.record) == recent.version else { return .changed(stored) }
      request.restore(after)
      throw error
    }
  }

  /// Judges input for an open step.
  private func submit(
    _ input: ProviderInput, to step: StepRecord, in phase: FlowMachine.StepPhase, _ flow: FlowTransaction
  ) async throws(FlowError) -> FlowView {
    let request = flow.request
    guard let policy = request.generation.policies[step.provider], let provider = registry(request)[step.provider]
    else {
      throw request.refusal(.stepNotOpen)
    }
    if case .code = phase { return try await parts.codeStep.submit(input, step, policy, flow) }
    guard let full = provider as? any FullProvider else { throw request.refusal(.stepNotOpen) }
    let attempt = ProviderAttempt(provider: full, policy: policy, input: input, step: step)
    if case .waiting(let wait) = phase { return try await parts.providerStep.poll(attempt, wait, flow) }
    return try await parts.providerStep.judge(attempt, flow)
  }

  /// The provider to use if the client names none: the only choice, or the only one for which the input has a required
  /// field.
  private func unnamedProvider(of choices: [ProviderName], _ input: ProviderInput, _ request: RequestContext) -> (
    any Provider
  )? {
    let able = choices.compactMap { registry(request)[$0] }
    if able.count == 1 { return able[0] }
    let fitting = able.filter { provider in
      provider.descriptor.beginFields.contains { $0.isRequired && input.fields[$0.name] != nil }
    }
    return fitting.count == 1 ? fitting[0] : nil
  }

  /// Reads the identifier from the input, and loads the flow with the account that has verified it. Malformed input is
  /// refused before any other check, because that refusal reveals nothing about the flow.
  private func load(
    _ id: FlowID, for named: (any Provider)?, _ input: ProviderInput, _ request: RequestContext
  ) async throws(FlowError) -> (FlowTransaction, said: Identifier?) {
    guard let code = named as? any CodeProvider else {
      var said: Identifier?
      if let full = named as? any FullProvider {
        do throws(InputProblem) { said = try full.readIdentifier(input) } catch { throw request.refusal(error) }
      }
      return (try await storage.load(id, request, withHolderOf: said), nil)
    }
    let said = code.isNamed(in: input) ? try parts.codeStep.read(code, input, request) : nil
    do {
      return (try await storage.load(id, request, withHolderOf: said), said)
    } catch {
      // Only a flow of a signed-in account may omit the recipient.
      if case .refused(let refusal) = error, refusal.code != .unauthenticated {
        _ = try parts.codeStep.read(code, input, request)
      }
      throw error
    }
  }
}
