import MoongateCore
import MoongateSDK

/// Proves the statements of guarantees.lua for a generation, or finds the shortest counterexample to each.
package struct GuaranteeProver {
  /// The message if the proof exceeds its budget. It is unknown whether the statement holds.
  package static let undecided = """
    is not proved: the search exceeded 100,000 situations. Use functions that read fewer facts, flows with fewer steps and choices, or \
    fewer statements
    """

  private let generation: Generation
  private let providers: ProviderRegistry

  /// - Parameter providers: the providers of the program, unless the generation has its own.
  /// - Returns: nil for a generation that was not read from a folder.
  package init?(_ generation: any PolicyGeneration, providers: ProviderRegistry) {
    guard let generation = generation as? Generation else { return nil }
    self.generation = generation
    self.providers = generation.registry ?? providers
  }

  /// One problem for each statement that does not hold or is not proved.
  package func problems() -> [ConfigurationProblem] {
    guard !generation.guarantees.isEmpty else { return [] }
    let budget = ProofBudget()
    let functions: FunctionOutcomes
    do {
      functions = try FunctionOutcomes(generation, providers, budget)
    } catch {
      return generation.guarantees.map { $0.problem("is not proved: \(error)") }
    }
    let sessions = SessionSearch(generation, providers: providers, functions: functions, budget: budget)
    return generation.guarantees.compactMap { guarantee in
      do throws(ProofBudget.Exhausted) {
        let counted = try counting(guarantee, sessions)
        return try refutation(of: counted, sessions, functions, budget).map { guarantee.problem($0) }
      } catch {
        return guarantee.problem(Self.undecided)
      }
    }
  }

  /// The demand of a guarantee, in which a factor that another provider can reset counts as implied by it.
  /// - Returns: nil if that is not known, because the search exceeded its budget.
  package func demand(of guarantee: Guarantee) -> SessionDemand? {
    let budget = ProofBudget()
    guard let functions = try? FunctionOutcomes(generation, providers, budget) else { return nil }
    let sessions = SessionSearch(generation, providers: providers, functions: functions, budget: budget)
    return try? counting(guarantee, sessions).demand
  }

  private func counting(_ guarantee: Guarantee, _ sessions: SessionSearch) throws(ProofBudget.Exhausted) -> Guarantee {
    guard guarantee.demand.factors ?? 1 > 1 else { return guarantee }
    var counting = guarantee
    counting.demand.implied = try ImpliedFactors(generation: generation, sessions: sessions).find()
    return counting
  }

  /// Why the statement does not hold; nil if it is proved.
  private func refutation(
    of guarantee: Guarantee, _ sessions: SessionSearch, _ functions: FunctionOutcomes, _ budget: ProofBudget
  ) throws(ProofBudget.Exhausted) -> String? {
    switch guarantee.scope {
    case .sessions(let facts):
      var shortest: SessionState?
      for entryPoint in sessions.entryPoints {
        try sessions.open(entryPoint, facts) { session in
          if let found = shortest, (found.acts, found.facts.count) <= (session.acts, session.facts.count) {
            return false
          }
          guard !guarantee.demand.isMet(session.passed, age: { _ in .zero }) else { return true }
          shortest = session
          return false
        }
      }
      return shortest.map { "does not hold. \(CounterexampleText(guarantee.demand).sentences(of: $0))" }
    case .route(let host, let pattern):
      let reached = try RouteReach(routes: generation.routes.routes, budget: budget).routes(for: pattern, host: host)
      let search = RouteSearch(sessions: sessions, functions: functions, routes: generation.routes.routes)
      return try search.refutation(of: guarantee.demand, pattern, reached)
    case .app(let id):
      guard let app = generation.apps[id] else { return "covers no app: apps.lua defines no `\(id)`" }
      guard app.signsUsersIn else { return "covers no session: no user signs in to the app `\(id)`" }
      let search = RouteSearch(sessions: sessions, functions: functions, routes: [])
      return try search.refutation(of: guarantee.demand, [SessionGate(app)])
    }
  }
}

extension Guarantee {
  fileprivate func problem(_ sentence: String) -> ConfigurationProblem {
    ConfigurationProblem(location: location, path: "", message: "guarantee \"\(statement)\" \(sentence)")
  }
}
