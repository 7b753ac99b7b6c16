import MoongateCore
import MoongateSDK

/// Explores all paths through a flow: every choice, skip and function result, for every account and device.
///
/// The steps advance by the engine's own `FlowMachine`. Facts that the engine reads from stores and providers, such as
/// whether an account has a PIN, are undecided here. A path decides the facts that it needs, and is possible for
/// accounts with these facts.
struct FlowSearch {
  let generation: Generation
  let providers: ProviderRegistry
  let functions: FunctionOutcomes
  let budget: ProofBudget

  /// Walks through the flow, shortest paths first.
  /// - Parameters:
  /// - facts: the decided facts of the account and the device.
  /// - knowsAccount: whether the flow begins with a session of the account.
  /// - visit: called with each distinct end, regardless of the events that led to it; returns whether to continue.
  func walk(
    _ flow: FlowDefinition, _ facts: KnownFacts, knowsAccount: Bool = false, visit: (FlowSituation) -> Bool
  ) throws(ProofBudget.Exhausted) {
    let start = FlowSituation(
      machine: FlowMachine(
        FlowRecord(
          id: TokenHash(bytes: []), definition: flow, codes: [:], createdAt: Moment.now, returnTo: nil, browser: nil,
          network: [],
          account: knowsAccount ? Moment.version : nil, startedIn: knowsAccount ? Moment.account : nil)),
      origins: flow.steps.indices.map { .flow($0) }, given: facts, facts: facts, knowsAccount: knowsAccount)
    var seen: Set<FlowSituation.Key> = []
    var level = [start]
    while !level.isEmpty {
      var next: [FlowSituation] = []
      var ends: [FlowSituation] = []
      while let situation = level.popLast() {
        guard seen.insert(situation.key).inserted else { continue }
        try budget.spend()
        guard let ways = try follow(situation, in: flow) else {
          ends.append(situation)
          continue
        }
        for way in ways.reversed() { if way.acts > situation.acts { next.append(way) } else { level.append(way) } }
      }
      // Of paths with the same length, the one that needs the fewest facts comes first.
      for end in ends.sorted(by: { $0.facts.count < $1.facts.count }) where !visit(end) { return }
      level = next
    }
  }

  /// The situations that follow; nil at the end of the flow.
  private func follow(_ situation: FlowSituation, in flow: FlowDefinition) throws(ProofBudget.Exhausted)
    -> [FlowSituation]?
  {
    switch situation.machine.next {
    case .askWhether(let function): return try ask(function, situation, flow)
    case .offer(let choices):
      var ways: [FlowSituation] = []
      for choice in choices { ways += try pass(choice, situation, flow) }
      var skipped = situation
      if skipped.machine.skipped() {
        skipped.hasBegun = true
        skipped.events.append(.skipped(choices, at: location(situation, flow)))
        ways.append(skipped)
      }
      return ways
    // The search follows one account. A choice between several accounts that claim an address is already covered by
    // `toNamed`.
    case .chooseAccount: return []
    case .complete: return situation.isSettled ? nil : try settle(situation, flow)
    }
  }

  /// Evaluates `when` of the current step.
  private func ask(_ function: FunctionName, _ situation: FlowSituation, _ flow: FlowDefinition) throws(ProofBudget
    .Exhausted) -> [FlowSituation]
  {
    switch try functions.condition(function, moment(situation, flow), situation.facts) {
    case .depends(let fact): return branches(situation, on: fact)
    case .answers(let answers, let areAssumed):
      return answers.map { applies in
        var way = situation
        if !applies, let due = situation.machine.due {
          let here = location(situation, flow)
          way.events.append(
            .excused(due.choices, at: here, when: functions.location(function) ?? here, isAssumed: areAssumed))
        }
        way.machine.stepApplies(applies)
        return way
      }
    }
  }

