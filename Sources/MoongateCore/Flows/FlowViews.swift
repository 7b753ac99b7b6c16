import MoongateSDK

/// The limits of the open step that its view tells about.
private struct ShownLimits: Sendable {
  let policy: ProviderPolicy
  let limits: StepLimits
  /// The limits on attempts at the step's other codes.
  let also: [ResolvedLimit]
  let timer: ResendTimer?
  /// The state, if it was read when the flow was stored.
  var ledgerState: LedgerState?

  var query: LedgerQuery { LedgerQuery(limits.all + also, timer) }
}

/// Builds the views of flows that clients see.
struct FlowViews: FlowPart {
  let services: FlowServices
  let seals: FlowSeals
  let lookup: AccountLookup
  let checks: AccountChecks
  let grants: GrantChecks
  let storage: FlowStorage
  let admission: StepAdmission

  /// Stores the flow together with its other changes, and builds its view.
  func store(_ flow: FlowTransaction) async throws(FlowError) -> FlowView {
    var (shown, failure): (ShownLimits?, FlowError?) = (nil, nil)
    do throws(FlowError) { shown = try await shownLimits(flow) } catch { failure = error }
    let ledgerState = try await storage.store(flow, reading: shown?.query)
    // The flow is stored all the same: its message may have been sent already.
    if let failure { throw failure }
    shown?.ledgerState = ledgerState
    return try await view(of: flow, shown)
  }

  /// The view of a flow for its client. It never contains a code, and a token only in the response that created the
  /// session.
  func view(of flow: FlowTransaction) async throws(FlowError) -> FlowView {
    try await view(of: flow, try await shownLimits(flow))
  }

  /// Whether the view shows neither the step nor who the user is.
  ///
  /// Attack: the creator of an app's flow asks for it while someone else continues it in a browser, and reads who the
  /// code was sent to.
  private func isHidden(_ flow: FlowTransaction) -> Bool {
    let record = flow.record
    let isOfBrowser = record.browser != nil && record.browser == flow.request.client.browser
    return record.grant != nil && record.browser != nil && !isOfBrowser && flow.machine.state != .complete
  }

  private func view(of flow: FlowTransaction, _ shown: ShownLimits?) async throws(FlowError) -> FlowView {
    let (id, record, request) = (flow.id, flow.record, flow.request)
    let isOfBrowser = record.browser != nil && record.browser == request.client.browser
    // Attack: the creator of an app's flow sends its link to a victim and asks for it afterwards. Until the app has
    // redeemed its code at its own address, the view does not show who completed the flow, and it never shows the code.
    let isTold = flow.machine.state == .complete
    if isHidden(flow) {
      return FlowView(
        id: id, flow: record.name, purpose: record.purpose, status: record.status, expiresAt: record.expiresAt,
        choices: [], step: nil, passed: [],
        account: nil,
        session: nil, next: nil, isOfBrowser: false)
    }
    let due = record.status == .pending ? record.due : nil
    // The holder of an operator's link has authenticated nothing.
    let account = isTold && !record.isByOperator ? try await lookup.loadAccount(record.account, flow) : nil
    var view = FlowView(
      id: id, flow: record.name, purpose: record.purpose, status: record.status, expiresAt: record.expiresAt,
      choices: record.step == nil && record.accountChoice == nil ? try await choices(due, flow) : [],
      step: try await step(of: flow, shown), passed: record.passed,
      account: account.map { AccountView($0, isNew: record.isNewAccount, pads: request.generation.pads) },
      session: nil, next: isTold ? record.completedNext : nil, isOfBrowser: isOfBrowser)
    view.isUnderWay = !record.passed.isEmpty || !record.basis.introduced.isEmpty
    view.isSkippable = record.step == nil && due?.isSkippable ?? false
    if record.account == nil { view.claimedKinds = Set(record.pendingProofs.claimed.map(\.kind)) }
    view.isByOperator = record.isByOperator
    view.returnTo = record.returnTo
    view.app = isOfBrowser ? grants.receiver(of: record, request) : nil
    view.isEnrolling = due?.requirement == .enroll || due?.requirement == .replace
    if due?.requirement == .replace, let replaced = due?.choices.first {
      view.changeDue = try await lookup.loadAccount(record.account, flow)?.dueChanges[replaced]
    }
    view.isRemembered = record.offersRemembering ? record.isRemembered : nil
    view.staysSignedIn = record.isRemembered
    if isOfBrowser { (view.firstName, view.lastName) = (record.pendingProofs.firstName, record.pendingProofs.lastName) }
    return view
  }

  /// The providers with which the next step may begin. Once the user is authenticated, providers that the account
  /// cannot pass are left out. Before that, this would reveal which factors the account has.
  private func choices(_ due: StepRule?, _ flow: FlowTransaction) async throws(FlowError) -> [ProviderName] {
    let request = flow.request
    let configured = due.map { admission.fallbacks.beginnable($0, request) } ?? []
    // The choices of a step that accounts.lua requires already depend on the account.
    guard configured.count > 1, due?.requirement == nil,
      let account = try await lookup.loadAccount(flow.record.account, flow)
    else {
      return configured
    }
    let open = configured.filter { checks.isOpen($0, to: account, in: flow.record.purpose, request) }
    return open.isEmpty ? configured : open
  }

