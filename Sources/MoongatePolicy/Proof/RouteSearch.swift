import MoongateCore
import MoongateSDK

/// What decides whether a session is accepted: a route, or an app.
struct SessionGate {
  let groups: GroupRequirement?
  let steps: [Requirement]
  let factors: Int?
  let decide: FunctionName?
  /// Whether it accepts a session that has ended: refreshed tokens are judged by what that session has passed.
  let outlivesSessions: Bool
  /// What a session does here, as in "passes the route at routes.lua:3 (GET /admin)".
  let deed: String

  init(_ route: Route, _ request: ExampleRequest) {
    groups = route.groups
    steps = [route.requirement].compactMap(\.self)
    factors = nil
    decide = route.decide
    outlivesSessions = false
    deed = "passes the route at \(route.location) (\(request.text))"
  }

  init(_ app: App) {
    groups = app.requirement.groups
    steps = app.requirement.steps
    factors = app.requirement.factors
    decide = app.decide
    outlivesSessions = app.outlivesSessions
    deed = "may sign in to the app `\(app.id)`\(app.locations[""].map { " (\($0))" } ?? "")"
  }

  /// The maximum time since the provider was passed; nil: there is none.
  ///
  /// Attack: a session ends after hours, but `offline_access` keeps tokens for months that only what was passed in it
  /// has authorised. Its lifetime proves nothing about such an app.
  func mostAge(of provider: ProviderName, in session: SessionState) -> Duration? {
    for case .passed(provider, let within?) in steps {
      return outlivesSessions ? within : min(session.oldest, within)
    }
    return outlivesSessions ? nil : session.oldest
  }
}

/// Searches for a session that a route or an app accepts although it does not meet a guarantee.
struct RouteSearch {
  let sessions: SessionSearch
  let functions: FunctionOutcomes
  let routes: [Route]

  /// Identifies sessions that all gates treat the same.
  private struct Key: Hashable {
    let passed: Set<ProviderName>
    let facts: KnownFacts
    let oldest: Duration
  }

  /// Why the demand does not hold at these routes; nil if it holds.
  func refutation(
    of demand: SessionDemand, _ pattern: PathPattern, _ reached: [(route: Int, request: ExampleRequest)]
  ) throws(ProofBudget.Exhausted) -> String? {
    guard !reached.isEmpty else {
      return "covers no request: no route of routes.lua matches a path of \"\(pattern.text)\""
    }
    if let open = reached.first(where: { routes[$0.route].isOpen }) {
      return """
        does not hold. The route at \(routes[open.route].location) is open to everyone (`allow = true`), and takes \(open.request.text) without a \
        session
        """
    }
    if let open = reached.first(where: { !routes[$0.route].openNetworks.isEmpty }) {
      let route = routes[open.route]
      let networks = route.openNetworks.map(\.description).joined(separator: ", ")
      return """
        does not hold. The route at \(route.location) is open to clients of \(networks) (`allow.networks`), and takes \
        \(open.request.text) from them without a session
        """
    }
    if let taken = reached.first(where: { admitsToken(routes[$0.route]) }) {
      return """
        does not hold. The route at \(routes[taken.route].location) takes tokens of programs (`tokens`), and takes \(taken.request.text) from one: a \
        token has passed nothing
        """
    }
    return try refutation(of: demand, reached.map { SessionGate(routes[$0.route], $0.request) })
  }

  /// Why the demand does not hold at these gates; nil if it holds.
  func refutation(of demand: SessionDemand, _ gates: [SessionGate]) throws(ProofBudget.Exhausted) -> String? {
    let text = CounterexampleText(demand)
    var found: String?
    try explore { session throws(ProofBudget.Exhausted) in
      for gate in gates {
        guard let passing = try pass(session, gate) else { continue }
        if let group = demand.group, let lacking = try pass(session, gate, outside: group) {
          found = "does not hold. \(text.sentences(of: session, passing: lacking, outside: group))"
          return false
        }
        let age = { (provider: ProviderName) in gate.mostAge(of: provider, in: session) }
        if !demand.isMet(session.passed, age: age) {
          found = "does not hold. \(text.sentences(of: session, passing: passing, age: age))"
          return false
        }
      }
      return true
    }
    return found
  }

  /// For each gate, the fewest providers that a session must have passed; nil if the gate accepts none.
  func weakest(_ gates: [SessionGate]) throws(ProofBudget.Exhausted) -> [[ProviderName]?] {
    var found = [[ProviderName]?](repeating: nil, count: gates.count)
    try explore { session throws(ProofBudget.Exhausted) in
      for (index, gate) in gates.enumerated() where session.passed.count < found[index]?.count ?? .max {
        if try pass(session, gate) != nil { found[index] = session.passed }
      }
      return true
    }
    return found
  }

