import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// `moongate check`: every problem of a folder at once, without starting or making anything.
struct Check: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tell every problem of a configuration, each with its file and line.",
    discussion: "Exits with 0 where there is none, 1 where there is one, 2 where there is nothing to look at.")

  @OptionGroup var configuration: ConfigurationOption
  @Flag(help: "Print JSON.") var json = false

  func run() throws {
    let folder = try configuration.checked()
    switch ConfigurationLoader(providers: Providers.all.map(\.descriptor)).load(folder: folder) {
    case .success(let generation): try tell(problems: [], warnings: generation.warnings, of: generation.id)
    case .failure(let refused): try tell(problems: refused.problems, warnings: [], of: refused.id)
    }
  }

  private func tell(problems: [ConfigurationProblem], warnings: [ConfigurationProblem], of generation: String?) throws {
    if json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
      print(String(decoding: try encoder.encode(Report(problems: problems, warnings: warnings)), as: UTF8.self))
    } else {
      for problem in problems { print(problem) }
      for warning in warnings { print("warning: \(warning)") }
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
      let line: Int
      let path: String
      let message: String

      init(_ problem: ConfigurationProblem) {
        file = problem.location.file
        line = problem.location.line
        path = problem.path
        message = problem.message
      }
    }

    /// How many guesses a policy grants.
    struct Budget: Encodable {}

    let problems: [Line]
    let warnings: [Line]
    /// Empty: no budget is computed.
    let budgets: [Budget] = []

    init(problems: [ConfigurationProblem], warnings: [ConfigurationProblem]) {
      self.problems = problems.map(Line.init)
      self.warnings = warnings.map(Line.init)
    }
  }
}
