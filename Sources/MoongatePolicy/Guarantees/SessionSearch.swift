import MoongateCore
import MoongateSDK

/// Finds every session that the flows of a generation can open, and what it can grow to by step-ups.
struct SessionSearch {
  let generation: Generation
  let providers: ProviderRegistry
  let flows: FlowSearch

  init(_ generation: Generation, providers: ProviderRegistry, functions: FunctionOutcomes, budget: ProofBudget) {
    self.generation = generation
    self.providers = providers
    flows = FlowSearch(generation: generation, providers: providers, functions: functions, budget: budget)
  }

  /// The flows that open sessions, by name: pages, API and apps all go through them.
  var doors: [FlowDefinition] { sorted { !$0.needsSession(by: providers) || $0.purpose.joinsAccounts } }
  /// The flows that an account begins with a session it has, by name.
  var ownFlows: [FlowDefinition] { sorted { $0.needsSession(by: providers) } }

  private func sorted(_ isWanted: (FlowDefinition) -> Bool) -> [FlowDefinition] {
    generation.flows.values.filter(isWanted).sorted { $0.name < $1.name }
  }

  /// The sessions that a flow opens, those of the shortest ways first.
  /// - Parameters:
  ///   - facts: what is true of the account and the device.
  ///   - request: answers whether to go on.
  func open(_ flow: FlowDefinition, _ facts: KnownFacts, visit: (SessionState) -> Bool) throws(ProofBudget.Exhausted) {
    if flow.purpose.joinsAccounts { return try join(flow, facts, visit: visit) }
    // A step passed at the flow's beginning is older than the session, which an app may redeem a little later still.
    let oldest = flow.lifetime + flow.session.lifetime + AppCode.lifetime
    try flows.walk(flow, facts) { end in
      visit(
        SessionState(
          legs: [FlowLeg(flow: flow.name, moves: end.moves)], passed: end.passed.unique, facts: end.facts,
          isNewAccount: !end.knowsAccount,
          verified: verified(end), keeps: end.set,
          claimsEmail: end.set.contains { providers[$0]?.descriptor.identifierKinds.contains(.email) ?? false },
          oldest: oldest))
    }
  }

  /// The session of a new account becomes one of the account that holds the number which is proved in it.
  ///
  /// Attack: whoever receives one code registers by an identity of their own, adds the number, and is in its owner's
  /// account: so it opens to nobody where a factor protects the account (`FlowEngine.joining`).
  private func join(_ flow: FlowDefinition, _ facts: KnownFacts, visit: (SessionState) -> Bool) throws(ProofBudget
    .Exhausted)
  {
    guard let nobody = KnownFacts([.exists: false]), var joined = facts.assuming(.verified(.phone), true) else {
      return
    }
    for provider in providers.all where provider.descriptor.isSecondFactor {
      guard joined.assume(.keeps(provider.descriptor.name), false) else { return }
    }
    for door in sorted({ !$0.needsSession(by: providers) }) {
      var found: FlowSituation?
      try flows.walk(door, nobody) { registered in
        guard registered.isFederated, registered.set.isEmpty, !registered.proved.contains(.phone) else { return true }
        found = registered
        return false
      }
      guard let found else { continue }
      for (step, location) in zip(flow.steps, flow.stepLocations) {
        for provider in step.choices where providers[provider]?.descriptor.identifierKinds.contains(.phone) ?? false {
          let legs = [
            FlowLeg(flow: door.name, moves: found.moves),
            FlowLeg(flow: flow.name, moves: [.passed(provider, at: location)]),
          ]
          for facts in try unrequired(beside: provider, in: flow, joined) {
            let goesOn = visit(
              SessionState(
                legs: legs, passed: [provider], facts: facts, isNewAccount: false, verified: [], keeps: [],
                claimsEmail: false,
                oldest: door.lifetime + door.session.lifetime + AppCode.lifetime))
            if !goesOn { return }
          }
        }
      }
    }
  }

  /// With what has to be true for accounts.lua to require nothing besides the provider (`FlowEngine.demandSignIn`).
  private func unrequired(beside provider: ProviderName, in flow: FlowDefinition, _ facts: KnownFacts)
    throws(ProofBudget.Exhausted) -> [KnownFacts]
  {
    var found = [facts]
    for requirement in generation.accounts.signIn where !requirement.choices.contains(provider) {
      var excused: [KnownFacts] = []
      for facts in found { excused += try flows.excused(from: requirement, in: flow, facts) }
      found = excused
    }
    return found
  }

  /// Who signs in elsewhere brings the address that is verified there.
  private func verified(_ end: FlowSituation) -> [IdentifierKind] {
    let federated =
      end.isFederated
      ? providers.all.filter { $0.descriptor.identifierKinds.contains(.federated) }.flatMap(
        \.descriptor.identifierKinds) : []
    return (end.proved + federated).unique
  }

  /// What a session becomes by one of the account's own flows: those that add a provider to what was passed.
  func grow(_ session: SessionState, visit: (SessionState) -> Void) throws(ProofBudget.Exhausted) {
    let facts = later(session.facts)
    for flow in ownFlows {
      try flows.walk(flow, facts, knowsAccount: true) { end in
        let passed = (session.passed + end.passed).unique
        guard passed.count > session.passed.count else { return true }
        var grown = session
        grown.legs.append(FlowLeg(flow: flow.name, moves: end.moves))
        grown.passed = passed
        grown.facts = end.facts
        visit(grown)
        return true
      }
    }
  }

  /// What is still true of an account some time later: facts that some flow changes are open again.
  func later(_ facts: KnownFacts) -> KnownFacts {
    let purposes = generation.flows.values.map(\.purpose)
    let isThere = { (wanted: [FlowPurpose]) in purposes.contains { wanted.contains($0) } }
    let joins = purposes.contains(where: \.joinsAccounts)
    let recovers = purposes.contains { $0.recoveredProvider != nil }
    let open = facts.reopening { fact in
      switch fact {
      case .newDevice, .networkChanged, .exists: true
      case .holds(.phone), .verified(.phone): joins || isThere([.change(.phone), .verify(.phone)])
      case .holds(.email), .verified(.email): joins || recovers || isThere([.change(.email), .verify(.email)])
      case .holds(.federated), .verified(.federated): joins || isThere([.join(.federated)])
      case .keeps(let provider):
        purposes.contains { purpose in
          guard case .factor(provider, let operation) = purpose else { return false }
          return operation != .unlock
        }
      }
    }
    // It exists by now.
    return open.assuming(.exists, true) ?? open
  }
}

extension Array where Element: Hashable {
  /// Each once, in the order of their first places.
  fileprivate var unique: Self {
    var seen: Set<Element> = []
    return filter { seen.insert($0).inserted }
  }
}