  /// Handles the end of the flow's own steps: whether a session follows, and what accounts.lua still requires.
  private func settle(_ situation: FlowSituation, _ flow: FlowDefinition) throws(ProofBudget.Exhausted)
    -> [FlowSituation]
  {
    var way = situation
    way.isSettled = true
    guard situation.machine.record.startedIn == nil else { return [way] }
    let ending = situation.machine.record.endingRule
    // Anybody may hold an invitation that names nobody, which asks for no more than open registration does.
    let rule = generation.accounts.registration
    guard rule.refusal(of: flow.account, isInvited: true) == nil, situation.knowsAccount || rule != .closed else {
      return []
    }
    guard !situation.passed.isEmpty, ending != (situation.knowsAccount ? .new : .existing) else { return [] }
    guard situation.knowsAccount else { return way.facts.assume(.exists, false) ? try admitted(way, flow) : [] }
    // A registration never sets a secret of an existing account.
    if flow.purpose.registersFactor, flow.purpose.provider.map(situation.set.contains) ?? false { return [] }
    if flow.purpose.recoveredProvider != nil, IdentifierKind.allCases.allSatisfy({ way.facts[.verified($0)] == false })
    {
      guard let facts = withoutFactors(way) else { return [] }
      way.facts = facts
    }
    return try require(way, flow)
  }

  /// The account after a user has taken it over by verifying an address that it only claimed. Its stored factors may
  /// belong to another person, so the engine deletes them (`SignInRequirements.requireNext`). Guarantees for accounts
  /// with a factor do not cover this account any more.
  /// - Returns: nil if the search covers only accounts with a deleted factor.
  private func withoutFactors(_ situation: FlowSituation) -> KnownFacts? {
    let isAboutLost = situation.given.all.contains { fact, value in
      if case .keeps(let provider) = fact { value && !situation.set.contains(provider) } else { false }
    }
    guard !isAboutLost else { return nil }
    var bare = situation.facts.reopening { if case .keeps = $0 { true } else { false } }
    for provider in generation.providers where providers[provider]?.keepsRecords ?? false {
      bare = bare.assuming(.keeps(provider), false) ?? bare
    }
    return bare
  }

  /// Adds the first step that accounts.lua requires and that is missing, as `SignInRequirements.requireNext` does.
  /// - Parameter settled: the situation if nothing is missing.
  private func require(_ settled: FlowSituation, _ flow: FlowDefinition) throws(ProofBudget.Exhausted)
    -> [FlowSituation]
  {
    var situation = settled
    situation.isSettled = false
    var ends = [situation]
    var ways: [FlowSituation] = []
    for requirement in generation.accounts.signIn where !situation.hasMet(requirement) {
      var open: [FlowSituation] = []
      for end in ends {
        switch try applies(requirement, end, flow) {
        case .branches(let branches): ways += branches
        case .answers(let yes, let no):
          if let yes { ways += lacking(requirement, yes, flow) }
          if let no { open.append(no) }
        }
      }
      ends = open
    }
    for var end in ends {
      end.isSettled = true
      ways += try admitted(end, flow)
    }
    return ways
  }

  /// Asks `admit` at the end of a flow that opens a session, as `SignInRequirements.demandAdmission` does. What it
  /// refuses earlier it refuses here too, or its answer may change and is assumed to be any.
  private func admitted(_ end: FlowSituation, _ flow: FlowDefinition) throws(ProofBudget.Exhausted) -> [FlowSituation] {
    guard let admit = generation.accounts.admit else { return [end] }
    var moment = moment(end, flow)
    moment.mayBeInvited = !end.knowsAccount
    switch try functions.verdict(admit, moment, end.facts) {
    case .answers(let answers, _): return answers.contains(.allow) ? [end] : []
    case .depends(let fact):
      var open = end
      open.isSettled = false
      return branches(open, on: fact)
    }
  }

  /// Whether a requirement applies: the situations in which it does and does not.
  private enum Applies {
    case branches([FlowSituation])
    case answers(yes: FlowSituation?, no: FlowSituation?)
  }

