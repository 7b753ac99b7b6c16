import Logging
import MoongateSDK

// The rounds of a step: what a full provider asks for, shows or waits for next, and polls of a step that waits.

extension FlowEngine {
  /// The flow with the next round of its open step; nil if the answer has no next round.
  /// - Parameter answer: validated by `fulfil`, as all answers are.
  /// - Parameter judged: the record that the first attempt was judged by; nil if the step begins.
  func round(
    after answer: StepAnswer, _ before: FlowMachine, by provider: ProviderName,
    judgedBy judged: StoredRecord.Judged? = nil, id: FlowID,
    _ request: RequestContext
  ) throws(FlowError) -> FlowMachine? {
    var machine = before
    switch answer {
    case .ask(let fields, let state, let shown):
      machine.waits(
        for: fields, showing: try seal(shown, for: provider, id: id), at: nil,
        state: try seal(state, for: provider, id: id), judgedBy: judged)
    case .redirect(let site, let state):
      machine.waits(for: nil, at: site, state: try seal(state, for: provider, id: id), judgedBy: judged)
    case .wait(let interval, let state, let shown):
      machine.waits(
        for: [], showing: try seal(shown, for: provider, id: id), at: nil,
        polling: StepWait(interval: interval, from: max(request.now, clock.now())),
        state: try seal(state, for: provider, id: id), judgedBy: judged)
    case .proved, .refused, .refusedAndAsked, .malformed: return nil
    }
    return machine
  }

  /// Polls a step that waits. Before the poll is due, the flow is returned unchanged and the provider is not called.
  ///
  /// Attack: a thousand polls in parallel, each a call to the provider and to its vendor. The poll is claimed by
  /// changing the flow's version before the provider is called, so one interval has one call.
  ///
  /// Attack: fields that are sent with a poll are guesses that no limit counts, since a poll is not counted.
  func poll(
    _ provider: any FullProvider, _ wait: StepWait, _ input: ProviderInput, _ policy: ProviderPolicy,
    _ before: FlowMachine, id: FlowID,
    _ request: RequestContext
  ) async throws(FlowError) -> FlowView {
    request.notes.note("act", "poll")
    if let field = input.fields.keys.min() {
      throw request.refusal(
        InputProblem(
          field: field, reason: .invalidInput, detail: "This step waits for an approval elsewhere and takes no fields.")
      )
    }
    guard request.now >= wait.due else { return try await view(of: before.record, id: id, request) }
    var machine = before
    machine.polled(at: request.now)
    let claim = machine.record
    let result = try await asking { () async throws(StoreFault) in
      try await store.apply([.putFlow(claim)], at: request.now)
    }
    guard case .applied = result else {
      // Another poll was first. Its outcome may be stored already.
      let current = try await load(id, request, completeToo: true)
      return try await view(of: current.record, id: id, request)
    }
    machine.stored()
    guard let step = machine.record.step else { throw request.refusal(.stepNotOpen) }
    return try await judge(provider, input, step, policy, machine, id: id, request)
  }

  /// Checks that the poll interval is within bounds. If it is not, the provider is at fault: the gateway answers 503,
  /// logs it and refunds the attempt.
  ///
  /// Attack: an interval of zero, with which the page and every client would poll without a pause.
  func demandPollable(_ interval: Duration, by provider: ProviderName, _ request: RequestContext) throws(FlowError) {
    if StepAnswer.pollIntervals.contains(interval) { return }
    throw flaw(
      "a provider asks for a poll interval outside 1 to 60 seconds", of: provider, request,
      ["poll": "\(interval)"])
  }

  /// Checks that a redirect leads to a valid site address.
  ///
  /// Attack: `javascript:` behind the button of a page of ours; a line break in a Location header.
  func demandSite(_ address: String, by provider: ProviderName, _ request: RequestContext) throws(FlowError) {
    if SiteAddress.isSite(address) { return }
    throw flaw("a provider redirects to an address that is not allowed", of: provider, request)
  }
}
