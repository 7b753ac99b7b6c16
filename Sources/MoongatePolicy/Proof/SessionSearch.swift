import MoongateCore
import MoongateSDK

/// Finds every session that the flows of a generation can open, and how step-ups can extend it.
struct SessionSearch {
  let generation: Generation
  let providers: ProviderRegistry
  let flows: FlowSearch
  /// Walks through flows as they were before registration was closed: the accounts of that time still exist.
  private let earlierFlows: FlowSearch

  init(_ generation: Generation, providers: ProviderRegistry, functions: FunctionOutcomes, budget: ProofBudget) {
    self.generation = generation
    self.providers = providers
    flows = FlowSearch(generation: generation, providers: providers, functions: functions, budget: budget)
    earlierFlows = FlowSearch(
      generation: generation.withOpenRegistration, providers: providers, functions: functions, budget: budget)
  }

  /// The flows that open sessions, by name. Pages, API and apps all use them.
  var entryPoints: [FlowDefinition] { sorted { !$0.needsSession(by: providers) || $0.purpose.joinsAccounts } }
  /// The flows that need a session of the account, by name.
  var ownFlows: [FlowDefinition] { sorted { $0.needsSession(by: providers) } }

  private func sorted(_ isWanted: (FlowDefinition) -> Bool) -> [FlowDefinition] {
    generation.flows.values.filter(isWanted).sorted { $0.name < $1.name }
  }

  /// The sessions that a flow opens, those of the shortest paths first.
  /// - Parameters:
  /// - facts: the decided facts of the account and the device.
  /// - visit: returns whether to continue.
  func open(_ flow: FlowDefinition, _ facts: KnownFacts, visit: (SessionState) -> Bool) throws(ProofBudget.Exhausted) {
    if flow.purpose.joinsAccounts { return try join(flow, facts, visit: visit) }
    // A step at the beginning of the flow is older than the session, and an app may redeem its code later still.
    let oldest = flow.lifetime + flow.session.longestLifetime + GrantCode.lifetime
    try flows.walk(flow, facts) { end in
      visit(
        SessionState(
          completedFlows: [CompletedFlow(flow: flow.name, events: end.events)], passed: end.passed.unique,
          facts: end.facts,
          isNewAccount: !end.knowsAccount,
          verified: verified(end), keeps: end.set,
          claims: end.set.flatMap { providers[$0]?.descriptor.signInKinds ?? [] }.filter { $0 != .federated },
          oldest: oldest))
    }
  }

  /// The session of a new account becomes a session of the account with the phone number that is verified in it.
  ///
  /// Attack: an attacker who receives one code registers with their own identity, adds the number, and gets into its
  /// owner's account. Therefore, joining is refused if a factor protects the account (`FlowCompletion.joining`).
  private func join(_ flow: FlowDefinition, _ facts: KnownFacts, visit: (SessionState) -> Bool) throws(ProofBudget
    .Exhausted)
  {
    guard let nobody = KnownFacts([.exists: false]), var joined = facts.assuming(.verified(.phone), true) else {
      return
    }
    for provider in providers.all where provider.descriptor.isSecondFactor {
      guard joined.assume(.keeps(provider.descriptor.name), false) else { return }
    }
    for registration in sorted({ !$0.needsSession(by: providers) }) {
      var found: FlowSituation?
      try earlierFlows.walk(registration, nobody) { registered in
        guard registered.isFederated, registered.set.isEmpty, !registered.proved.contains(.phone) else { return true }
        found = registered
        return false
      }
      guard let found else { continue }
      for (step, location) in zip(flow.steps, flow.stepLocations) {
        for provider in step.choices where providers[provider]?.descriptor.identifierKinds.contains(.phone) ?? false {
          let completedFlows = [
            CompletedFlow(flow: registration.name, events: found.events),
            CompletedFlow(flow: flow.name, events: [.passed(provider, at: location)]),
          ]
          for facts in try unrequired(beside: provider, in: flow, joined) {
            let goesOn = visit(
              SessionState(
                completedFlows: completedFlows, passed: [provider], facts: facts, isNewAccount: false, verified: [],
                keeps: [],
                claims: [],
                oldest: registration.lifetime + registration.session.longestLifetime + GrantCode.lifetime))
            if !goesOn { return }
          }
        }
      }
    }
  }

  /// The facts with which accounts.lua admits the account and requires nothing besides the provider
  /// (`SignInRequirements.demandSignIn`).
  private func unrequired(beside provider: ProviderName, in flow: FlowDefinition, _ facts: KnownFacts)
    throws(ProofBudget.Exhausted) -> [KnownFacts]
  {
    var found = [facts]
    for requirement in generation.accounts.signIn where !requirement.choices.contains(provider) {
      var excused: [KnownFacts] = []
      for facts in found { excused += try flows.excused(from: requirement, in: flow, facts) }
      found = excused
    }
    var admitted: [KnownFacts] = []
    for facts in found { admitted += try flows.admitted(facts, joinedBy: flow) }
    return admitted
  }

  /// A federated sign-in also provides the address that the other site has verified.
  private func verified(_ end: FlowSituation) -> [IdentifierKind] {
    let federated =
      end.isFederated
      ? providers.all.filter { $0.descriptor.identifierKinds.contains(.federated) }.flatMap(
        \.descriptor.identifierKinds) : []
    return (end.proved + federated).unique
  }

  /// The sessions that result from the account's own flows, if they add a passed provider.
  func grow(_ session: SessionState, visit: (SessionState) -> Void) throws(ProofBudget.Exhausted) {
    let facts = later(session.facts)
    for flow in ownFlows {
      try flows.walk(flow, facts, knowsAccount: true) { end in
        let passed = (session.passed + end.passed).unique
        guard passed.count > session.passed.count else { return true }
        var grown = session
        grown.completedFlows.append(CompletedFlow(flow: flow.name, events: end.events))
        grown.passed = passed
        grown.facts = end.facts
        visit(grown)
        return true
      }
    }
  }

  /// The facts that still hold for an account later. Facts that some flow can change are undecided again.
  func later(_ facts: KnownFacts) -> KnownFacts {
    let purposes = generation.flows.values.map(\.purpose)
    let isThere = { (wanted: [FlowPurpose]) in purposes.contains { wanted.contains($0) } }
    let joins = purposes.contains(where: \.joinsAccounts)
    let recovers = purposes.contains { $0.recoveredProvider != nil }
    let open = facts.reopening { fact in
      switch fact {
      // An operator may add an account to a group, or remove it, at any time.
      case .newDevice, .networkChanged, .exists, .group: true
      case .holds(.phone), .verified(.phone): joins || isThere([.change(.phone), .verify(.phone)])
      case .holds(.email), .verified(.email): joins || recovers || isThere([.change(.email), .verify(.email)])
      // No flow adds or removes a name.
      case .holds(.name), .verified(.name): false
      case .holds(.federated), .verified(.federated): joins || isThere([.join(.federated)])
      case .keeps(let provider):
        purposes.contains { purpose in
          guard case .factor(provider, let operation) = purpose else { return false }
          return operation != .unlock
        }
      }
    }
    // The account exists by now.
    return open.assuming(.exists, true) ?? open
  }
}

extension Array where Element: Hashable {
  /// The distinct elements, in the order of their first occurrence.
  fileprivate var unique: Self {
    var seen: Set<Element> = []
    return filter { seen.insert($0).inserted }
  }
}
