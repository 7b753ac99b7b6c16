import Logging
import MoongateSDK

// Sends codes: checks whether a message may be sent, creates it, and handles failed deliveries.

/// The recipient of a code and what is known about them.
private struct CodeRecipient: Sendable {
  let identifier: Identifier
  /// The account that the flow has identified.
  let own: Account?
  let owners: IdentifierOwners
  /// Whether the flow is for such a recipient. If not, a policy that reveals refuses.
  let isWanted: Bool
  /// Whether an unknown user must be indistinguishable from a known one.
  let conceals: Bool
  /// The step as it will be open, without a new code. Codes that it already waits for are its alternatives.
  let step: StepRecord

  /// The account whose facts policies see.
  var account: Account? { own ?? owners.only }
}

/// A code that may be sent: charged, but not sent yet.
private struct ReadyCode: Sendable {
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
  case ready(ReadyCode)
  /// The policy requires another provider to be passed first.
  case needs(ProviderName)
}

/// A failed delivery of a code.
private struct FailedDelivery: Sendable {
  /// The redacted error, for the operator.
  let fault: String
  /// The provider's declared reason, if it gave one.
  let reason: DeliveryReason?
}

extension FlowEngine {
  /// Sends a code if all checks allow it, and stores the step that waits for it.
  /// - Parameters:
  ///   - own: the account that the flow has identified.
  ///   - isBegin: whether this begins the step, so that it counts as begun.
  func send(
    _ provider: any CodeProvider, to identifier: Identifier, _ policy: ProviderPolicy, _ before: FlowMachine,
    of own: Account?,
    isBegin: Bool = false, id: FlowID, _ request: RequestContext
  ) async throws(FlowError) -> FlowView {
    let record = before.record
    let owners =
      own == nil && record.purpose.recoveredProvider != nil
      ? try await recoverable(by: identifier, in: record.purpose, request)
      : IdentifierOwners(holder: try await holder(of: identifier))
    try demandUnlocked(own ?? owners.only, policy, record, request)
    try demandRight(to: identifier, of: own, record, request)
    let senders = senders(of: record, beside: policy.provider, request)
    let conceals = senders.contains { request.generation.policies[$0]?.unknownAccount == .conceal }
    let recipient = recipient(
      identifier, own, owners, senders: senders, policy.provider, record, conceals: conceals, request)
    let followers = senders.drop { $0 != policy.provider }.dropFirst().filter {
      !(recipient.step.unreachable ?? []).contains($0)
    }
    switch try await ready(provider, policy, for: recipient, record, isBegin: isBegin, id: id, request) {
    case .needs(let other): return try await ask(for: other, first: before, id: id, request)
    case .ready(let first) where conceals:
      return try await sendConcealed(first, followers, recipient, before, id: id, request)
    case .ready(let first): return try await sendOpenly(first, followers, recipient, before, id: id, request)
    }
  }

  private func recipient(
    _ identifier: Identifier, _ own: Account?, _ owners: IdentifierOwners, senders: [ProviderName],
    _ name: ProviderName, _ record: FlowRecord,
    conceals: Bool, _ request: RequestContext
  ) -> CodeRecipient {
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
    return CodeRecipient(
      identifier: identifier, own: own, owners: owners, isWanted: isWanted, conceals: conceals, step: step)
  }

  /// Requires another provider first. The flow must have identified the account already: a number alone is not a proof.
  private func ask(for provider: ProviderName, first before: FlowMachine, id: FlowID, _ request: RequestContext)
    async throws(FlowError) -> FlowView
  {
    guard before.record.account != nil else { throw request.refusal(.denied) }
    var machine = before
    machine.requireNext(provider)
    return try await store(machine, [], id: id, request)
  }

