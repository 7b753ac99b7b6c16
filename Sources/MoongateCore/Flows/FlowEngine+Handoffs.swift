extension FlowEngine {
  /// Takes sign-ins over to further root domains.
  package var handoffs: HandoffService { HandoffService(keys: keys, store: store, clock: clock, random: random) }
}
