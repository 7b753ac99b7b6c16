import MoongateCore
import MoongateSDK

extension PolicyGeneration {
  /// The providers that open an account alone: those with whom, and nobody else, some flow for known people can be
  /// completed. Steps that may be skipped, or whose `when` may not hold, are no obstacle to one who chooses the moment.
  package var providersThatOpenAlone: Set<ProviderName> {
    var alone: Set<ProviderName> = []
    for flow in flows.values where flow.account != .new {
      for name in Set(flow.steps.flatMap(\.choices)) where flow.steps.allSatisfy({ $0.choices.contains(name) || $0.isSkippable || $0.when != nil }) {
        alone.insert(name)
      }
    }
    return alone
  }
}
