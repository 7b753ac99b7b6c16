import MoongateSDK

// `fallback { "a", "b" }`: the first provider sends the code. The next one sends it if the provider before it cannot,
// or if the user asks for it.
//
// Attack: someone who makes the first delivery fail, or asks for the second, has a second code to guess, and with that
// provider's own limits twice the attempts. Every attempt at such a step is charged to the limits of all its providers,
// no matter which code it is compared with.

extension FlowEngine {
  /// The providers that can send the code of a step, in order. If the step is not a `fallback`, only the given
  /// provider.
  func senders(of record: FlowRecord, beside name: ProviderName, _ request: RequestContext) -> [ProviderName] {
    guard let due = record.due, due.isFallback, due.choices.contains(name) else { return [name] }
    return due.choices.filter { request.generation.policies[$0] != nil && registry(request)[$0] is any CodeProvider }
  }

  /// The providers with which the next step may begin. For a `fallback`, only the first.
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

  /// Whether beginning with the provider means asking another sender of the open step for a code.
  func isSwitch(to name: ProviderName, from step: StepRecord, _ record: FlowRecord, _ request: RequestContext) -> Bool {
    guard step.challenge != nil else { return false }
    let senders = senders(of: record, beside: step.provider, request)
    // Beginning with the first sender begins the step anew, perhaps for another identifier.
    return senders.dropFirst().contains(name)
  }

  /// Sends a code by another provider of the `fallback`. The code goes only to the identifier of the open step.
  func switchSender(
    to provider: any CodeProvider, _ policy: ProviderPolicy, _ said: Identifier?, _ step: StepRecord,
    _ machine: FlowMachine, id: FlowID,
    _ request: RequestContext
  ) async throws(FlowError) -> FlowView {
    guard let identifier = step.identifier, said == nil || said == identifier else {
      throw request.refusal(
        .stepNotOpen, detail: "This step is for another phone number or email address. Start it again.")
    }
    guard !(step.unreachable ?? []).contains(policy.provider) else { throw request.refusal(.stepNotOpen) }
    let own = try await loadOwn(machine.record, request)
    return try await send(provider, to: identifier, policy, machine, of: own, isBegin: true, id: id, request)
  }

  /// Whether this device has passed another sender of the step for the account.
  ///
  /// Attack: strangers use up the attempts at a fallback, and its owner is locked out at the provider that their device
  /// has not passed yet. A device that has passed one of the providers has separate counters at all of them.
  func hasPassed(
    anySenderOf record: FlowRecord, beside name: ProviderName, for account: String?, _ request: RequestContext
  ) -> Bool {
    guard let account, request.device != nil else { return false }
    return senders(of: record, beside: name, request).contains { keys.knows(request.device, account, by: $0) }
  }

  /// The attempt limits that the step's other senders add to those of its own provider.
  /// - Parameter own: the limits of the step's provider. Counters that appear in both are returned once.
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

/// A code that the entered code may be compared with.
struct AdmittedCode: Sendable {
  /// The step as if this were its only code.
  let step: StepRecord
  let challenge: Challenge
  /// The entered text, as this code's rule reads it.
  let typed: String
  let limits: StepLimits
  /// An additional provider that its policy requires.
  let also: ProviderName?
}

/// The limits that an attempt at a code step is charged to, and the codes that it may be compared with.
struct AdmittedCodes: Sendable {
  var limits: [ResolvedLimit]
  /// The codes whose policies allow the attempt, including expired ones.
  var codes: [AdmittedCode]
}

extension FlowEngine {
  /// Reads the entered text by the rules of the step's codes.
  /// - Throws: 422 if it fits none of them. Malformed text does not count as an attempt.
  func read(_ typed: String, for step: StepRecord, _ request: RequestContext) throws(FlowError) -> [(
    code: SentCode, typed: String
  )] {
    let read = step.codes.compactMap { code in code.challenge.rule.read(typed).map { (code, $0) } }
    guard read.isEmpty, let rule = step.challenge?.rule else { return read }
    throw request.refusal(.invalidInput, detail: "Enter the \(rule.length)-\(rule.unit) code.", field: "code")
  }

  /// Asks the policies of the codes that the entered text may match, and collects the limits of all senders of the
  /// step.
  /// - Throws: the first policy's refusal if no policy allows the attempt.
  func admit(
    _ read: [(code: SentCode, typed: String)], _ step: StepRecord, _ machine: FlowMachine, id: FlowID,
    _ request: RequestContext
  ) async throws(FlowError) -> AdmittedCodes {
    var admitted = AdmittedCodes(limits: [], codes: [])
    var refused: FlowError?
    for (code, typed) in read {
      // A provider that was removed from the configuration has no limits, so its codes are not accepted.
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
  /// Splits the attempt into the part that counts at these limits and the rest.
  func split(_ own: [ResolvedLimit]) -> (own: Charged, rest: Charged) {
    let counted = zip(limits, places)
    func part(_ isOwn: Bool) -> Charged {
      let kept = counted.filter { limit, _ in own.contains { $0.counter == limit.counter } == isOwn }
      return Charged(id: id, limits: kept.map(\.0), places: kept.map(\.1), isOff: isOff)
    }
    return (part(true), part(false))
  }
}
