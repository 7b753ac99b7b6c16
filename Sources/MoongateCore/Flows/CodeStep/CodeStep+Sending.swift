import MoongateSDK

// Sends codes: checks whether a message may be sent, creates it, and handles failed deliveries.

/// The recipient of a code and what is known about them.
private struct CodeRecipient: Sendable {
  let asked: CodeRequest
  let owners: IdentifierOwners
  /// Whether the flow is for such a recipient. If not, a policy that reveals refuses.
  let isWanted: Bool
  /// Whether an unknown user must be indistinguishable from a known one.
  let conceals: Bool
  /// The step as it will be open, without a new code. Codes that it already waits for are its alternatives.
  let step: StepRecord

  /// The account whose facts policies see.
  var account: Account? { asked.own ?? owners.only }
}

/// A code that may be sent: charged, but not sent yet.
private struct ChargedCode: Sendable {
  let sent: SentCode
  let charged: Charged
  let timer: ResendTimer
  /// Whether a recipient exists and no limit has disabled the credential.
  let reaches: Bool
  /// Sends the code. Returns nil on success.
  let deliver: @Sendable () async -> FailedDelivery?

  func settled(_ outcome: Settlement.Outcome, _ request: RequestContext) -> Change {
    charged.settled(outcome, timer: timer, request)
  }
}

/// The result of preparing a provider's code.
private enum Readiness: Sendable {
  case ready(ChargedCode)
  /// The policy requires another provider to be passed first.
  case needs(ProviderName)
}

extension CodeStep {
  /// Sends a code if all checks allow it, and stores the step that waits for it.
  func send(_ asked: CodeRequest, _ flow: FlowTransaction) async throws(FlowError) -> FlowView {
    let (record, request) = (flow.record, flow.request)
    let (identifier, own, name) = (asked.identifier, asked.own, asked.policy.provider)
    let owners =
      own == nil && record.purpose.recoveredProvider != nil
      ? try await lookup.recoverable(by: identifier, flow)
      : IdentifierOwners(holder: try await lookup.holder(of: identifier, flow))
    try admission.demandUnlocked(own ?? owners.only, asked.policy, flow)
    try demandRight(to: identifier, of: own, flow)
    let senders = fallbacks.senders(beside: name, flow)
    let conceals = senders.contains { request.generation.policies[$0]?.unknownAccount == .conceal }
    let recipient = recipient(asked, owners, senders: senders, conceals: conceals, record)
    let followers = Array(
      senders.drop { $0 != name }.dropFirst().filter { !(recipient.step.unreachable ?? []).contains($0) })
    switch try await ready(asked.provider, asked.policy, for: recipient, isBegin: asked.isBegin, flow) {
    case .needs(let other): return try await ask(for: other, first: flow)
    case .ready(let first) where conceals: return try await sendConcealed(first, followers, recipient, flow)
    case .ready(let first): return try await sendOpenly(first, followers, recipient, flow)
    }
  }

  private func recipient(
    _ asked: CodeRequest, _ owners: IdentifierOwners, senders: [ProviderName], conceals: Bool, _ record: FlowRecord
  ) -> CodeRecipient {
    let (identifier, own, name) = (asked.identifier, asked.own, asked.policy.provider)
    let isTaken = own.map { own in owners.holder.map { $0.id != own.id } ?? false && !record.purpose.joinsAccounts }
    let isWanted =
      isTaken.map { !$0 } ?? (record.accountRule == .any || owners.isEmpty != (record.accountRule == .existing))
    var step = StepRecord(
      provider: name, identifier: identifier, isSkippable: record.due?.isSkippable ?? false,
      account: (own ?? owners.holder).map(AccountVersion.init), challenge: nil)
    if let own, let holder = owners.holder, holder.id != own.id { step.holder = AccountVersion(holder) }
    if !owners.claimants.isEmpty { step.claimants = owners.claimants.map(AccountVersion.init) }
    // Attack: a code that was sent before the number changed hands, beside one that was sent since, opens the account
    // of the number's new owner.
    if let open = record.step, open.identifier == identifier, senders.contains(open.provider),
      open.isForTheSame(as: step)
    {
      step.alternatives = open.codes.filter { senders.contains($0.provider) }
      step.unreachable = open.unreachable
    }
    return CodeRecipient(asked: asked, owners: owners, isWanted: isWanted, conceals: conceals, step: step)
  }

  /// Requires another provider first. The flow must have identified the account already: a number alone is not a proof.
  private func ask(for provider: ProviderName, first flow: FlowTransaction) async throws(FlowError) -> FlowView {
    guard flow.record.account != nil else { throw flow.request.refusal(.denied) }
    return try await views.store(flow.changing { $0.requireFirst(provider) })
  }

