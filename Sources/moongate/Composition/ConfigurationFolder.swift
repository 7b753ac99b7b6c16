import Foundation
import MoongateCore
import MoongateHTTP
import MoongatePolicy
import MoongateSDK

/// The folder that a command was given, loaded alike for `serve`, `check` and every reload: what its files say, and
/// then whether the guesses that they grant stay within the operator's risk budget, whether its guarantees are proved,
/// and whether its own cases hold.
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
    path: String, base: String? = nil, providers: ProviderRegistry, programs: ProgramLoading? = nil,
    places: Gateway.Places = Gateway.Places()
  ) {
    self.path = path
    self.base = base
    self.providers = providers
    loader = ConfigurationLoader(
      providers: providers.all, pages: { PageRenderer.problems(of: $0, gateway: $1) },
      languages: PageRenderer.shippedLanguages,
      gateway: { places.problems(of: $0) }, programs: programs)
    anywhere = ConfigurationLoader(
      providers: providers.all, pages: { PageRenderer.problems(of: $0, gateway: $1) },
      languages: PageRenderer.shippedLanguages, programs: programs)
  }

  /// How long the cases of a candidate may take together while it is waited for by a gateway.
  static let patience: Duration = .seconds(30)
  /// How long they may take in `moongate check`: nothing waits for it, and a busy machine gives its low priority little
  /// time.
  private static let patienceOfCheck: Duration = .seconds(300)

  /// Reads the folder, and plays its cases, on a thread of its own; beside a gateway in service, of low priority.
  /// - Parameters:
  ///   - active: the id of a generation that passed all of this already: its cases are not played again.
  ///   - providersToo: whether the cases that come with providers are played as well. A gateway in service does not
  ///     refuse a change for them.
  func load(unless active: String? = nil, casesOfProviders providersToo: Bool = false) async -> Result<
    any PolicyGeneration, RefusedConfiguration
  > {
    await DedicatedThread.run(at: providersToo ? nil : .quiet) { await judge(unless: active, providersToo) }
  }

  /// The folder's generation, whatever it grants and whether its cases hold; nil where its files have problems.
  func generation() -> (any PolicyGeneration)? { try? anywhere.read(folder: path).get().generation }

  private func judge(unless active: String?, _ providersToo: Bool) async -> Result<
    any PolicyGeneration, RefusedConfiguration
  > {
    switch loader.read(folder: path, base: base) {
    case .failure(let refused): return .failure(refused)
    case .success(let loaded):
      let generation = loaded.generation
      if generation.id == active { return .success(generation) }
      var problems =
        OpenedStore.problems(of: generation.gateway) + [riskProblem(of: generation)].compactMap(\.self)
        + (GuaranteeProver(generation, providers: providers)?.problems() ?? [])
      let played = await play(
        loaded.cases + (providersToo ? loaded.providerCases : []), of: generation,
        within: providersToo ? Self.patienceOfCheck : Self.patience)
      problems += played.problems
      // A gateway in service does not wait for it, and does not refuse a change for functions that would fail for some.
      let swept = providersToo ? FunctionSweep(generation, providers: providers)?.run() : nil
      // What a case met already is told with the case.
      problems += (swept?.faults ?? []).filter { fault in
        !problems.contains { $0.location == fault.location && $0.message.hasPrefix(fault.fault) }
      }.map(\.problem)
      let met = Set(played.warnings.map(\.location))
      let warnings = played.warnings + (swept?.warnings ?? []).filter { !met.contains($0.location) }
      let warned = generation.adding(warnings: warnings)
      if problems.isEmpty { return .success(warned) }
      return .failure(
        RefusedConfiguration(id: generation.id, problems: problems, isFolderMissing: false, warnings: warned.warnings))
    }
  }

  /// Plays the cases: those that do not hold are problems.
  private func play(
    _ cases: [PolicyCase], of generation: any PolicyGeneration, within patience: Duration
  ) async -> (problems: [ConfigurationProblem], warnings: [ConfigurationProblem]) {
    let runner = CaseRunner(generation, providers: providers, makeStore: PassingStore.make)
    do {
      let report = try await runner.run(cases, patience: patience)
      return (report.problems(after: patience), report.warnings)
    } catch {
      let problem = ConfigurationProblem(
        location: SourceLocation(file: "tests", line: 0), path: "", message: "the cases could not be played: \(error)")
      return ([problem], [])
    }
  }

  /// How many guesses each provider grants to one who knows the identifier.
  func budgets(of generation: any PolicyGeneration) -> [GuessBudget] {
    GuessBudget.all(of: generation, providers: providers)
  }

  /// What gateway.lua alone says, where another file has problems; nil where it has some itself.
  func settings() -> GatewaySettings? { anywhere.settings(folder: path) }

  /// What each provider that makes accounts or sends messages lets attackers cost.
  func costs(of generation: any PolicyGeneration) -> [CostBudget] {
    (generation.registry ?? providers).all.filter { !$0.descriptor.identifierKinds.isEmpty }.compactMap { provider in
      generation.policies[provider.descriptor.name].map(CostBudget.init)
    }
  }

  /// For each flow that opens sessions, the least that gets in.
  func doors(of generation: any PolicyGeneration) -> EntryPointTable {
    EntryPointTable(generation, providers: providers)
  }

  private func riskProblem(of generation: any PolicyGeneration) -> ConfigurationProblem? {
    guard let most = generation.gateway.riskBudget else { return nil }
    let budgets = budgets(of: generation)
    // An attacker tries each of those that open an account alone.
    let alone = generation.providersThatOpenAlone
    let probability = budgets.filter { alone.contains($0.provider) }.compactMap(\.probability30Days).reduce(0, +)
    guard probability > most else { return nil }
    return ConfigurationProblem(
      location: generation.gateway.locations["risk_budget"] ?? SourceLocation(file: "gateway.lua", line: 0),
      path: "risk_budget",
      message: RiskExcess(
        accepted: most, probability: probability, budgets: budgets, alone: alone, policies: generation.policies
      ).sentence)
  }
}
