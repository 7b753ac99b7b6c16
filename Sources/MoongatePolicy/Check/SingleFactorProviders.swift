import MoongateCore
import MoongateSDK

extension PolicyGeneration {
  /// The providers that open an account alone: some flow for existing accounts can be completed with only this
  /// provider.
  ///
  /// Steps that are skippable or have `when` count as no obstacle, because an attacker can choose the moment. The same
  /// holds for steps that set a secret. Flows that need a session are not counted.
  package var singleFactorProviders: Set<ProviderName> {
    var alone: Set<ProviderName> = []
    for flow in flows.values where flow.account != .new {
      let purpose = flow.purpose
      if purpose.needsSession { continue }
      // Requirements of accounts.lua apply as well, except those that an account without the factor may set up.
      let required = accounts.signIn.filter { $0.when == nil && !$0.enroll }
      let proves = { (name: ProviderName) in purpose.step(of: name) == .prove }
      for name in Set(flow.steps.flatMap(\.choices)).filter(proves)
      where required.allSatisfy({ $0.choices.contains(name) })
        && flow.steps.allSatisfy({
          $0.choices.contains(name) || $0.isSkippable || $0.when != nil || !$0.choices.allSatisfy(proves)
        })
      {
        alone.insert(name)
      }
    }
    return alone
  }
}