  /// Charges a provider's message and generates its code.
  private func ready(
    _ provider: any CodeProvider, _ policy: ProviderPolicy, for recipient: CodeRecipient, isBegin: Bool = false,
    _ flow: FlowTransaction
  ) async throws(FlowError) -> Readiness {
    let (record, request) = (flow.record, flow.request)
    let name = policy.provider
    let identifier = recipient.asked.identifier
    let step = recipient.step.sent(by: name)
    let hides = admission.hides(policy, flow)
    let others = try await admission.otherVerifyLimits(of: step, beside: [], flow)
    let subject = try await subject(of: step, policy, recipient, flow)
    let facts = policies.facts(flow, subject: subject, account: recipient.account)
    let expiredAt = step.challenge.map(\.expiresAt).flatMap { request.now >= $0 ? $0 : nil }
    let limits = try policies.limits(policy, subject, facts: facts, expiredAt: expiredAt, request)
    if isBegin { try await ledger.count(limits.begin, as: .begin, request) }
    if !recipient.conceals, let code = openRefusal(of: recipient, flow) {
      throw try await admission.revealing(code, name, limits.send, .send, request)
    }
    let question = StepQuestion(
      action: .send, policy: policy, limits: limits, facts: facts, account: recipient.account,
      passed: flow.record.passed)
    if let first = try await policies.judge(question, request) { return .needs(first) }
    let charged = try await ledger.charge(
      limits.send, for: .send, timer: limits.timer, hidesDisabled: hides,
      unlessLocked: (limits.verify + others).filter(\.key.isPersonal), request)
    // The code of an unknown user whom the policy conceals, or of a user whom a limit has disabled, is sent to no one,
    // so no entered code can be right.
    let reaches = (recipient.isWanted || !recipient.owners.isEmpty) && !charged.isDisabled
    let texts = record.codes[name] ?? CodeTexts(policy)
    let (code, challenge) = makeCode(texts, for: name, identifier, reaches: reaches, flow)
    let localized = request.inLanguage(messengers.language(for: recipient.account, request))
    return .ready(
      ChargedCode(
        sent: SentCode(provider: name, challenge: challenge), charged: charged, timer: limits.timer, reaches: reaches,
        deliver: deliverer(provider, code, texts, identifier, localized)))
  }

  /// Why a policy that reveals which accounts exist sends no code; nil if it does.
  private func openRefusal(of recipient: CodeRecipient, _ flow: FlowTransaction) -> RefusalCode? {
    guard recipient.isWanted else { return recipient.owners.isEmpty ? .accountNotFound : .alreadyRegistered }
    guard recipient.asked.own == nil, recipient.owners.isEmpty else { return nil }
    let (record, request) = (flow.record, flow.request)
    let rule = request.generation.accounts.registration
    // An earlier step has verified an address of one of the domains, or a later one may.
    let later = record.steps.dropFirst(record.position + 1).flatMap(\.choices).compactMap { registry(request)[$0] }
    if !rule.domains.isEmpty, later.contains(where: { $0.descriptor.identifierKinds.contains(.email) }) { return nil }
    return rule.refusal(ofNew: record.proved + [recipient.asked.identifier], isInvited: record.invitation != nil)
  }

  /// The subject that a message is counted against.
  private func subject(
    of step: StepRecord, _ policy: ProviderPolicy, _ recipient: CodeRecipient, _ flow: FlowTransaction
  ) async throws(FlowError) -> StepSubject {
    let identifier = recipient.asked.identifier
    let target = StepTarget(
      identifier: identifier, account: flow.record.counted(identifier, step.account),
      claimants: recipient.owners.claimants.map(\.id))
    var subject = try await policies.sendersSubject(policy, target, flow)
    // Attack: accounts that claim other users' addresses, each with a device that is trusted for it. Only identifiers
    // that the account has verified are exempt from the ceilings.
    let holds = recipient.account?.identifiers.contains { $0.identifier == identifier && $0.verifiedAt != nil } ?? false
    subject.isTrusted = subject.isTrusted && holds
    return subject
  }

  /// Generates a code and what the flow keeps of it.
  /// - Parameter reaches: whether the code is sent to a user. If not, no entered code is right.
  private func makeCode(
    _ texts: CodeTexts, for name: ProviderName, _ identifier: Identifier, reaches: Bool, _ flow: FlowTransaction
  ) -> (String, Challenge) {
    let now = flow.request.now
    let code = texts.rule.make(from: random)
    // Compute both values whichever is used, so that the time does not differ.
    let answerable = keys.codeMAC(
      code, flow: flow.id.hash, provider: name.rawValue, identifier: identifier.value, purpose: flow.record.name)
    let unanswerable = random.bytes(answerable.count)
    let challenge = Challenge(
      mac: reaches ? answerable : unanswerable, issuedAt: now, expiresAt: now + texts.rule.lifetime, rule: texts.rule)
    return (code, challenge)
  }

