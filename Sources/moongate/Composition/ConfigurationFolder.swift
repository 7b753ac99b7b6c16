import Foundation
import MoongateCore
import MoongateHTTP
import MoongatePolicy
import MoongateSDK

/// The folder that a command was given, loaded alike for `serve`, `check` and every reload: what its files say, and then
/// whether the guesses that they grant stay within the operator's risk budget, whether its guarantees are proved, and whether its own cases
/// hold.
struct ConfigurationFolder: Sendable {
  let path: String
  /// Where relative paths in its files count from; nil: the folder itself.
  private let base: String?
  private let providers: ProviderRegistry
  private let loader: ConfigurationLoader
  /// Tells nothing of where the gateway listens.
  private let anywhere: ConfigurationLoader

  /// - Parameters:
  ///   - base: where relative paths in its files count from; nil: the folder itself.
  ///   - programs: starts those that gateway.lua names.
  ///   - places: where the gateway listens instead of where gateway.lua says.
  init(
    path: String, base: String? = nil, providers: ProviderRegistry, programs: ProgramLoading? = nil, places: Gateway.Places = Gateway.Places()
  ) {
    self.path = path
    self.base = base
    self.providers = providers
    loader = ConfigurationLoader(
      providers: providers.all, pages: { PageRenderer.problems(of: $0, gateway: $1) }, languages: PageRenderer.shippedLanguages,
      gateway: { places.problems(of: $0) }, programs: programs)
    anywhere = ConfigurationLoader(
      providers: providers.all, pages: { PageRenderer.problems(of: $0, gateway: $1) }, languages: PageRenderer.shippedLanguages, programs: programs)
  }

  /// How long the cases of a candidate may take together while it is waited for by a gateway.
  static let patience: Duration = .seconds(30)
  /// How long they may take in `moongate check`: nothing waits for it, and a busy machine gives its low priority little time.
  private static let patienceOfCheck: Duration = .seconds(300)

  /// Reads the folder, and plays its cases, on a thread of its own; beside a gateway in service, of low priority.
  /// - Parameters:
  ///   - active: the id of a generation that passed all of this already: its cases are not played again.
  ///   - providersToo: whether the cases that come with providers are played as well. A gateway in service does not refuse a change for them.
  func load(unless active: String? = nil, casesOfProviders providersToo: Bool = false) async -> Result<any PolicyGeneration, RefusedConfiguration> {
    await DedicatedThread.run(at: providersToo ? nil : .quiet) { await judge(unless: active, providersToo) }
  }

  /// The folder's generation, whatever it grants and whether its cases hold; nil where its files have problems.
  func generation() -> (any PolicyGeneration)? { try? anywhere.read(folder: path).get().generation }

  private func judge(unless active: String?, _ providersToo: Bool) async -> Result<any PolicyGeneration, RefusedConfiguration> {
    switch loader.read(folder: path, base: base) {
    case .failure(let refused): return .failure(refused)
    case .success(let loaded):
      let generation = loaded.generation
      if generation.id == active { return .success(generation) }
      let problems =
        OpenedStore.problems(of: generation.gateway) + [riskProblem(of: generation)].compactMap(\.self)
        + (GuaranteeProver(generation, providers: providers)?.problems() ?? [])
        + (await failures(
          of: loaded.generation, loaded.cases + (providersToo ? loaded.providerCases : []),
          within: providersToo ? Self.patienceOfCheck : Self.patience))
      if problems.isEmpty { return .success(generation) }
      return .failure(RefusedConfiguration(id: generation.id, problems: problems, isFolderMissing: false))
    }
  }

  /// The cases that do not hold.
  private func failures(
    of generation: any PolicyGeneration, _ cases: [PolicyCase], within patience: Duration
  ) async -> [ConfigurationProblem] {
    let runner = CaseRunner(generation, providers: providers, makeStore: PassingStore.make)
    do {
      return try await runner.run(cases, patience: patience).problems(after: patience)
    } catch {
      return [
        ConfigurationProblem(location: SourceLocation(file: "tests", line: 0), path: "", message: "the cases could not be played: \(error)")
      ]
    }
  }

  /// How many guesses each provider grants to one who knows the identifier.
  func budgets(of generation: any PolicyGeneration) -> [GuessBudget] {
    (generation.registry ?? providers).all.compactMap { provider in
      generation.policies[provider.descriptor.name].map { GuessBudget(of: provider, $0) }
    }
  }

  /// What each provider that makes accounts or sends messages lets attackers cost.
  func costs(of generation: any PolicyGeneration) -> [CostBudget] {
    (generation.registry ?? providers).all.filter { !$0.descriptor.identifierKinds.isEmpty }.compactMap { provider in
      generation.policies[provider.descriptor.name].map(CostBudget.init)
    }
  }

  /// For each flow that opens sessions, the least that gets in.
  func doors(of generation: any PolicyGeneration) -> EntryPointTable { EntryPointTable(generation, providers: providers) }

  private func riskProblem(of generation: any PolicyGeneration) -> ConfigurationProblem? {
    guard let most = generation.gateway.riskBudget else { return nil }
    let budgets = budgets(of: generation)
    // An attacker tries each of those that open an account alone.
    let alone = generation.providersThatOpenAlone
    let probability = budgets.filter { alone.contains($0.provider) }.compactMap(\.probability30Days).reduce(0, +)
    guard probability > most else { return nil }
    let shares = budgets.map { "\($0.provider) grants \($0.per30Days.map(String.init) ?? "unbounded") guesses per 30 days" }.joined(separator: ", ")
    return ConfigurationProblem(
      location: generation.gateway.locations["risk_budget"] ?? SourceLocation(file: "gateway.lua", line: 0), path: "risk_budget",
      message: """
        someone who only guesses gets in with a chance of \(GuessBudget.percent(probability)) per 30 days, above \(GuessBudget.percent(most)): \(shares). Lower \
        `max` or lengthen `lock` of a verify limit per identifier, make codes longer, or accept more
        """)
  }
}
