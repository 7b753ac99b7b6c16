import MoongateSDK

/// Continues a flow after a step, and completes it: the account, the session and the flow are stored in one
/// transaction.
struct FlowCompletion: FlowPart {
  let services: FlowServices
  let lookup: AccountLookup
  let checks: AccountChecks
  let grants: GrantChecks
  let requirements: SignInRequirements
  let messengers: Messengers
  let notices: FlowNotices
  let storage: FlowStorage
  let admission: StepAdmission
  let settlement: StepSettlement
  let views: FlowViews

  var policies: PolicyEvaluation { admission.policies }

  /// Advances to the next step that applies.
  func nextAction(_ flow: inout FlowTransaction) async throws(FlowError) -> FlowMachine.Action {
    while true {
      switch flow.machine.next {
      case .offer, .chooseAccount: return flow.machine.next
      case .complete: guard try await requirements.requireNext(&flow) else { return .complete }
      case .askWhether(let function):
        // If the active generation no longer has the function, the step applies.
        let isKnown =
          flow.request.generation.flows[flow.record.name]?.steps.contains { $0.when == function } ?? false
        flow.machine.stepApplies(isKnown ? try await policies.condition(function, flow) : true)
      }
    }
  }

  /// Continues after a step was passed or skipped: to the next step, or to completion.
  func storeOrComplete(_ before: FlowTransaction) async throws(FlowError) -> FlowView {
    var flow = before
    try await requirements.demandAdmission(flow)
    guard try await nextAction(&flow) == .complete else {
      // A lock that was concealed until now is reported here, before another step begins.
      if flow.record.startedIn == nil {
        try admission.demandUnlocked(try await lookup.loadAccount(flow.record.account, flow), flow.request)
      }
      return try await views.store(flow)
    }
    return try await complete(flow)
  }

  /// Continues after right attempts, and refunds them if the result cannot be stored.
  func finishRefunding(_ flow: FlowTransaction) async throws(FlowError) -> FlowView {
    do {
      return try await storeOrComplete(flow)
    } catch {
      // The pass was not stored, so the attempt does not count. Another request has used the code, or it still works.
      switch error {
      case .store: break
      case .refused, .policy:
        let now = flow.request.now
        // Not by `Charged.settled`: the shadow has been told the outcome already, which was right.
        let refunds = flow.attempts.map { charged in
          Change.settle(
            Settlement(reservation: charged.id, outcome: .refund, limits: charged.limits, timer: nil, now: now))
        }
        try await storage.ledger.settle(refunds, flow.request)
      }
      throw error
    }
  }

  /// Creates the session, and the account if it is new.
  private func complete(_ before: FlowTransaction) async throws(FlowError) -> FlowView {
    let request = before.request
    // Attack: a flow whose steps were all skipped or did not apply would sign someone in without any proof.
    guard !before.record.passed.isEmpty || before.record.startedIn != nil || before.record.isByOperator else {
      throw request.refusal(.denied, because: .nothingProved)
    }
    try grants.demandAllowed(before.record, request)
    var flow = before
    let known = try await person(flow)
    try admission.demandUnlocked(known, request)
    try checks.demandBasis(flow, by: known)
    try demandArrived(flow, known)
    try await demandAllowed(known, flow)
    let invitation = try await demandRegistration(of: known, flow)
    try requirements.demandAdmission(of: known, by: invitation, atEndOf: flow)
    let claimed = try await lookup.admittedClaims(flow)
    flow.machine.updatePendingProofs { $0.claimed = claimed }
    let outcome = try await outcome(for: known, by: invitation, &flow)
    let ending = try await ending(flow, before: known, outcome)
    let completed = flow.changing { machine in
      machine.completed(
        account: AccountVersion(outcome.account), isNew: outcome.isNew,
        next: flow.record.grant?.redirect ?? ending.next,
        code: ending.code)
    }
    try await apply(flow, completed, before: known, outcome, ending)
    notices.notify(of: before, before: outcome.survivor ?? known, outcome)
    return view(flow, completed, outcome, ending)
  }

  /// The account that the flow has authenticated; nil if none exists yet.
  private func person(_ flow: FlowTransaction) async throws(FlowError) -> Account? {
    let record = flow.record
    if let bound = try await lookup.loadAccount(record.account, flow) { return bound }
    // If the account was deleted, do not create another one.
    if record.account != nil { throw flow.request.refusal(.denied, because: .accountDeleted) }
    // No account held the identifier when it was verified. Attack: a code that was sent to a number before its owner
    // registered would open the account that the owner has since made with it.
    for identifier in record.proved {
      guard try await lookup.holder(of: identifier, flow) != nil else { continue }
      throw flow.request.refusal(
        record.accountRule == .new && identifier.kind != .federated ? .alreadyRegistered : .stepNotOpen)
    }
    return nil
  }