  /// Prepares the code of the next provider of a `fallback`; nil if it is no longer configured.
  private func ready(_ name: ProviderName, for recipient: CodeRecipient, _ flow: FlowTransaction)
    async throws(FlowError) -> Readiness?
  {
    guard let provider = registry(flow.request)[name] as? any CodeProvider,
      let policy = flow.request.generation.policies[name]
    else { return nil }
    return try await ready(provider, policy, for: recipient, flow)
  }

  // MARK: - Where the policy conceals

  /// Responds first and delivers the message afterwards.
  ///
  /// Attack: the response, or its time, tells whether a message was sent, by which provider, or why not, and so who has
  /// an account and who uses a messenger. Everything that a client could observe later is therefore decided before the
  /// delivery and does not depend on its result: the codes of all providers are generated and charged for known and
  /// unknown users, and the step always shows the first provider. A provider's reason is never shown.
  private func sendConcealed(
    _ first: ChargedCode, _ followers: [ProviderName], _ recipient: CodeRecipient, _ before: FlowTransaction
  ) async throws(FlowError) -> FlowView {
    let request = before.request
    var codes = [first]
    for name in followers {
      do throws(FlowError) {
        if case .ready(let code)? = try await ready(name, for: recipient, before) { codes.append(code) }
      } catch {
        // A refused message is refused for known and unknown users alike. The first provider's message is still sent.
        if case .store = error { throw error }
      }
    }
    let step = recipient.step.waiting(for: codes.map(\.sent), at: request.now)
    let opened = before.changing { $0.opened(step) }
    let sent = event(.codeSent, opened, step: step)
    var flow = opened
    flow.changes += codes.map { $0.settled(.success, request) } + [.audit(sent)]
    let view = try await views.store(flow)
    // For an unknown user, the same is started, and sends nothing.
    let chain = first.reaches ? codes.filter(\.reaches) : []
    let isStarted = deliveries.start { [self] in
      for (index, code) in chain.enumerated() {
        guard let failed = await code.deliver() else {
          if index > 0 { audit.record(event(.codeSent, opened, step: step.sent(code.sent))) }
          return
        }
        audit.record(report(failed, of: step.sent(code.sent), opened))
      }
    }
    if !isStarted, !chain.isEmpty { audit.record(event(.deliveryFailed, opened, step: step)) }
    return view
  }

  // MARK: - Where it does not

  /// Delivers the message first and responds afterwards. If a provider of a `fallback` cannot deliver, the next one
  /// sends.
  private func sendOpenly(
    _ first: ChargedCode, _ followers: [ProviderName], _ recipient: CodeRecipient, _ before: FlowTransaction
  ) async throws(FlowError) -> FlowView {
    let request = before.request
    var waiting = recipient.step
    var code = first
    var followers = followers[...]
    var refusal = Refusal(.deliveryFailed, decision: request.client.decision)
    while let failed = await code.deliver() {
      let name = code.sent.provider
      let event = report(failed, of: waiting.sent(code.sent), before)
      request.trace.note(event.detail.filter { $0.key != "request" })
      try await ledger.settle([code.settled(.refundPerson, request), .audit(event)], request)
      if let reason = failed.reason {
        (refusal.provider, refusal.deliveryReason) = (name, reason)
        if reason.isPermanent { waiting.unreachable = (waiting.unreachable ?? []) + [name] }
      }
      var next: Readiness?
      while next == nil, let name = followers.popFirst() {
        next = try await ready(name, for: recipient, before)
      }
      switch next {
      case .ready(let ready): code = ready
      case .needs(let other): return try await ask(for: other, first: before)
      case nil: throw .refused(refusal)
      }
    }
    let step = waiting.waiting(for: [code.sent], at: request.now)
    var flow = before.changing { $0.opened(step) }
    let sent = event(.codeSent, flow, step: step)
    flow.changes += [code.settled(.success, request), .audit(sent)]
    return try await views.store(flow)
  }
}

extension StepRecord {
  /// Whether both steps are about the same accounts in the same versions.
  fileprivate func isForTheSame(as other: StepRecord) -> Bool {
    account == other.account && epoch == other.epoch && holder == other.holder && claimants == other.claimants
  }

  /// The step with new codes, of which it shows the first, and with its unexpired earlier codes.
  fileprivate func waiting(for new: [SentCode], at now: Timestamp) -> StepRecord {
    guard let first = new.first else { return self }
    let kept = (alternatives ?? []).filter { old in
      now < old.challenge.expiresAt && !new.contains { $0.provider == old.provider }
    }
    var step = sent(first)
    let others = new.dropFirst() + kept
    step.alternatives = others.isEmpty ? nil : Array(others)
    return step
  }
}
