import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate check`: reports all problems of a configuration folder, without starting a server or creating files.
struct Check: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check a configuration and list all problems with file and line.",
    discussion: """
      Exit status: 0 without problems, 1 with problems, 2 if the folder cannot be read. Programs that gateway.lua names with exec { … } are \
      started for their handshake, which takes at most ten seconds each, and stopped again.

      The guesses and costs that the policies allow are printed with --budget, if they are refused, or if they differ from the running gateway's.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Flag(help: "Print the guesses, messages and accounts that the policies allow.") var budget = false
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let programs = ProviderProcessManager.forTools()
    let folder = ConfigurationFolder(
      path: try configuration.checked(), providers: try Providers.registry(), programs: programs.loading())
    let judged = await folder.load(casesOfProviders: true)
    // Compute the budgets even for a configuration that is refused because of them.
    let generation = (try? judged.get()) ?? folder.generation()
    let budgets = generation.map(folder.budgets) ?? []
    let entryPoints = generation.map(folder.entryPoints)
    await programs.end()
    let table = GuessBudget.table(
      budgets, accepted: generation?.gateway.riskBudget, alone: generation?.singleFactorProviders ?? [],
      colour: Terminal.showsColour)
    let costs = generation.map(folder.costs) ?? []
    var tables = [table, CostBudget.table(costs, colour: Terminal.showsColour)].filter { !$0.isEmpty }.joined(
      separator: "\n\n")
    if !json, let generation, !budget, await !shouldPrintBudgets(budgets, of: generation, judged) { tables = "" }
    let costReport = FolderBudget(
      budgets: budgets, costs: costs, table: tables, entryPoints: entryPoints, started: programs.started)
    switch judged {
    case .success(let generation):
      try printReport(problems: [], warnings: generation.warnings, costReport, of: generation.id)
    case .failure(let refused):
      try printReport(
        problems: refused.problems, warnings: refused.warnings.isEmpty ? generation?.warnings ?? [] : refused.warnings,
        costReport, of: refused.id)
    }
  }

  /// Whether the budgets are refused or differ from those of the running gateway.
  private func shouldPrintBudgets(
    _ budgets: [GuessBudget], of generation: any PolicyGeneration,
    _ judged: Result<any PolicyGeneration, RefusedConfiguration>
  ) async -> Bool {
    if case .failure(let refused) = judged, refused.problems.contains(where: { $0.path == "risk_budget" }) {
      return true
    }
    guard let active = try? await ActivePolicies.ask(generation.gateway) else { return false }
    return active.budgets != budgets.map(ActivePolicies.Budget.init)
  }

  /// The budgets of a folder, even if the folder is refused because of them.
  private struct FolderBudget {
    let budgets: [GuessBudget]
    /// The cost that attackers can cause.
    let costs: [CostBudget]
    /// The budgets and costs as a table for the terminal.
    let table: String
    /// nil if the folder itself has problems.
    let entryPoints: EntryPointTable?
    /// The programs that were started for their handshake.
    let started: [String]
  }

  private func printReport(
    problems: [ConfigurationProblem], warnings: [ConfigurationProblem], _ costReport: FolderBudget,
    of generation: String?
  ) throws {
    if json {
      print(try ToolJSON.text(Report(problems: problems, warnings: warnings, costReport)))
    } else {
      let list = ProblemList(problems: problems, warnings: warnings).text
      if !list.isEmpty { print(list + "\n") }
      if !costReport.table.isEmpty { print(costReport.table + "\n") }
      if let entryPoints = costReport.entryPoints?.text(colour: Terminal.showsColour), !entryPoints.isEmpty {
        print(entryPoints + "\n")
      }
      if !costReport.started.isEmpty {
        print("started for the handshake and stopped again: \(costReport.started.joined(separator: ", "))")
      }
      if problems.isEmpty {
        print("generation \((generation ?? "").prefix(8)) is good")
      } else {
        print("\(problems.count) problem\(problems.count == 1 ? "" : "s")")
      }
    }
    if !problems.isEmpty { throw ExitCode(ExitStatus.found.rawValue) }
  }

  /// The JSON output of `check --json`.
  private struct Report: Encodable {
    struct Line: Encodable {
      let file: String
      /// null if the problem concerns the whole file.
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

    /// The number of guesses that a policy allows an attacker who knows the identifier; null if unbounded.
    struct Budget: Encodable {
      let provider: String
      let guessesPerDay: Int?
      let guessesPer30Days: Int?
      let probability30Days: Double?
      /// For a user-chosen secret: the share of the 1,000 most common values that the guesses cover.
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
    /// The cost that attackers can cause.
    let costs: [CostBudget]
    /// The weakest combination of steps that opens a session, for each flow.
    let entryPoints: [EntryPoint]
    /// The flows that create accounts, and by which providers.
    let registrations: [RegistrationPoint]
    /// The weakest sign-in that each app accepts.
    let apps: [AppEntryPoint]
    /// The programs that were started for their handshake.
    let programs: [String]

    enum CodingKeys: String, CodingKey {
      case problems, warnings, budgets, costs
      case entryPoints = "doors"
      case registrations, apps, programs
    }

    init(problems: [ConfigurationProblem], warnings: [ConfigurationProblem], _ costReport: FolderBudget) {
      costs = costReport.costs
      entryPoints = costReport.entryPoints?.entryPoints ?? []
      registrations = costReport.entryPoints?.registrations ?? []
      apps = costReport.entryPoints?.apps ?? []
      programs = costReport.started
      self.problems = problems.map(Line.init)
      self.warnings = warnings.map(Line.init)
      budgets = costReport.budgets.map {
        Budget(
          provider: $0.provider.rawValue, guessesPerDay: $0.perDay, guessesPer30Days: $0.per30Days,
          probability30Days: $0.probability30Days,
          commonShare30Days: $0.commonShare30Days)
      }
    }
  }
}