  private func applies(_ requirement: SignInRequirement, _ situation: FlowSituation, _ flow: FlowDefinition)
    throws(ProofBudget.Exhausted) -> Applies
  {
    guard let when = requirement.when else { return .answers(yes: situation, no: nil) }
    switch try functions.condition(when, moment(situation, flow), situation.facts) {
    case .depends(let fact): return .branches(branches(situation, on: fact))
    case .answers(let answers, let areAssumed):
      var excused = situation
      let function = functions.location(when) ?? requirement.location
      let event = FlowPathEvent.excused(
        requirement.choices, at: requirement.location, when: function, isAssumed: areAssumed)
      if !excused.events.contains(event) { excused.events.append(event) }
      return .answers(yes: answers.contains(true) ? situation : nil, no: answers.contains(false) ? excused : nil)
    }
  }

  /// The facts with which a requirement does not apply to the account that a user joins.
  func excused(from requirement: SignInRequirement, in flow: FlowDefinition, _ known: KnownFacts) throws(ProofBudget
    .Exhausted) -> [KnownFacts]
  {
    guard let when = requirement.when else { return [] }
    return try known.decided { facts throws(ProofBudget.Exhausted) in
      try budget.spend()
      switch try functions.condition(when, Self.joining(flow), facts) {
      case .depends(let fact): return .open(fact)
      case .answers(let answers, _): return .decided(answers.contains(false))
      }
    }
  }

  /// The facts with which `admit` admits the account that a user joins.
  func admitted(_ known: KnownFacts, joinedBy flow: FlowDefinition) throws(ProofBudget.Exhausted) -> [KnownFacts] {
    guard let admit = generation.accounts.admit else { return [known] }
    return try known.decided { facts throws(ProofBudget.Exhausted) in
      try budget.spend()
      switch try functions.verdict(admit, Self.joining(flow), facts) {
      case .depends(let fact): return .open(fact)
      case .answers(let answers, _): return .decided(answers.contains(.allow))
      }
    }
  }

  /// The point at which an account that a user joins is judged.
  private static func joining(_ flow: FlowDefinition) -> Moment {
    Moment(flow: FlowFacts(name: flow.name, passed: []), identifier: .phone, knowsAccount: true, isCreation: false)
  }

  /// The possible ways to meet a requirement: with a factor of the account, or, if it has none, by setting one up.
  private func lacking(_ requirement: SignInRequirement, _ situation: FlowSituation, _ flow: FlowDefinition)
    -> [FlowSituation]
  {
    let purpose = flow.purpose
    var ways: [FlowSituation] = []
    for choice in requirement.choices where purpose.step(of: choice) == .prove {
      for facts in factsAllowing(choice, situation) {
        var way = situation
        way.facts = facts
        way.require([choice], .prove, by: requirement)
        ways.append(way)
      }
    }
    let missing = requirement.choices.filter { providers[$0]?.descriptor.isSecondFactor ?? false }
    if requirement.enroll, !missing.isEmpty, let facts = factsThatPassNone(requirement.choices, situation.facts) {
      var way = situation
      way.facts = facts
      way.require(missing, .enroll, by: requirement)
      ways.append(way)
    }
    return ways
  }

  /// The facts of an account that can pass none of the providers; nil if it can pass one.
  private func factsThatPassNone(_ choices: [ProviderName], _ known: KnownFacts) -> KnownFacts? {
    var facts: KnownFacts? = known
    for choice in choices {
      for fact in factors(choice) { facts = facts?.assuming(fact, false) }
    }
    return facts
  }

  /// The situation with the fact true, and with the fact false.
  func branches(_ situation: FlowSituation, on fact: BooleanFact) -> [FlowSituation] {
    [false, true].compactMap { value in
      var way = situation
      return way.facts.assume(fact, value) ? way : nil
    }
  }

  /// The point in the flow at which functions are called.
  func moment(_ situation: FlowSituation, _ flow: FlowDefinition) -> Moment {
    Moment(
      flow: FlowFacts(name: flow.name, passed: Set(situation.passed)), identifier: situation.proved.last,
      knowsAccount: situation.knowsAccount,
      isCreation: !situation.hasBegun)
  }

  /// The location of the current step.
  func location(_ situation: FlowSituation, _ flow: FlowDefinition) -> SourceLocation {
    switch situation.origin {
    case .flow(let index)? where index < flow.stepLocations.count: flow.stepLocations[index]
    case .added(let location)?: location
    default: flow.location
    }
  }
}