  /// Charges a provider's message and generates its code.
  private func ready(
    _ provider: any CodeProvider, _ policy: ProviderPolicy, for recipient: CodeRecipient, _ record: FlowRecord,
    isBegin: Bool = false, id: FlowID,
    _ request: RequestContext
  ) async throws(FlowError) -> Readiness {
    let name = policy.provider
    let identifier = recipient.identifier
    let step = recipient.step.sent(by: name)
    let hides = hides(policy, record)
    let others = try await otherVerifyLimits(of: step, record, beside: [], request)
    var subject = subject(
      policy, identifier, account: counted(identifier, step.account, record),
      claimants: recipient.owners.claimants.map(\.id), flow: id.hash, request)
    // Attack: accounts that claim strangers' addresses, each with a device that is trusted for it. Only identifiers
    // that the account has verified are exempt from the ceilings.
    let holds = recipient.account?.identifiers.contains { $0.identifier == identifier && $0.verifiedAt != nil } ?? false
    subject.isTrusted = subject.isTrusted && holds
    subject = subject.of(ownDevice: hasPassed(anySenderOf: record, beside: name, for: subject.account, request))
    let facts = facts(record, subject: subject, account: recipient.account, request)
    let expiredAt = step.challenge.map(\.expiresAt).flatMap { request.now >= $0 ? $0 : nil }
    let limits = try limits(policy, subject, facts: facts, expiredAt: expiredAt, request)
    if isBegin { try await count(limits.begin, as: .begin, request) }
    if !recipient.isWanted, !recipient.conceals {
      throw try await revealing(
        recipient.owners.isEmpty ? .accountNotFound : .alreadyRegistered, name, limits.send, .send, request)
    }
    if let first = try await judge(.send, by: policy, limits, facts: facts, account: recipient.account, request) {
      return .needs(first)
    }
    let isOff = try await refuseWhileLocked(
      (limits.verify + others).filter(\.key.isPersonal), for: .send, hidesDisabled: hides, request)
    let charged = try await charge(limits.send, for: .send, timer: limits.timer, hidesDisabled: hides, request)
    let texts = record.codes[name] ?? CodeTexts(policy)
    let code = texts.rule.make(from: random)
    // The code of an unknown user whom the policy conceals, or of a user whom a limit has disabled, is sent to no one,
    // so no entered code can be right.
    let reaches = (recipient.isWanted || !recipient.owners.isEmpty) && !isOff && !charged.isOff
    // Compute both values whichever is used, so that the time does not differ.
    let answerable = keys.codeMAC(
      code, flow: id.hash, provider: name.rawValue, identifier: identifier.value, purpose: record.name)
    let unanswerable = random.bytes(answerable.count)
    let challenge = Challenge(
      mac: reaches ? answerable : unanswerable, issuedAt: request.now, expiresAt: request.now + texts.rule.lifetime,
      rule: texts.rule)
    return .ready(
      ReadyCode(
        sent: SentCode(provider: name, challenge: challenge), charged: charged, timer: limits.timer, reaches: reaches,
        deliver: deliverer(
          provider, code, texts, identifier, request.speaking(language(for: recipient.account, request)))))
  }

  /// Prepares the code of the next provider of a `fallback`; nil if it is no longer configured.
  private func ready(
    _ name: ProviderName, for recipient: CodeRecipient, _ record: FlowRecord, id: FlowID, _ request: RequestContext
  ) async throws(FlowError) -> Readiness? {
    guard let provider = registry(request)[name] as? any CodeProvider, let policy = request.generation.policies[name]
    else { return nil }
    return try await ready(provider, policy, for: recipient, record, id: id, request)
  }

  // MARK: - Where the policy conceals

  /// Responds first and delivers the message afterwards.
  ///
  /// Attack: the response, or its time, tells whether a message was sent, by which provider, or why not, and so who has
  /// an account and who uses a messenger. Everything that a client could observe later is therefore decided before the
  /// delivery and does not depend on its result: the codes of all providers are generated and charged for known and
  /// unknown users, and the step always shows the first provider. A provider's reason is never shown.
  private func sendConcealed(
    _ first: ReadyCode, _ followers: [ProviderName], _ recipient: CodeRecipient, _ before: FlowMachine, id: FlowID,
    _ request: RequestContext
  ) async throws(FlowError) -> FlowView {
    var codes = [first]
    for name in followers {
      do throws(FlowError) {
        if case .ready(let code)? = try await ready(name, for: recipient, before.record, id: id, request) {
          codes.append(code)
        }
      } catch {
        // A refused message is refused for known and unknown users alike. The first provider's message is still sent.
        if case .store = error { throw error }
      }
    }
    var machine = before
    let step = recipient.step.waiting(for: codes.map(\.sent), at: request.now)
    machine.opened(step)
    let record = machine.record
    let sent = event(.codeSent, request, record: record, id: id, step: step)
    let view = try await store(machine, codes.map { $0.settled(.success, request) } + [.audit(sent)], id: id, request)
    guard first.reaches else { return view }
    let chain = codes.filter(\.reaches)
    let isStarted = deliveries.start { [self] in
      for (index, code) in chain.enumerated() {
        guard let failed = await code.deliver() else {
          if index > 0 { audit.record(event(.codeSent, request, record: record, id: id, step: step.sent(code.sent))) }
          return
        }
        audit.record(report(failed, of: step.sent(code.sent), record, id: id, request))
      }
    }
    if !isStarted { audit.record(event(.deliveryFailed, request, record: record, id: id, step: step)) }
    return view
  }

  // MARK: - Where it does not