  /// Refuses a sign-in by an identifier that a merge has added to the account too recently.
  private func demandArrived(_ flow: FlowTransaction, _ known: Account?) throws(FlowError) {
    let (record, request) = (flow.record, flow.request)
    guard record.startedIn == nil, let known, let first = record.passed.first?.identifier else { return }
    let held = known.identifiers.first { $0.waitsUntil != nil && keys.proofHash(of: $0.identifier) == first }
    guard let until = held?.waitsUntil, request.now < until else { return }
    throw request.refusal(.identifierTooNew, until: until)
  }

  /// Refuses a flow that may not end in this account, or in a new one.
  private func demandAllowed(_ known: Account?, _ flow: FlowTransaction) async throws(FlowError) {
    let record = flow.record
    let purpose = record.purpose
    let rule = record.endingRule
    var isRefused = known != nil && rule == .new && record.startedIn == nil
    if let known, let kind = purpose.newIdentifier, !purpose.joinsAccounts {
      for identifier in record.proved where identifier.kind == kind {
        if let holder = try await lookup.holder(of: identifier, flow), holder.id != known.id { isRefused = true }
      }
    }
    // Attack: a registration for `any` account takes the password first and then a code. Someone who reads one code to
    // an address would replace the password of the account that has it.
    if known != nil, purpose.registersFactor, purpose.provider.map({ record.pendingProofs.records[$0] != nil }) ?? false
    {
      isRefused = true
    }
    if isRefused {
      // This was concealed until the code was verified. Now the user may know it.
      _ = try await views.store(flow.changing { $0.failed() })
      throw flow.request.refusal(.alreadyRegistered)
    }
    guard known != nil || rule != .existing else {
      throw flow.request.refusal(.accountNotFound, because: .noAccount)
    }
  }

  /// Stores everything that completes the flow in one transaction.
  /// - Parameters:
  ///   - flow: the flow with its proofs.
  ///   - completed: the flow as it is stored, without them.
  private func apply(
    _ flow: FlowTransaction, _ completed: FlowTransaction, before known: Account?, _ outcome: AccountOutcome,
    _ ending: FlowEnding
  ) async throws(FlowError) {
    let request = flow.request
    // A completed record no longer holds its pending proofs.
    var record = flow.record
    record.account = outcome.account.id
    var judged = flow
    judged.machine = FlowMachine(record)
    // This change comes first: if two requests complete the same flow at once, the second only learns that the step is
    // no longer open.
    let first =
      flow.changes + [.putFlow(completed.record)] + (known.map { [Change.requireEpoch(AccountVersion($0))] } ?? [])
      + outcome.changes
    var all = ending.changes + outcome.lastChanges
    if outcome.isChange { all.append(.endSessions(account: outcome.account.id, except: ending.session?.token)) }
    if let session = ending.session, !flow.hasNoEffect { all.append(.audit(startEvent(session, completed))) }
    all += changeEvents(judged, before: known, after: outcome.account, endsSessions: outcome.isChange)
    let (last, renewals) = (all, outcome.renewals)
    var result = try await asking { () async throws(StoreFault) in
      try await store.apply(first + renewals + last, at: request.now)
    }
    if case .conflict(.recordChanged) = result, !renewals.isEmpty {
      result = try await asking { () async throws(StoreFault) in try await store.apply(first + last, at: request.now) }
    }
    switch result {
    case .applied: storage.pending.remove(flow.id.hash)
    // Attack: two right codes at once create only one account. "Already registered" would tell the loser about the
    // winner.
    case .conflict(.identifierTaken) where outcome.isNew && flow.record.endingRule == .any:
      throw request.refusal(.stepNotOpen, because: .changedMeanwhile)
    // The session that the sign-in continues has ended at this moment. The next attempt begins another one.
    case .conflict(.sessionEnded) where flow.record.startedIn == nil:
      throw request.refusal(.stepNotOpen, because: .changedMeanwhile)
    case .conflict(let conflict): throw request.refusal(conflict)
    }
  }

  /// The view of the completed flow. The token and the code are only in this response.
  private func view(
    _ flow: FlowTransaction, _ completed: FlowTransaction, _ outcome: AccountOutcome, _ ending: FlowEnding
  ) -> FlowView {
    let (record, request) = (completed.record, flow.request)
    var view = FlowView(
      id: flow.id, flow: record.name, purpose: flow.record.purpose, status: .complete, expiresAt: record.expiresAt,
      choices: [], step: nil, passed: flow.record.passed,
      account: record.isByOperator
        ? nil : AccountView(outcome.account, isNew: outcome.isNew, pads: request.generation.pads),
      session: ending.session.map { SessionView($0, token: ending.secret, at: flow.request.now) }, next: ending.next,
      isOfBrowser: record.browser != nil && record.browser == request.client.browser)
    view.returnTo = flow.record.returnTo
    // The browser passed the steps, so it is the known device, also if an app receives the result.
    view.deviceToken = ending.device
    view.staysSignedIn = flow.record.isRemembered
    let exposed = flow.record.pendingProofs.exposed ?? []
    view.exposed = exposed.filter { !flow.record.replacesSecret(of: $0) }.sorted()
    return view
  }
}
