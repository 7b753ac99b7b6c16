import MoongateSDK

// Builds the views that clients see.

extension FlowEngine {
  /// The view of a flow for its client. It never contains a code, and a token only in the response that created the
  /// session.
  func view(of record: FlowRecord, id: FlowID, _ request: RequestContext) async throws(FlowError) -> FlowView {
    let isOfBrowser = record.browser != nil && record.browser == request.client.browser
    // Attack: the creator of an app's flow asks for it while someone else continues it in a browser, and reads who the
    // code was sent to.
    if record.app != nil, record.browser != nil, !isOfBrowser, record.status != .complete || record.appCode != nil {
      return FlowView(
        id: id, flow: record.name, purpose: record.purpose, status: record.status, expiresAt: record.expiresAt,
        choices: [], step: nil, passed: [],
        account: nil,
        session: nil, next: nil, isOfBrowser: false)
    }
    let due = record.status == .pending ? record.due : nil
    // Attack: the creator of an app's flow sends its link to a victim and asks for it afterwards. Until the app has
    // redeemed its code at its own address, the view does not show who completed the flow, and it never shows the code.
    let isTold = record.status == .complete && record.appCode == nil
    let account = isTold ? try await loadAccount(record.account) : nil
    var view = FlowView(
      id: id, flow: record.name, purpose: record.purpose, status: record.status, expiresAt: record.expiresAt,
      choices: record.step == nil && record.accountChoice == nil ? try await choices(due, of: record, request) : [],
      step: try await step(of: record, id: id, request), passed: record.passed,
      account: account.map { AccountView($0, isNew: record.isNewAccount, pads: request.generation.pads) },
      session: nil, next: isTold ? record.completedNext : nil, isOfBrowser: isOfBrowser)
    view.isUnderWay = !record.passed.isEmpty || record.basis?.introduced.isEmpty == false
    view.returnTo = record.returnTo
    view.isForApp = record.app != nil
    view.isEnrolling = due?.requirement == .enroll
    if isOfBrowser { (view.firstName, view.lastName) = (record.gathered.firstName, record.gathered.lastName) }
    return view
  }

  /// The providers with which the next step may begin. Once the user is authenticated, providers that the account
  /// cannot pass are left out. Before that, this would reveal which factors the account has.
  private func choices(_ due: StepRule?, of record: FlowRecord, _ request: RequestContext) async throws(FlowError)
    -> [ProviderName]
  {
    let configured = due.map { beginnable($0, request) } ?? []
    // The choices of a step that accounts.lua requires already depend on the account.
    guard configured.count > 1, due?.requirement == nil, let account = try await loadAccount(record.account) else {
      return configured
    }
    let open = configured.filter { isOpen($0, to: account, in: record.purpose, request) }
    return open.isEmpty ? configured : open
  }

  private func step(of record: FlowRecord, id: FlowID, _ request: RequestContext) async throws(FlowError) -> StepView? {
    if let choice = record.accountChoice {
      var view = StepView(
        provider: choice.provider, fields: [], sentTo: nil, expiresAt: nil, resendAt: nil, attemptsLeft: nil,
        resendsLeft: nil, isSkippable: false)
      view.accounts = try await options(choice)
      return view
    }
    guard let step = record.step, let provider = registry(request)[step.provider] else { return nil }
    var view = StepView(
      provider: step.provider,
      fields: step.challenge.map { [$0.rule.field] } ?? step.fields ?? provider.descriptor.submitFields,
      sentTo: record.hidesRecipient ? step.identifier?.hint : step.identifier?.display,
      expiresAt: step.challenge?.expiresAt, resendAt: nil, attemptsLeft: nil, resendsLeft: nil,
      isSkippable: step.isSkippable,
      redirectTo: step.redirectTo)
    view.shown = try shown(step, of: record, id: id)
    let isCeremony = view.shown.contains { if case .ceremony = $0 { true } else { false } }
    if let wait = step.wait { view.retryAfter = max(.zero, wait.due - request.now) }
    if step.wait != nil || isCeremony {
      view.alternatives = try await choices(record.due, of: record, request).filter { $0 != step.provider }
    }
    view.fallbacks = fallbacks(of: step, record, request)
    guard let policy = request.generation.policies[step.provider] else { return view }
    let subject = subject(of: step, policy, record, request)
    let account = policy.hasVaryingNumbers ? try await loadAccount(subject.account) : nil
    let limits = try limits(
      policy, subject, facts: facts(record, subject: subject, account: account, request), expiredAt: nil, request)
    let timer = step.challenge == nil ? nil : limits.timer
    let also = try await otherVerifyLimits(of: step, record, beside: limits.verify, request)
    let standing = try await asking { () async throws(StoreFault) in
      try await store.standing(limits.all + also, timer, at: request.now)
    }
    let states = standing.counters
    let isTold = { (limit: ResolvedLimit) in !hides(policy, record) || !limit.turnsPersonOff }
    let send = zip(limits.send, states.prefix(limits.send.count)).filter { isTold($0.0) }
    let tries =
      Array(zip(limits.verify, states.dropFirst(limits.send.count))) + zip(also, states.dropFirst(limits.all.count))
    let verify = tries.filter { isTold($0.0) }
    view.attemptsLeft = verify.map { $1.isLocked(at: request.now) || $1.isDisabled ? 0 : max(0, $0.max - $1.used) }
      .min()
    view.lockedUntil = verify.compactMap { $1.isLocked(at: request.now) ? $1.lockedUntil : nil }.max()
    guard let challenge = step.challenge else { return view }
    view.resendsLeft = send.map { $1.isLocked(at: request.now) || $1.isDisabled ? 0 : max(0, $0.max - $1.used) }.min()
    // Once the code has expired, a resend is allowed at once, unless a limit is reached.
    let open = send.compactMap { limit, state -> Timestamp? in
      if state.isLocked(at: request.now) { return state.lockedUntil }
      guard state.used >= limit.max, let window = limit.window, let oldest = state.oldest else { return nil }
      return oldest + window
    }
    view.resendAt = ([standing.resendAt.map { min($0, challenge.expiresAt) }] + open).compactMap(\.self).max()
    return view
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
  /// letter and the domain of an email address. nil if the owner would not recognise it.
  package var hint: String? {
    guard let display = shown else { return nil }
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
