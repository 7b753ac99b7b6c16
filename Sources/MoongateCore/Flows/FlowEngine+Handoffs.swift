extension FlowEngine {
  /// Transfers sign-ins to the other root domains.
  package var handoffs: HandoffService { HandoffService(keys: keys, store: store, clock: clock, random: random) }
}
