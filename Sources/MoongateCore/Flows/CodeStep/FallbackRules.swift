import MoongateSDK

// `fallback { "a", "b" }`: the first provider sends the code. The next one sends it if the provider before it cannot,
// or if the user asks for it.
//
// Attack: someone who makes the first delivery fail, or asks for the second, has a second code to guess, and with that
// provider's own limits twice the attempts. Every attempt at such a step is charged to the limits of all its providers,
// no matter which code it is compared with.

/// Decides which providers of a `fallback` may send the code of a step.
struct FallbackRules: FlowPart {
  let services: FlowServices

  /// The providers that can send the code of a step, in order. If the step is not a `fallback`, only the given
  /// provider.
  func senders(beside name: ProviderName, _ flow: FlowTransaction) -> [ProviderName] {
    let request = flow.request
    guard let due = flow.record.due, due.isFallback, due.choices.contains(name) else { return [name] }
    return due.choices.filter { request.generation.policies[$0] != nil && registry(request)[$0] is any CodeProvider }
  }

  /// The providers with which the next step may begin. For a `fallback`, only the first.
  func beginnable(_ due: StepRule, _ request: RequestContext) -> [ProviderName] {
    let configured = due.choices.filter { request.generation.policies[$0] != nil }
    return due.isFallback ? Array(configured.prefix(1)) : configured
  }

  /// The other providers that can send a code to the identifier of an open step.
  func others(of step: StepRecord, _ flow: FlowTransaction) -> [ProviderName] {
    guard step.challenge != nil else { return [] }
    return senders(beside: step.provider, flow).filter {
      $0 != step.provider && !(step.unreachable ?? []).contains($0)
    }
  }

  /// Whether beginning with the provider means asking another sender of the open step for a code.
  func isSwitch(to name: ProviderName, from step: StepRecord, _ flow: FlowTransaction) -> Bool {
    guard step.challenge != nil else { return false }
    let senders = senders(beside: step.provider, flow)
    // Beginning with the first sender begins the step again, perhaps for another identifier.
    return senders.dropFirst().contains(name)
  }

  /// Whether this device has passed another sender of the step for the account.
  ///
  /// Attack: attackers use up the attempts at a fallback, and its owner is locked out at the provider that their device
  /// has not passed yet. A device that has passed one of the providers has separate counters at all of them.
  func hasPassed(anySenderBeside name: ProviderName, for account: Account, _ flow: FlowTransaction) -> Bool {
    senders(beside: name, flow).contains { keys.knows(flow.request.device, account, by: $0) }
  }
}

extension Charged {
  /// Splits the attempt into the part that counts at these limits and the rest.
  func split(_ own: [ResolvedLimit]) -> (own: Charged, rest: Charged) {
    let counted = zip(limits, places)
    func part(_ isOwn: Bool) -> Charged {
      let kept = counted.filter { limit, _ in own.contains { $0.counter == limit.counter } == isOwn }
      return Charged(id: id, limits: kept.map(\.0), places: kept.map(\.1), isDisabled: isDisabled)
    }
    return (part(true), part(false))
  }
}
