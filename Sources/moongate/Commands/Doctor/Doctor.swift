import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram

/// `moongate doctor`: examines the environment of a gateway.
struct Doctor: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Examine everything that a gateway depends on, and say how to fix what fails.",
    discussion: """
      Examines the configuration, certificate, master key, disk, store, clock, file limits, addresses of the \
      listeners, upstreams, message delivery, DNS, and the proxies in front. Changes nothing. Run it as the gateway's \
      user, also while the gateway runs. Exit status: 0 if nothing failed, 1 if something failed, 2 if it could not \
      run.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Option(help: "Send a test message to this email address or phone number in international format.") var to: String?
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    if let to, !to.contains("@"), to.wholeMatch(of: /\+[0-9]{6,15}/) == nil {
      throw StartProblem("--to must be an email address or a phone number like +15550100.", status: .couldNotRun)
    }
    let folder = try configuration.checked()
    let programs = ProviderProcessManager.forTools()
    let registry = try Providers.registry()
    let loaded = await ConfigurationFolder(path: folder, providers: registry, programs: programs.loading()).load()
    let findings: [Finding]
    switch loaded {
    case .failure(let refused):
      findings = refused.problems.map {
        .failed(
          "configuration", "\($0)",
          fix: "Correct this line; `moongate check --config \(folder)` lists all problems.")
      }
    case .success(let generation):
      findings = await Examination(generation, of: folder, registry: registry, recipient: to).findings()
    }
    await programs.end()
    let report = DoctorReport(checks: findings)
    print(json ? try ToolJSON.text(report) : report.text)
    if report.hasFailed { throw ExitCode(ExitStatus.found.rawValue) }
  }
}
