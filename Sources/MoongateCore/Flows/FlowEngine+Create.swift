import MoongateSDK

// Creates flows, and answers what a flow would offer.

/// What a flow is created with.
private struct FlowDraft: Sendable {
  let name: String
  var returnTo: String?
  var browser: TokenHash?
  var grant: Grant?
}

extension FlowEngine {
  /// Creates a flow.
  /// - Parameters:
  ///   - returnTo: the target, already validated (`RedirectTargets`); nil if it was refused or not given.
  ///   - browser: the hash of the browser's cookie if the request had an `Origin`. The flow then belongs to that
  ///     browser only.
  ///   - grant: the app that receives the result of a sign-in. The browser that completes the flow then gets no
  ///     session.
  package func create(
    _ name: String, returnTo: String?, browser: TokenHash?, grant: Grant? = nil, client: ClientContext
  ) async -> Result<FlowView, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let flow = try await draft(FlowDraft(name: name, returnTo: returnTo, browser: browser, grant: grant), request)
      let isKept = pending.put(
        flow.record, from: client.address.countingKey, at: request.now,
        within: request.generation.gateway.connectionLimits.flows)
      // Any gateway that uses the store may begin this flow.
      guard isKept else { return try await views.store(flow) }
      return try await views.view(of: flow)
    }
  }

  /// The providers that a flow would offer first. Nothing is created. Used by pages that link directly to a step.
  /// - Parameter forChange: only return providers that can authorise a change to the account (`demandRecentProof`).
  package func offers(_ name: String, forChange: Bool = false, client: ClientContext) async -> Result<
    [ProviderName], Refusal
  > {
    await answer(client, flow: nil) { request throws(FlowError) in
      let choices = try await views.view(of: try await draft(FlowDraft(name: name), request)).choices
      guard forChange, let account = client.session?.account else { return choices }
      let authority = checks.authority(over: account, request)
      let able = choices.filter(authority.canAuthorise)
      guard !able.isEmpty else { throw checks.unauthorised(authority, request) }
      return able
    }
  }

  /// When the lock ends that prevents the session's account from proving a factor in a flow; nil without a lock.
  /// Nothing is stored.
  package func lock(of provider: ProviderName, in name: String, client: ClientContext) async -> Result<
    Timestamp?, Refusal
  > {
    await answer(client, flow: nil) { request throws(FlowError) in
      let step = StepRecord(provider: provider, identifier: nil, isSkippable: false, account: nil, challenge: nil)
      let flow = try await draft(FlowDraft(name: name), request).changing { $0.opened(step) }
      return try await views.view(of: flow).step?.lockedUntil
    }
  }

  /// Refuses an app that chooses for the user to stay signed in.
  ///
  /// Attack: an app creates its flow with `remember`, and a user who did not tick "Keep me signed in" gets a session
  /// that lives for months. The pages of the flow ask the user.
  private func demandOwnChoice(_ grant: Grant?, _ request: RequestContext) throws(FlowError) {
    guard grant != nil, request.client.entryPoint == .api, request.client.remember == true else { return }
    throw request.refusal(
      .invalidInput, detail: "The user of an app's flow chooses on its pages whether to stay signed in.",
      field: "remember")
  }

  /// The invitation that the client has sent; nil: none. It is used up when the account is created, not now.
  ///
  /// Attack: a scanner of mail opens the link first, and the user finds the invitation used.
  private func invitation(_ request: RequestContext) async throws(FlowError) -> Invitation? {
    guard let text = request.client.invitation else { return nil }
    if request.generation.accounts.registration == .closed {
      throw request.refusedByRegistration(.registrationClosed)
    }
    let found = try await asking { () async throws(StoreFault) in try await storedInvitation(text) }
    if let found, found.problem == nil { return found.invitation }
    throw request.refusedInvitation(found?.problem)
  }

  /// The invitation with this code; nil if it cannot be used now. Nothing is stored.
  package func invitation(_ code: SecretText) async throws(StoreFault) -> Invitation? {
    guard generations.current.accounts.registration != .closed, let found = try await storedInvitation(code),
      found.problem == nil
    else { return nil }
    return found.invitation
  }

  /// The invitation with this code, and why it cannot be used, if that is so; nil if none has it.
  package func storedInvitation(_ code: SecretText) async throws(StoreFault) -> (
    invitation: Invitation, problem: InvitationProblem?
  )? {
    guard let code = InvitationCode(text: code.reveal()), let found = try await store.invitation(code.hash) else {
      return nil
    }
    return (found, found.problem(at: clock.now()))
  }

  /// Notes the invitation, and requires the steps that verify an identifier of the kind that a new account needs. The
  /// user would otherwise skip a code without which no account is created.
  private func demandVerification(
    _ record: inout FlowRecord, _ invitation: Invitation?, _ request: RequestContext
  ) {
    record.invitation = invitation?.code
    let registration = request.generation.accounts.registration
    let kinds = invitation.map { Set([$0.identifier?.kind].compactMap(\.self)) } ?? registration.verifiedKinds
    guard !kinds.isEmpty, record.accountRule == .new || record.purpose.registersFactor else { return }
    let providers = registry(request).all.map(\.descriptor)
    record.requireSteps(by: Set(providers.filter { !kinds.isDisjoint(with: $0.identifierKinds) }.map(\.name)))
  }

  /// A new flow that is not stored yet.
  private func draft(_ draft: FlowDraft, _ request: RequestContext) async throws(FlowError) -> FlowTransaction {
    let id = FlowID(from: random)
    let client = request.client
    guard let definition = request.generation.flows[draft.name] else {
      request.watch?.asked(.flow(draft.name, isInvited: client.invitation != nil))
      if request.generation.closedRegistrations.contains(draft.name) { throw request.refusal(.registrationClosed) }
      throw request.refusal(.invalidInput, detail: "There is no flow of this name.", field: "flow")
    }
    request.watch?.asked(.flow(draft.name, isInvited: client.invitation != nil))
    request.trace.about(DecisionTrace.Subject(flow: draft.name))
    let invitation = try await invitation(request)
    if let code = request.generation.accounts.registration.refusal(
      of: definition.account, isInvited: invitation != nil)
    {
      throw request.refusedByRegistration(code)
    }
    var session: SessionSnapshot?
    if definition.needsSession(by: registry(request)) {
      let own = try request.liveSession()
      guard draft.grant == nil else {
        throw request.refusal(
          .invalidInput, detail: "An app can take over a sign-in, not a flow of someone who is signed in.",
          field: "code_challenge")
      }
      try checks.demandUnverified(definition.purpose, own.account, request)
      session = own
    }
    let choices = Set(definition.steps.flatMap(\.choices))
    var record = FlowRecord(
      id: id.hash, definition: definition,
      codes: request.generation.policies.filter { choices.contains($0.key) }.mapValues(CodeTexts.init),
      createdAt: request.now, returnTo: draft.returnTo, browser: draft.browser, network: client.address.networkKey,
      account: session.map { AccountVersion($0.account) }, startedIn: session?.session.id, grant: draft.grant)
    record.origin = FlowOrigin(client.address, keys).text
    try demandOwnChoice(draft.grant, request)
    record.remember(client.remember)
    demandVerification(&record, invitation, request)
    var flow = FlowTransaction(id, FlowMachine(record), request)
    try checks.demandChangeProof(flow)
    try await parts.requirements.demandAdmission(flow)
    // A flow without any applicable step would prove nothing.
    guard case .offer(let offered) = try await parts.completion.nextAction(&flow) else {
      throw request.refusal(.denied, because: .noStepApplies)
    }
    if offered.allSatisfy({ record.stepPurpose(of: $0) == .set }) {
      try await checks.demandProof(before: .set, flow)
    }
    if record.purpose.isReset, let session {
      try checks.demandResettable(offered, record.purpose, session.account, request)
    }
    return flow
  }
}
