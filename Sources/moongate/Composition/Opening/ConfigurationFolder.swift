import Foundation
import MoongateCore
import MoongateHTTP
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// A configuration folder, loaded in the same way by `serve`, `check` and every reload. Beyond the syntax of its files,
/// loading checks the operator's risk budget, the guarantees, and the folder's test cases.
struct ConfigurationFolder: Sendable {
  let path: String
  /// The base of relative paths in its files; nil for the folder itself.
  private let base: String?
  private let providers: ProviderRegistry
  private let loader: ConfigurationLoader
  /// Loads without regard to the addresses that the gateway listens on.
  private let anywhere: ConfigurationLoader

  /// - Parameters:
  ///   - base: the base of relative paths in its files; nil for the folder itself.
  ///   - programs: starts the programs that gateway.lua names.
  ///   - listenAddresses: the addresses that replace those of gateway.lua.
  init(
    path: String, base: String? = nil, providers: ProviderRegistry, programs: ProgramLoading? = nil,
    listenAddresses: ListenAddresses = ListenAddresses()
  ) {
    self.path = path
    self.base = base
    self.providers = providers
    loader = ConfigurationLoader(
      providers: providers.all, pages: { PageRenderer.problems(of: $0, gateway: $1) },
      languages: PageRenderer.shippedLanguages,
      gateway: { listenAddresses.problems(of: $0) }, programs: programs)
    anywhere = ConfigurationLoader(
      providers: providers.all, pages: { PageRenderer.problems(of: $0, gateway: $1) },
      languages: PageRenderer.shippedLanguages, programs: programs)
  }

  /// The time limit for all test cases of a candidate during a reload.
  static let timeLimit: Duration = .seconds(30)
  /// The time limit in `moongate check`. It is longer because no gateway waits for the result and a busy machine gives
  /// little time to low-priority work.
  private static let checkTimeLimit: Duration = .seconds(300)

  /// Loads the folder and runs its test cases on a dedicated thread; with low priority if a gateway is running.
  /// - Parameters:
  ///   - active: the id of a generation that has already passed all checks. Its cases do not run again.
  ///   - providersToo: whether to run the cases of the providers too. A running gateway does not refuse a change
  ///     because of them.
  func load(unless active: String? = nil, casesOfProviders providersToo: Bool = false) async -> Result<
    any PolicyGeneration, RefusedConfiguration
  > {
    await DedicatedThread.run(at: providersToo ? nil : .lowPriority) { await judge(unless: active, providersToo) }
  }

  /// The generation of the folder, without checking budgets and test cases; nil if its files have problems.
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
        within: providersToo ? Self.checkTimeLimit : Self.timeLimit)
      problems += played.problems
      // A running gateway skips fuzzing, so that a change is not refused for functions that fail for some inputs
      // only.
      let swept = providersToo ? FunctionFuzzer(generation, providers: providers)?.run() : nil
      // Do not repeat a fault that a test case has already reported.
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

  /// Runs the test cases. A failing case is a problem.
  private func play(
    _ cases: [PolicyCase], of generation: any PolicyGeneration, within timeLimit: Duration
  ) async -> (problems: [ConfigurationProblem], warnings: [ConfigurationProblem]) {
    let runner = CaseRunner(generation, providers: providers, makeStore: TemporaryStore.make)
    do {
      let report = try await runner.run(cases, timeLimit: timeLimit)
      return (report.problems(after: timeLimit), report.warnings)
    } catch {
      let problem = ConfigurationProblem(
        location: SourceLocation(file: "tests", line: 0), path: "", message: "the cases could not be run: \(error)")
      return ([problem], [])
    }
  }

  /// The number of guesses that each provider allows an attacker who knows the identifier.
  func budgets(of generation: any PolicyGeneration) -> [GuessBudget] {
    GuessBudget.all(of: generation, providers: providers)
  }

  /// The settings of gateway.lua alone, if other files have problems; nil if gateway.lua has problems.
  func settings() -> GatewaySettings? { anywhere.settings(folder: path) }

  /// The cost that attackers can cause through each provider that creates accounts or sends messages.
  func costs(of generation: any PolicyGeneration) -> [CostBudget] {
    (generation.registry ?? providers).all.filter { !$0.descriptor.identifierKinds.isEmpty }.compactMap { provider in
      generation.policies[provider.descriptor.name].map(CostBudget.init)
    }
  }

  /// The weakest combination of steps that opens a session, for each flow.
  func entryPoints(of generation: any PolicyGeneration) -> EntryPointTable {
    EntryPointTable(generation, providers: providers)
  }

  private func riskProblem(of generation: any PolicyGeneration) -> ConfigurationProblem? {
    guard let most = generation.gateway.riskBudget else { return nil }
    let budgets = budgets(of: generation)
    // An attacker can try every provider that opens an account alone, so their probabilities add up.
    let alone = generation.singleFactorProviders
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
