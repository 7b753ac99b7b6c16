import MoongateSDK

// `fallback { "a", "b" }`: the first provider sends the code, and each of the others where the one before it cannot, or
// the person asks for it.
//
// Attack: whoever makes the first delivery fail, or asks for the second, has a second code to guess, and with its
// provider's own limits twice the attempts. Every attempt in such a step is charged to the limits of all its providers
// at once, whichever code it is compared with.

extension FlowEngine {
  /// The providers that can send the code of a step, in order; the provider alone where the step is no `fallback`.
  func senders(of record: FlowRecord, beside name: ProviderName, _ request: RequestContext) -> [ProviderName] {
    guard let due = record.due, due.isFallback, due.choices.contains(name) else { return [name] }
    return due.choices.filter { request.generation.policies[$0] != nil && registry(request)[$0] is any CodeProvider }
  }

  /// The providers by which the step that is due may be begun: of a `fallback` the first.
  func beginnable(_ due: StepRule, _ request: RequestContext) -> [ProviderName] {
    let configured = due.choices.filter { request.generation.policies[$0] != nil }
    return due.isFallback ? Array(configured.prefix(1)) : configured
  }

  /// The other providers that can send a code to the identifier of an open step.
  func fallbacks(of step: StepRecord, _ record: FlowRecord, _ request: RequestContext) -> [ProviderName] {
    guard step.challenge != nil else { return [] }
    return senders(of: record, beside: step.provider, request).filter {
      $0 != step.provider && !(step.unreachable ?? []).contains($0)
    }
  }

  /// Whether beginning by the provider asks for a code from another sender of the open step.
  func isSwitch(to name: ProviderName, from step: StepRecord, _ record: FlowRecord, _ request: RequestContext) -> Bool {
    guard step.challenge != nil else { return false }
    let senders = senders(of: record, beside: step.provider, request)
    // The first one begins the step anew, perhaps for another identifier.
    return senders.dropFirst().contains(name)
  }

  /// Sends a code by another provider of the `fallback`, to the identifier of the open step and to no other.
  func switchSender(
    to provider: any CodeProvider, _ policy: ProviderPolicy, _ said: Identifier?, _ step: StepRecord,
    _ machine: FlowMachine, id: FlowID,
    _ request: RequestContext
  ) async throws(FlowError) -> FlowView {
    guard let identifier = step.identifier, said == nil || said == identifier else {
      throw request.refusal(.stepNotOpen, detail: "This step is for another number or address. Begin it anew.")
    }
    guard !(step.unreachable ?? []).contains(policy.provider) else { throw request.refusal(.stepNotOpen) }
    let own = try await loadOwn(machine.record, request)
    return try await send(provider, to: identifier, policy, machine, of: own, isBegin: true, id: id, request)
  }

  /// Whether this device has passed another sender of the step for the account.
  ///
  /// Attack: strangers use up the attempts at a fallback, and its owner is locked out at the provider that their device
  /// has not passed yet. A device that has passed one of the providers has counters of its own at all of them.
  func hasPassed(
    anySenderOf record: FlowRecord, beside name: ProviderName, for account: String?, _ request: RequestContext
  ) -> Bool {
    guard let account, request.device != nil else { return false }
    return senders(of: record, beside: name, request).contains { keys.knows(request.device, account, by: $0) }
  }

  /// The limits on attempts at a step that its other senders add to those of its own provider.
  /// - Parameter own: those of the step's provider. What both count in one counter is there once.
  func otherVerifyLimits(
    of step: StepRecord, _ record: FlowRecord, beside own: [ResolvedLimit], _ request: RequestContext
  ) async throws(FlowError) -> [ResolvedLimit] {
    var others: [ResolvedLimit] = []
    for name in senders(of: record, beside: step.provider, request) where name != step.provider {
      guard let policy = request.generation.policies[name] else { continue }
      let verify = try await verifyLimits(of: step.sent(by: name), policy, record, request).verify
      others += verify.filter { limit in !(own + others).contains { $0.counter == limit.counter } }
    }
    return others
  }

