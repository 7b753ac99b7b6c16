import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// `moongate policy test`: the cases of tests/ that fail, act by act.
struct PolicyTest: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "test",
    abstract:
      "Play the cases of tests/, and those that come with providers, on the real engine, with a virtual clock and an empty store each.",
    discussion:
      "Tells the cases that fail, act by act, and how many hold; -v tells all of them. Exits with 0 where all hold, 1 where one fails or a file has a problem, 2 where there is nothing to look at."
  )

  @OptionGroup var configuration: ConfigurationOption
  @Flag(
    name: [.customShort("v"), .long],
    help: "Tell every case with its file, and each act of those that fail for one reason.") var verbose = false
  @Flag(help: "Show which limits, functions and branches the cases touch.") var coverage = false
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let loaded = try configuration.loaded()
    let runner = CaseRunner(loaded.generation, providers: try Providers.registry(), makeStore: PassingStore.make)
    let report = try await runner.run(loaded.cases + loaded.providerCases, watchesBranches: coverage)
    if json {
      print(try ToolJSON.text(CaseReportDocument(report, withCoverage: coverage)))
    } else {
      let colour = Terminal.showsColour
      print(report.text(colour: colour, isVerbose: verbose))
      if coverage { print("\n" + report.coverage.text(colour: colour)) }
    }
    if !report.holds { throw ExitCode(ExitStatus.found.rawValue) }
  }
}

/// What `policy test --json` prints.
struct CaseReportDocument: Encodable {
  struct Act: Encodable {
    /// Virtual seconds since the case began.
    let seconds: Double
    let act: String
    let outcome: String
    let file: String
    let line: Int
  }

  struct Failure: Encodable {
    struct Difference: Encodable {
      let field: String
      let expected: String
      let actual: String
    }

    let file: String
    let line: Int
    let message: String
    let differences: [Difference]
  }

  struct Case: Encodable {
    let name: String
    let file: String
    let line: Int
    let holds: Bool
    let failure: Failure?
    let trace: [Act]
  }

  let holds: Bool
  let cases: [Case]
  /// What the cases met that the operator should know.
  let warnings: [String]
  let coverage: Coverage?

  init(_ report: CaseReport, withCoverage: Bool) {
    holds = report.holds
    warnings = report.warnings.map(\.description)
    cases = report.outcomes.map { outcome in
      Case(
        name: outcome.name, file: outcome.location.file, line: outcome.location.line, holds: outcome.holds,
        failure: outcome.failure.map { failure in
          Failure(
            file: failure.location.file, line: failure.location.line, message: failure.summary,
            differences: failure.differences.map {
              Failure.Difference(field: $0.field, expected: $0.expected, actual: $0.actual)
            })
        },
        trace: outcome.trace.map {
          Act(
            seconds: Double($0.at.wholeMilliseconds) / 1000, act: $0.act, outcome: $0.outcome, file: $0.location.file,
            line: $0.location.line)
        })
    }
    coverage = withCoverage ? report.coverage : nil
  }
}
