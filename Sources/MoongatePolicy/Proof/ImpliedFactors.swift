import MoongateCore
import MoongateSDK

/// Which factors another provider can reset alone.
///
/// Attack: someone who has the SIM alone signs in, resets the PIN by a code to the same number, and passes both. A
/// guarantee of two factors that counts them as two would be proved, and hold nothing.
struct ImpliedFactors {
  let generation: Generation
  let sessions: SessionSearch

  /// By factor: the providers each of which can reset it alone.
  func find() throws(ProofBudget.Exhausted) -> [ProviderName: Set<ProviderName>] {
    var implied: [ProviderName: Set<ProviderName>] = [:]
    for flow in generation.flows.values.sorted(by: { $0.name < $1.name }) {
      guard let factor = flow.purpose.resetProvider ?? flow.purpose.recoveredProvider else { continue }
      for provider in completing(flow, factor).subtracting(implied[factor] ?? []) {
        if flow.purpose.needsSession, try !opensSession(provider, beside: factor) { continue }
        implied[factor, default: []].insert(provider)
      }
    }
    return closure(implied)
  }

  /// The providers each of which completes the flow alone, besides the factor that the flow sets.
  private func completing(_ flow: FlowDefinition, _ factor: ProviderName) -> Set<ProviderName> {
    let steps = flow.steps.filter { !$0.choices.contains(factor) }
    let named = Set(steps.flatMap(\.choices))
    return named.filter { provider in
      steps.allSatisfy { $0.isSkippable || $0.when != nil || $0.choices.contains(provider) }
    }
  }

  /// Whether the provider alone opens a session of an account that has the factor, on a new device.
  private func opensSession(_ provider: ProviderName, beside factor: ProviderName) throws(ProofBudget.Exhausted) -> Bool
  {
    guard let facts = KnownFacts([.exists: true, .keeps(factor): true, .newDevice: true]) else { return false }
    var isOpened = false
    for entryPoint in sessions.entryPoints where !isOpened {
      try sessions.open(entryPoint, facts) { session in
        isOpened = Set(session.passed) == [provider]
        return !isOpened
      }
    }
    return isOpened
  }

  /// A factor that is reset by another one is also implied by what resets that one.
  private func closure(_ direct: [ProviderName: Set<ProviderName>]) -> [ProviderName: Set<ProviderName>] {
    var implied = direct
    var hasGrown = true
    while hasGrown {
      hasGrown = false
      for (factor, providers) in implied {
        let further = providers.union(providers.flatMap { implied[$0] ?? [] }).subtracting([factor])
        guard further.count > providers.count else { continue }
        implied[factor] = further
        hasGrown = true
      }
    }
    return implied
  }
}
