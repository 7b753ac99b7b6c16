import MoongateCore
import MoongateSDK

extension PolicyGeneration {
  /// The providers that open an account alone: those with whom, and nobody else, some flow for known people can be
  /// completed. Steps that may be skipped, or whose `when` may not hold, are no obstacle to one who chooses the moment;
  /// nor is one that sets a secret. A flow that is begun with a session opens nothing to one who has none.
  package var providersThatOpenAlone: Set<ProviderName> {
    var alone: Set<ProviderName> = []
    for flow in flows.values where flow.account != .new {
      let purpose = flow.purpose
      if purpose.needsSession { continue }
      // What an account requires of every session holds here too. Who has none of it and may set it up has no obstacle.
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