  private func step(of flow: FlowTransaction, _ shown: ShownLimits?) async throws(FlowError) -> StepView? {
    let (record, request) = (flow.record, flow.request)
    if case .choosingAccount(let choice) = flow.machine.state {
      var view = StepView(
        provider: choice.provider, fields: [], sentTo: nil, expiresAt: nil, resendAt: nil, attemptsLeft: nil,
        resendsLeft: nil, isSkippable: false)
      view.accounts = try await options(choice, flow)
      return view
    }
    guard case .open(let step, _) = flow.machine.state, let provider = registry(request)[step.provider] else {
      return nil
    }
    var view = StepView(
      provider: step.provider,
      fields: step.challenge.map { [$0.rule.field] } ?? step.fields ?? provider.descriptor.submitFields,
      sentTo: record.hidesRecipient ? step.identifier?.hint : step.identifier?.display,
      expiresAt: step.challenge?.expiresAt, resendAt: nil, attemptsLeft: nil, resendsLeft: nil,
      isSkippable: step.isSkippable,
      redirectTo: step.redirectTo)
    view.shown = try seals.shown(step, of: flow)
    let isCeremony = view.shown.contains { if case .ceremony = $0 { true } else { false } }
    if let wait = step.wait { view.retryAfter = max(.zero, wait.due - request.now) }
    if step.wait != nil || isCeremony {
      view.alternatives = try await choices(record.due, flow).filter { $0 != step.provider }
    }
    view.fallbacks = admission.fallbacks.others(of: step, flow)
    if let shown { try await addLimits(of: step, shown, to: &view, flow) }
    return view
  }

  /// The limits of the open step; nil if none is open or shown, or if its provider is no longer configured.
  private func shownLimits(_ flow: FlowTransaction) async throws(FlowError) -> ShownLimits? {
    guard !isHidden(flow), case .open(let step, _) = flow.machine.state, registry(flow.request)[step.provider] != nil,
      let policy = flow.request.generation.policies[step.provider]
    else { return nil }
    let limits = try await admission.limits(of: step, policy, flow)
    let also = try await admission.otherVerifyLimits(of: step, beside: limits.verify, flow)
    return ShownLimits(policy: policy, limits: limits, also: also, timer: step.challenge == nil ? nil : limits.timer)
  }

  /// Adds how many attempts and sends remain, and when the next ones are possible.
  private func addLimits(of step: StepRecord, _ shown: ShownLimits, to view: inout StepView, _ flow: FlowTransaction)
    async throws(FlowError)
  {
    let request = flow.request
    let (policy, limits, also) = (shown.policy, shown.limits, shown.also)
    let ledgerState: LedgerState
    if let read = shown.ledgerState {
      ledgerState = read
    } else {
      ledgerState = try await asking { () async throws(StoreFault) in
        try await store.ledgerState(shown.query, at: request.now)
      }
    }
    let states = ledgerState.counters
    let isTold = { (limit: ResolvedLimit) in !admission.hides(policy, flow) || !limit.disablesPerson }
    let send = zip(limits.send, states.prefix(limits.send.count)).filter { isTold($0.0) }
    let attempts =
      Array(zip(limits.verify, states.dropFirst(limits.send.count))) + zip(also, states.dropFirst(limits.all.count))
    let verify = attempts.filter { isTold($0.0) }
    view.attemptsLeft = verify.map { $1.isLocked(at: request.now) || $1.isDisabled ? 0 : max(0, $0.max - $1.used) }
      .min()
    view.lockedUntil = verify.compactMap { $1.isLocked(at: request.now) ? $1.lockedUntil : nil }.max()
    guard let challenge = step.challenge else { return }
    view.resendsLeft = send.map { $1.isLocked(at: request.now) || $1.isDisabled ? 0 : max(0, $0.max - $1.used) }.min()
    // Once the code has expired, a resend is allowed at once, unless a limit is reached.
    let open = send.compactMap { limit, state -> Timestamp? in
      guard state.isLocked(at: request.now) || state.used >= limit.max else { return nil }
      return state.opensAt(limit, at: request.now)
    }
    view.resendAt = ([ledgerState.resendAt.map { min($0, challenge.expiresAt) }] + open).compactMap(\.self).max()
  }

  /// The options of a user who chooses among several accounts.
  private func options(_ choice: AccountChoice, _ flow: FlowTransaction) async throws(FlowError) -> [AccountOption] {
    var options: [AccountOption] = []
    for (index, version) in choice.accounts.enumerated() {
      guard let account = try await lookup.recoverable([version], by: choice.identifier, flow).first else { continue }
      let sessions = try await asking { () async throws(StoreFault) in try await store.sessions(of: account.id) }
      let used = sessions.map(\.lastSeenAt) + [account.lastSeenAt]
      options.append(
        AccountOption(
          value: String(index + 1), createdAt: account.createdAt, lastUsedAt: used.max() ?? account.lastSeenAt))
    }
    return options
  }
}

extension FlowRecord {
  /// Whether the current step sends its code to an identifier that only the account's owner may see in full.
  ///
  /// Attack: someone who has the victim's password reads the victim's phone number from the step that accounts.lua
  /// requires next.
  fileprivate var hidesRecipient: Bool { startedIn == nil && due?.requirement == .prove }
}

extension Identifier {
  /// The form in which its owner recognises the identifier; nil for a federated identity that has only an issuer and a
  /// subject.
  package var shown: String? { kind == .federated && value.hasSuffix(display) ? nil : display }

  /// A masked form that its owner recognises and others cannot use: the last two digits of a phone number, or the first
  /// letter and the domain of an email address, or the first letter of a name. nil if the owner would not recognise it.
  package var hint: String? {
    guard let display = shown else { return nil }
    if kind == .name { return "\(display.prefix(1))•••" }
    guard let at = display.firstIndex(of: "@") else {
      let hidden = display.count(where: \.isNumber) - 2
      var seen = 0
      return String(
        display.map { character in
          guard character.isNumber else { return character }
          seen += 1
          return seen > hidden ? character : "•"
        })
    }
    return "\(display.prefix(1))•••\(display[at...])"
  }
}