  /// Delivers the message first and responds afterwards. If a provider of a `fallback` cannot deliver, the next one
  /// sends.
  private func sendOpenly(
    _ first: ReadyCode, _ followers: [ProviderName], _ recipient: CodeRecipient, _ before: FlowMachine, id: FlowID,
    _ request: RequestContext
  ) async throws(FlowError) -> FlowView {
    var waiting = recipient.step
    var code = first
    var followers = followers[...]
    var refusal = Refusal(.deliveryFailed, decision: request.client.decision)
    while let failed = await code.deliver() {
      let name = code.sent.provider
      let event = report(failed, of: waiting.sent(code.sent), before.record, id: id, request)
      request.notes.note(event.detail.filter { $0.key != "request" })
      try await settle([code.settled(.refundPerson, request), .audit(event)], request)
      if let reason = failed.reason {
        (refusal.provider, refusal.deliveryReason) = (name, reason)
        if reason.isPermanent { waiting.unreachable = (waiting.unreachable ?? []) + [name] }
      }
      var next: Readiness?
      while next == nil, let name = followers.popFirst() {
        next = try await ready(name, for: recipient, before.record, id: id, request)
      }
      switch next {
      case .ready(let ready): code = ready
      case .needs(let other): return try await ask(for: other, first: before, id: id, request)
      case nil: throw .refused(refusal)
      }
    }
    var machine = before
    let step = waiting.waiting(for: [code.sent], at: request.now)
    machine.opened(step)
    let sent = event(.codeSent, request, record: machine.record, id: id, step: step)
    return try await store(machine, [code.settled(.success, request), .audit(sent)], id: id, request)
  }

  // MARK: - Delivering

  /// Returns the closure that delivers the code. It returns the failure, if any.
  private func deliverer(
    _ provider: any CodeProvider, _ code: String, _ texts: CodeTexts, _ identifier: Identifier,
    _ request: RequestContext
  ) -> @Sendable () async -> FailedDelivery? {
    let gateway = request.generation.gateway
    let language = request.messageLanguage ?? language(request.client.languages, request)
    let message = CodeMessage(
      code: code, text: texts.text(code: code, service: gateway.service, in: language),
      domainBoundLine: "@\(gateway.publicURL.host) #\(code)",
      service: gateway.service, language: language.tag, translate: { language.translated($0) })
    let name = provider.descriptor.name
    let redaction = redaction(of: name, nil, [identifier], code: message, request)
    let tools = tools(for: provider, redaction, request)
    let descriptor = registry(request).descriptor(name)
    return { [providerMetrics, sendMetrics] () async in
      let start = ContinuousClock.now
      do throws(DeliveryFault) {
        try await provider.deliver(message, to: identifier, with: tools)
        providerMetrics.record(.deliver, of: name, .delivered, since: start)
        sendMetrics.record(name, to: identifier, isDelivered: true)
        return nil
      } catch {
        // An undeclared reason is treated as a fault, because it may reveal something about the user.
        let reason = error.declared.flatMap { descriptor?.deliveryReason($0) }
        sendMetrics.record(name, to: identifier, isDelivered: false)
        providerMetrics.record(.deliver, of: name, reason == nil ? .fault : .undeliverable, since: start)
        // The text is redacted because it goes into the log and the audit trail.
        return FailedDelivery(fault: redaction(error.reason), reason: reason)
      }
    }
  }

  /// Logs a failed delivery.
  /// - Returns: its audit event.
  private func report(
    _ failed: FailedDelivery, of step: StepRecord, _ record: FlowRecord, id: FlowID, _ request: RequestContext
  ) -> AuditEvent {
    var event = event(.deliveryFailed, request, record: record, id: id, step: step)
    var metadata: Logger.Metadata = [
      "provider": "\(step.provider)", "fault": "\(failed.fault)", "decision": "\(event.id)",
      "request": "\(request.client.decision)",
    ]
    if let reason = failed.reason {
      event.detail["reason"] = reason.reason.rawValue
      event.detail["fault"] = failed.fault
      metadata["reason"] = "\(reason.reason.rawValue)"
    } else {
      event.detail.merge(faultDetail(failed.fault, of: step.provider, in: .deliver, at: clock.now())) { $1 }
    }
    logger.log(level: failed.reason == nil ? .error : .notice, "a code could not be delivered", metadata: metadata)
    return event
  }

  /// The messenger that gateway.lua configures for a provider's messages.
  func messenger(for provider: any Provider, _ request: RequestContext) -> (any Messenger)? {
    let settings = request.generation.gateway.providers[provider.descriptor.name]
    let names = provider.descriptor.settings.compactMap { if case .messages = $0.kind { $0.name } else { nil } }
    return names.lazy.compactMap { settings?.deliveries[$0] }.first.map(delivery.messenger(for:)).map { messenger in
      speaking(messenger, request.messageLanguage ?? language(request.client.languages, request), request)
    }
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