  /// Visits every session that flows can open and extend, those of the shortest paths first.
  /// - Parameter visit: returns whether to continue.
  private func explore(
    _ visit: (SessionState) throws(ProofBudget.Exhausted) -> Bool
  ) throws(ProofBudget.Exhausted) {
    var pending: [SessionState] = []
    for entryPoint in sessions.entryPoints {
      try sessions.open(entryPoint, KnownFacts()) { session in
        pending.append(session)
        return true
      }
    }
    var seen: Set<Key> = []
    while let next = pending.indices.min(by: { pending[$0].acts < pending[$1].acts }) {
      let session = pending.remove(at: next)
      let key = Key(passed: Set(session.passed), facts: sessions.later(session.facts), oldest: session.oldest)
      guard seen.insert(key).inserted else { continue }
      guard try visit(session) else { return }
      try sessions.grow(session) { pending.append($0) }
    }
  }

  /// Whether the route may accept a token, which has passed no step.
  private func admitsToken(_ route: Route) -> Bool {
    guard let tokens = route.tokens else { return false }
    switch route.requirement {
    case nil: break
    case .passed: return false
    case .emailVerified: guard tokens.takesPersonal else { return false }
    }
    // `decide` is not evaluated for tokens: it may allow them.
    return true
  }

  /// How a gate accepts a session; nil if it does not.
  /// - Parameter group: groups that the session is not in. It may be in any other group.
  private func pass(
    _ session: SessionState, _ gate: SessionGate, outside group: GroupRequirement? = nil
  ) throws(ProofBudget.Exhausted) -> SessionPass? {
    if let wanted = gate.groups, let group, Set(wanted.anyOf).isSubset(of: group.anyOf) { return nil }
    for step in gate.steps {
      switch step {
      case .passed(let provider, _): guard session.passed.contains(provider) else { return nil }
      case .emailVerified: guard sessions.later(session.facts)[.verified(.email)] != false else { return nil }
      }
    }
    if let factors = gate.factors, sessions.providers.mostFactors(ofPassing: session.passed) < factors { return nil }
    guard let decide = gate.decide else { return SessionPass(gate: gate, decide: nil) }
    let passed = Dictionary(session.passed.map { ($0, Moment.now) }) { first, _ in first }
    for level in sessions.providers.assuranceLevels(ofPassing: session.passed) {
      let facts = SessionFacts(account: Moment.account, passed: passed, age: .seconds(60), aal: level)
      var moment = Moment(session: facts, request: RequestFacts(method: "GET", host: "", path: "/", query: ""))
      moment.lacksGroups = Set(group?.anyOf ?? [])
      guard case .answers(let answers, let areAssumed) = try functions.verdict(decide, moment, session.facts) else {
        continue
      }
      let passes = answers.contains { answer in
        if case .requireAlso(let provider) = answer { session.passed.contains(provider) } else { answer == .allow }
      }
      if passes { return SessionPass(gate: gate, decide: functions.location(decide).map { ($0, areAssumed) }) }
    }
    return nil
  }
}

extension ProviderRegistry {
  /// The assurance levels that a session can have after it has passed these providers (`Session.assuranceLevel`).
  ///
  /// Attack: a passkey alone has level 2, so `f.session.aal >= 2` is no proof of two providers.
  package func assuranceLevels(ofPassing passed: [ProviderName]) -> [Int] {
    let mayBeMultiFactor = passed.contains { descriptor($0)?.mayProveSeveralFactors ?? false }
    let levels = (mayBeMultiFactor ? [false, true] : [false]).map { isMultiFactor in
      Session.assuranceLevel(
        of: passed.map { PassedStep(provider: $0, at: Moment.now, isMultiFactor: isMultiFactor) })
    }
    return Set(levels).sorted()
  }
}

extension ProviderRegistry {
  /// The greatest number that `Session.factorCount` may have after these providers were passed: a provider such as a
  /// passkey may prove two factors by itself.
  fileprivate func mostFactors(ofPassing passed: [ProviderName]) -> Int {
    max(passed.count, passed.contains { descriptor($0)?.mayProveSeveralFactors ?? false } ? 2 : 0)
  }
}

/// How a route or an app accepts a session.
struct SessionPass {
  let gate: SessionGate
  /// The location of the function that allows the request, or is assumed to.
  let decide: (at: SourceLocation, isAssumed: Bool)?
}
