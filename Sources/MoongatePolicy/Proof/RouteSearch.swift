import MoongateCore
import MoongateSDK

/// Searches for a session that a route accepts although it does not meet a guarantee.
struct RouteSearch {
  let sessions: SessionSearch
  let functions: FunctionOutcomes
  let routes: [Route]

  /// Identifies sessions that all routes treat the same.
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
    if let taken = reached.first(where: { admitsToken(routes[$0.route]) }) {
      return """
        does not hold. The route at \(routes[taken.route].location) takes tokens of programs (`tokens`), and takes \(taken.request.text) from one: a \
        token has passed nothing
        """
    }
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
      for (index, request) in reached {
        let route = routes[index]
        guard let passing = try pass(session, route) else { continue }
        if let group = demand.group, let lacking = try pass(session, route, outside: group) {
          return
            "does not hold. \(CounterexampleText(demand).sentences(of: session, passing: lacking, request, outside: group))"
        }
        let age = { (provider: ProviderName) in min(session.oldest, route.mostAge(of: provider) ?? session.oldest) }
        if !demand.isMet(session.passed, age: age) {
          return
            "does not hold. \(CounterexampleText(demand).sentences(of: session, passing: passing, request, age: age))"
        }
      }
      try sessions.grow(session) { pending.append($0) }
    }
    return nil
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

  /// How a route accepts a session; nil if it does not.
  /// - Parameter group: groups that the session is not in. It may be in any other group.
  private func pass(
    _ session: SessionState, _ route: Route, outside group: GroupRequirement? = nil
  ) throws(ProofBudget.Exhausted) -> RoutePass? {
    if let wanted = route.groups, let group, Set(wanted.anyOf).isSubset(of: group.anyOf) { return nil }
    switch route.requirement {
    case nil: break
    case .passed(let provider, _): guard session.passed.contains(provider) else { return nil }
    case .emailVerified: guard sessions.later(session.facts)[.verified(.email)] != false else { return nil }
    }
    guard let decide = route.decide else { return RoutePass(route: route, decide: nil) }
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
      if passes { return RoutePass(route: route, decide: functions.location(decide).map { ($0, areAssumed) }) }
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

/// How a route accepts a session.
struct RoutePass {
  let route: Route
  /// The location of the function that allows the request, or is assumed to.
  let decide: (at: SourceLocation, isAssumed: Bool)?
}

extension Route {
  /// The maximum time since the provider was passed, as the route requires it; nil if it does not.
  fileprivate func mostAge(of provider: ProviderName) -> Duration? {
    if case .passed(provider, let within)? = requirement { within } else { nil }
  }
}