  private func verifyLimits(
    of step: StepRecord, _ policy: ProviderPolicy, _ record: FlowRecord, _ request: RequestContext
  ) async throws(FlowError) -> StepLimits {
    let subject = subject(of: step, policy, record, request)
    let account = policy.hasVaryingNumbers ? try await loadAccount(subject.account) : nil
    return try limits(
      policy, subject, facts: facts(record, subject: subject, account: account, request), expiredAt: nil, request)
  }
}

// MARK: - Judging

/// A code that a typed one may be compared with.
struct AdmittedCode: Sendable {
  /// The step as if this code were the only one.
  let step: StepRecord
  let challenge: Challenge
  /// What was typed, as this code's rule reads it.
  let typed: String
  let limits: StepLimits
  /// What its policy demands besides.
  let also: ProviderName?
}

/// What an attempt at a step of codes is charged to, and what it may be compared with.
struct AdmittedCodes: Sendable {
  var limits: [ResolvedLimit]
  /// Those whose policies allow the attempt, expired ones among them.
  var codes: [AdmittedCode]
}

extension FlowEngine {
  /// What was typed, as the rules of the step's codes read it.
  /// - Throws: 422 where it can be none of them: that is malformed, and no attempt.
  func read(_ typed: String, for step: StepRecord, _ request: RequestContext) throws(FlowError) -> [(
    code: SentCode, typed: String
  )] {
    let read = step.codes.compactMap { code in code.challenge.rule.read(typed).map { (code, $0) } }
    guard read.isEmpty, let rule = step.challenge?.rule else { return read }
    throw request.refusal(.invalidInput, detail: "Enter the \(rule.length)-\(rule.unit) code.", field: "code")
  }

  /// Asks the policies of the codes that a typed one may be, and collects the limits of all senders of the step.
  /// - Throws: the refusal of the first policy where none of them allows the attempt.
  func admit(
    _ read: [(code: SentCode, typed: String)], _ step: StepRecord, _ machine: FlowMachine, id: FlowID,
    _ request: RequestContext
  ) async throws(FlowError) -> AdmittedCodes {
    var admitted = AdmittedCodes(limits: [], codes: [])
    var refused: FlowError?
    for (code, typed) in read {
      // A provider that the configuration has lost since has no limits any more, and its codes are worth nothing.
      guard let policy = request.generation.policies[code.provider],
        registry(request)[code.provider] is any CodeProvider
      else { continue }
      let own = step.sent(code)
      do throws(FlowError) {
        let (limits, also) = try await admit(own, policy, machine, id: id, request)
        admitted.codes.append(
          AdmittedCode(step: own, challenge: code.challenge, typed: typed, limits: limits, also: also))
      } catch {
        guard case .refused = error else { throw error }
        refused = refused ?? error
      }
    }
    guard let first = admitted.codes.first else { throw refused ?? request.refusal(.stepNotOpen) }
    admitted.limits = first.limits.verify
    for code in admitted.codes.dropFirst() {
      admitted.limits += code.limits.verify.filter { limit in !admitted.limits.contains { $0.counter == limit.counter }
      }
    }
    let others = try await otherVerifyLimits(of: first.step, machine.record, beside: admitted.limits, request)
    admitted.limits += others
    return admitted
  }
}

extension Charged {
  /// The part of the attempt that counts at these limits, and the rest.
  func split(_ own: [ResolvedLimit]) -> (own: Charged, rest: Charged) {
    let counted = zip(limits, places)
    func part(_ isOwn: Bool) -> Charged {
      let kept = counted.filter { limit, _ in own.contains { $0.counter == limit.counter } == isOwn }
      return Charged(id: id, limits: kept.map(\.0), places: kept.map(\.1), isOff: isOff)
    }
    return (part(true), part(false))
  }
}
