import MoongateSDK

// `fallback { "a", "b" }`: the first provider sends the code, and each of the others where the one before it cannot, or the person asks for it.
//
// Attack: whoever makes the first delivery fail, or asks for the second, has a second code to guess, and with its provider's own limits twice the
// attempts. Every attempt in such a step is charged to the limits of all its providers at once, whichever code it is compared with.

extension FlowEngine {
  /// The providers that can send the code of a step, in order; the provider alone where the step is no `fallback`.
  func senders(of record: FlowRecord, beside name: ProviderName, _ visit: Visit) -> [ProviderName] {
    guard let due = record.due, due.isFallback, due.choices.contains(name) else { return [name] }
    return due.choices.filter { visit.generation.policies[$0] != nil && registry(visit)[$0] is any CodeProvider }
  }

  /// The providers by which the step that is due may be begun: of a `fallback` the first.
  func beginnable(_ due: StepRule, _ visit: Visit) -> [ProviderName] {
    let configured = due.choices.filter { visit.generation.policies[$0] != nil }
    return due.isFallback ? Array(configured.prefix(1)) : configured
  }

  /// The other providers that can send a code to the identifier of an open step.
  func fallbacks(of step: StepRecord, _ record: FlowRecord, _ visit: Visit) -> [ProviderName] {
    guard step.challenge != nil else { return [] }
    return senders(of: record, beside: step.provider, visit).filter { $0 != step.provider && !(step.unreachable ?? []).contains($0) }
  }

  /// Whether beginning by the provider asks for a code from another sender of the open step.
  func isSwitch(to name: ProviderName, from step: StepRecord, _ record: FlowRecord, _ visit: Visit) -> Bool {
    guard step.challenge != nil else { return false }
    let senders = senders(of: record, beside: step.provider, visit)
    // The first one begins the step anew, perhaps for another identifier.
    return senders.dropFirst().contains(name)
  }

  /// Sends a code by another provider of the `fallback`, to the identifier of the open step and to no other.
  func switchSender(
    to provider: any CodeProvider, _ policy: ProviderPolicy, _ said: Identifier?, _ step: StepRecord, _ machine: FlowMachine, id: FlowID,
    _ visit: Visit
  ) async throws(Halt) -> FlowView {
    guard let identifier = step.identifier, said == nil || said == identifier else {
      throw visit.refusal(.stepNotOpen, detail: "This step is for another number or address. Begin it anew.")
    }
    guard !(step.unreachable ?? []).contains(policy.provider) else { throw visit.refusal(.stepNotOpen) }
    let own = try await loadOwn(machine.record, visit)
    return try await send(provider, to: identifier, policy, machine, of: own, isBegin: true, id: id, visit)
  }

  /// Whether this device has passed another sender of the step for the account.
  ///
  /// Attack: strangers use up the attempts at a fallback, and its owner is locked out at the provider that their device has not passed yet. A device
  /// that has passed one of the providers has counters of its own at all of them.
  func hasPassed(anySenderOf record: FlowRecord, beside name: ProviderName, for account: String?, _ visit: Visit) -> Bool {
    guard let account, visit.device != nil else { return false }
    return senders(of: record, beside: name, visit).contains { keys.knows(visit.device, account, by: $0) }
  }

  /// The limits on attempts at a step that its other senders add to those of its own provider.
  /// - Parameter own: those of the step's provider. What both count in one counter is there once.
  func otherVerifyLimits(
    of step: StepRecord, _ record: FlowRecord, beside own: [ResolvedLimit], _ visit: Visit
  ) async throws(Halt) -> [ResolvedLimit] {
    var others: [ResolvedLimit] = []
    for name in senders(of: record, beside: step.provider, visit) where name != step.provider {
      guard let policy = visit.generation.policies[name] else { continue }
      let verify = try await verifyLimits(of: step.sent(by: name), policy, record, visit).verify
      others += verify.filter { limit in !(own + others).contains { $0.counter == limit.counter } }
    }
    return others
  }

  private func verifyLimits(
    of step: StepRecord, _ policy: ProviderPolicy, _ record: FlowRecord, _ visit: Visit
  ) async throws(Halt) -> StepLimits {
    let subject = subject(of: step, policy, record, visit)
    let account = policy.hasVaryingNumbers ? try await loadAccount(subject.account) : nil
    return try limits(policy, subject, facts: facts(record, subject: subject, account: account, visit), expiredAt: nil, visit)
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
  func read(_ typed: String, for step: StepRecord, _ visit: Visit) throws(Halt) -> [(code: SentCode, typed: String)] {
    let read = step.codes.compactMap { code in code.challenge.rule.read(typed).map { (code, $0) } }
    guard read.isEmpty, let rule = step.challenge?.rule else { return read }
    throw visit.refusal(.invalidInput, detail: "Enter the \(rule.length)-\(rule.unit) code.", field: "code")
  }

  /// Asks the policies of the codes that a typed one may be, and collects the limits of all senders of the step.
  /// - Throws: the refusal of the first policy where none of them allows the attempt.
  func admit(
    _ read: [(code: SentCode, typed: String)], _ step: StepRecord, _ machine: FlowMachine, id: FlowID, _ visit: Visit
  ) async throws(Halt) -> AdmittedCodes {
    var admitted = AdmittedCodes(limits: [], codes: [])
    var refused: Halt?
    for (code, typed) in read {
      // A provider that the configuration has lost since has no limits any more, and its codes are worth nothing.
      guard let policy = visit.generation.policies[code.provider], registry(visit)[code.provider] is any CodeProvider else { continue }
      let own = step.sent(code)
      do throws(Halt) {
        let (limits, also) = try await admit(own, policy, machine, id: id, visit)
        admitted.codes.append(AdmittedCode(step: own, challenge: code.challenge, typed: typed, limits: limits, also: also))
      } catch {
        guard case .refused = error else { throw error }
        refused = refused ?? error
      }
    }
    guard let first = admitted.codes.first else { throw refused ?? visit.refusal(.stepNotOpen) }
    admitted.limits = first.limits.verify
    for code in admitted.codes.dropFirst() {
      admitted.limits += code.limits.verify.filter { limit in !admitted.limits.contains { $0.counter == limit.counter } }
    }
    let others = try await otherVerifyLimits(of: first.step, machine.record, beside: admitted.limits, visit)
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
