import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate policy test`: runs the cases of `tests/` and prints the acts of those that fail.
struct PolicyTest: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "test",
    abstract:
      "Run the cases of tests/ and of the providers with the real engine, each with a virtual clock and an empty store.",
    discussion:
      "Prints each failing case act by act, and the number of cases that pass; -v prints all cases. Exit status: 0 if all cases pass, 1 if a case fails or a file has a problem, 2 if the folder cannot be read."
  )

  @OptionGroup var configuration: ConfigurationOption
  @Flag(
    name: [.customShort("v"), .long],
    help: "Print every case with its file, and every act of failing cases.") var verbose = false
  @Flag(help: "Show the limits, functions and branches that the cases cover.") var coverage = false
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let loaded = try configuration.loaded()
    let runner = CaseRunner(loaded.generation, providers: try Providers.registry(), makeStore: TemporaryStore.make)
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

/// The JSON output of `policy test --json`.
struct CaseReportDocument: Encodable {
  struct Act: Encodable {
    /// Virtual seconds since the start of the case.
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
  /// Warnings about the cases for the operator.
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
