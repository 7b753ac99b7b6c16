import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// `moongate check`: every problem of a folder at once, without starting or making anything.
struct Check: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tell every problem of a configuration, each with its file and line.",
    discussion: """
      Exits with 0 where there is none, 1 where there is one, 2 where there is nothing to look at. Programs that gateway.lua names by exec { … } are \
      started for their handshake, which takes at most ten seconds each, and ended again.

      The guesses and costs that the policies grant are printed with --budget, where they are refused, and where the gateway that runs grants others.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Flag(help: "Print what the policies grant: guesses, messages, accounts.") var budget = false
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let programs = ProviderProcessManager.forTools()
    let folder = ConfigurationFolder(
      path: try configuration.checked(), providers: try Providers.registry(), programs: programs.loading())
    let judged = await folder.load(casesOfProviders: true)
    // What it grants is told of a folder that is refused for it, too.
    let generation = (try? judged.get()) ?? folder.generation()
    let budgets = generation.map(folder.budgets) ?? []
    let doors = generation.map(folder.doors)
    await programs.end()
    let table = GuessBudget.table(
      budgets, accepted: generation?.gateway.riskBudget, alone: generation?.providersThatOpenAlone ?? [],
      colour: Terminal.showsColour)
    let costs = generation.map(folder.costs) ?? []
    var tables = [table, CostBudget.table(costs, colour: Terminal.showsColour)].filter { !$0.isEmpty }.joined(
      separator: "\n\n")
    if !json, let generation, !budget, await !isWorthTelling(budgets, of: generation, judged) { tables = "" }
    let told = FolderBudget(budgets: budgets, costs: costs, table: tables, doors: doors, started: programs.started)
    switch judged {
    case .success(let generation):
      try tell(problems: [], warnings: generation.warnings, told, of: generation.id)
    case .failure(let refused):
      try tell(
        problems: refused.problems, warnings: refused.warnings.isEmpty ? generation?.warnings ?? [] : refused.warnings,
        told, of: refused.id)
    }
  }

  /// Whether the budgets are refused, or others than those of the gateway that runs.
  private func isWorthTelling(
    _ budgets: [GuessBudget], of generation: any PolicyGeneration,
    _ judged: Result<any PolicyGeneration, RefusedConfiguration>
  ) async -> Bool {
    if case .failure(let refused) = judged, refused.problems.contains(where: { $0.path == "risk_budget" }) {
      return true
    }
    guard let active = try? await ActivePolicies.ask(generation.gateway) else { return false }
    return active.budgets != budgets.map(ActivePolicies.Budget.init)
  }

  /// What a folder grants, whether it is refused for it or not.
  private struct FolderBudget {
    let budgets: [GuessBudget]
    /// What attackers may cost.
    let costs: [CostBudget]
    /// The budgets and the costs, for a person.
    let table: String
    /// nil where the folder has problems of its own.
    let doors: EntryPointTable?
    /// The programs that were started for their handshake.
    let started: [String]
  }

  private func tell(
    problems: [ConfigurationProblem], warnings: [ConfigurationProblem], _ told: FolderBudget, of generation: String?
  ) throws {
    if json {
      print(try ToolJSON.text(Report(problems: problems, warnings: warnings, told)))
    } else {
      let list = ProblemList(problems: problems, warnings: warnings).text
      if !list.isEmpty { print(list + "\n") }
      if !told.table.isEmpty { print(told.table + "\n") }
      if let doors = told.doors?.text(colour: Terminal.showsColour), !doors.isEmpty { print(doors + "\n") }
      if !told.started.isEmpty {
        print("started for the handshake, and ended again: \(told.started.joined(separator: ", "))")
      }
      if problems.isEmpty {
        print("generation \((generation ?? "").prefix(8)) is good")
      } else {
        print("\(problems.count) problem\(problems.count == 1 ? "" : "s")")
      }
    }
    if !problems.isEmpty { throw ExitCode(ExitStatus.found.rawValue) }
  }

  /// What `check --json` prints (exact.md).
  private struct Report: Encodable {
    struct Line: Encodable {
      let file: String
      /// null where the whole file is meant.
      let line: Int?
      let path: String
      let message: String

      enum CodingKeys: String, CodingKey { case file, line, path, message }

      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(file, forKey: .file)
        try container.encode(line, forKey: .line)
        try container.encode(path, forKey: .path)
        try container.encode(message, forKey: .message)
      }

      init(_ problem: ConfigurationProblem) {
        file = problem.location.file
        line = problem.location.line > 0 ? problem.location.line : nil
        path = problem.path
        message = problem.message
      }
    }

    /// How many guesses a policy grants to one who knows the identifier; null: unbounded.
    struct Budget: Encodable {
      let provider: String
      let guessesPerDay: Int?
      let guessesPer30Days: Int?
      let probability30Days: Double?
      /// Of a secret that people choose: which part of the 1,000 most common ones the guesses cover.
      let commonShare30Days: Double?

      enum CodingKeys: String, CodingKey {
        case provider
        case guessesPerDay = "guesses_per_day"
        case guessesPer30Days = "guesses_per_30d"
        case probability30Days = "probability_30d"
        case commonShare30Days = "common_share_30d"
      }

      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(provider, forKey: .provider)
        try container.encode(guessesPerDay, forKey: .guessesPerDay)
        try container.encode(guessesPer30Days, forKey: .guessesPer30Days)
        try container.encode(probability30Days, forKey: .probability30Days)
        try container.encodeIfPresent(commonShare30Days, forKey: .commonShare30Days)
      }
    }

    let problems: [Line]
    let warnings: [Line]
    let budgets: [Budget]
    /// What attackers may cost.
    let costs: [CostBudget]
    /// For each flow that opens sessions, the least that gets in.
    let doors: [EntryPoint]
    /// The programs that were started for their handshake.
    let programs: [String]

    init(problems: [ConfigurationProblem], warnings: [ConfigurationProblem], _ told: FolderBudget) {
      costs = told.costs
      doors = told.doors?.doors ?? []
      programs = told.started
      self.problems = problems.map(Line.init)
      self.warnings = warnings.map(Line.init)
      budgets = told.budgets.map {
        Budget(
          provider: $0.provider.rawValue, guessesPerDay: $0.perDay, guessesPer30Days: $0.per30Days,
          probability30Days: $0.probability30Days,
          commonShare30Days: $0.commonShare30Days)
      }
    }
  }
}
