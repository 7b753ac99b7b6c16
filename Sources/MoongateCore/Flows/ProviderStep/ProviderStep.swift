import MoongateSDK

/// A full provider's step that a client begins.
struct ProviderBegin: Sendable {
  let provider: any FullProvider
  let policy: ProviderPolicy
  let input: ProviderInput
  /// Whether the client begins the step, so that it counts as begun.
  var isBegin = false
}

/// An open step, and whether the input already holds everything that its provider asks for.
struct OpenedStep: Sendable {
  let flow: FlowTransaction
  let step: StepRecord
  let isComplete: Bool
}

/// An attempt at an open step of a full provider.
struct ProviderAttempt: Sendable {
  let provider: any FullProvider
  let policy: ProviderPolicy
  var input: ProviderInput
  var step: StepRecord
  /// Whether the same call opened the step.
  var isNew = false
  /// Whether a refusal may ask again. False for a secret that comes together with a code: the caller stores that step
  /// as it was opened.
  var asksAgain = true
}

/// Steps of full providers: beginning them, their rounds, and judging what the client sends. The core charges the
/// attempt, and the provider compares.
///
/// `ProviderStep+Opening` begins a step, `ProviderStep+Judgement` judges an attempt, and `ProviderStep+Subject` finds
/// the account that a proof belongs to.
struct ProviderStep: FlowPart {
  let services: FlowServices
  let lookup: AccountLookup
  let checks: AccountChecks
  let calls: ProviderCalls
  let storage: FlowStorage
  let admission: StepAdmission
  let settlement: StepSettlement
  let views: FlowViews
  let completion: FlowCompletion
  /// The permits of providers that hash secrets.
  let hashing: any HashingPermits

  var ledger: AttemptLedger { admission.ledger }
  var policies: PolicyEvaluation { admission.policies }
  var seals: FlowSeals { calls.seals }

  /// Opens the step of a full provider. If the input holds everything that the provider asks for, the step is judged at
  /// once.
  func begin(_ begin: ProviderBegin, _ before: FlowTransaction) async throws(FlowError) -> FlowView {
    let opened = try await opening(begin, before)
    guard opened.isComplete else {
      var flow = opened.flow
      flow.changes.append(.audit(event(.flowBegun, flow, step: opened.step)))
      return try await views.store(flow)
    }
    let attempt = ProviderAttempt(
      provider: begin.provider, policy: begin.policy, input: begin.input, step: opened.step, isNew: true)
    return try await judge(attempt, opened.flow)
  }

  /// Polls a step that waits. Before the poll is due, the flow is returned unchanged and the provider is not called.
  ///
  /// Attack: a thousand polls in parallel, each a call to the provider and to its vendor. The poll is claimed by
  /// changing the flow's version before the provider is called, so one interval has one call.
  ///
  /// Attack: fields that are sent with a poll are guesses that no limit counts, since a poll is not counted.
  func poll(_ given: ProviderAttempt, _ wait: StepWait, _ before: FlowTransaction) async throws(FlowError)
    -> FlowView
  {
    let request = before.request
    request.trace.note("act", "poll")
    if let field = given.input.fields.keys.min() {
      throw request.refusal(
        InputProblem(
          field: field, reason: .invalidInput, detail: "This step waits for an approval elsewhere and takes no fields.")
      )
    }
    guard request.now >= wait.due else { return try await views.view(of: before) }
    var flow = before.changing { $0.polled(at: request.now) }
    guard try await storage.takeTurn(flow) else {
      // Another poll was first. Its outcome may be stored already.
      return try await views.view(of: try await storage.load(flow.id, request, completeToo: true))
    }
    flow.machine.stored()
    guard let step = flow.record.step else { throw request.refusal(.stepNotOpen) }
    var attempt = given
    attempt.step = step
    return try await judge(attempt, flow)
  }

  /// Lets a full provider judge the input and continues the flow.
  func judge(_ given: ProviderAttempt, _ flow: FlowTransaction) async throws(FlowError) -> FlowView {
    let request = flow.request
    let (provider, descriptor) = (given.provider, given.provider.descriptor)
    var attempt = given
    attempt.input = try calls.answer(given.input, to: given.step, by: descriptor, request)
    attempt.step = try await identified(attempt, flow)
    let capabilities = try await calls.makeCapabilities(provider, attempt.step, attempt.input, flow)
    do throws(InputProblem) { try provider.check(capabilities.context, attempt.input) } catch {
      throw request.refusal(error)
    }
    try calls.demandFit(attempt.input, to: attempt.step, by: descriptor, request)
    try await demandUnexposed(provider, capabilities, attempt.input, flow)
    var permit = try await hashingPermit(attempt, capabilities.context, flow)
    let judged = try await judgement(of: attempt, capabilities, permit.hasher, flow)
    // Nothing is hashed from here on, and others need the permit.
    permit.hasher = nil
    switch judged {
    case .proved(var proved):
      if permit.isRegistration { proved.machine.countsRegistration(by: attempt.step.provider) }
      proved = try await lookUpProved(provider, capabilities, attempt.input, proved)
      return try await completion.finishRefunding(proved)
    case .waits(let waiting, let refund):
      if try await storage.storeRefunding(waiting, refund) { return try await views.view(of: waiting) }
      // Another request was faster. A poll returns the flow's current state.
      guard attempt.step.wait != nil else { throw request.refusal(.stepNotOpen) }
      return try await views.view(of: try await storage.load(flow.id, request, completeToo: true))
    }
  }
}
