import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy

/// `moongate doctor`: what stands around a gateway, looked at.
struct Doctor: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Look at all that a gateway needs, and tell what to do about what is wrong.",
    discussion: """
      Looks at the configuration, certificate, master key, disk, store, clock, file limits, upstreams, ways for messages to leave, DNS, and the proxies in \
      front. Changes nothing. Run it as the gateway's user, beside a gateway that runs. Exits with 0 if nothing failed, with 1 if something did, with 2 if it \
      could not look.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Option(help: "Send a test message there: an email address, or a number in international form.") var to: String?
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    if let to, !to.contains("@"), to.wholeMatch(of: /\+[0-9]{6,15}/) == nil {
      throw StartProblem("--to takes an email address, or a number such as +15550100.", status: .couldNotRun)
    }
    let folder = try configuration.checked()
    let programs = ProviderProcessManager.forTools()
    let registry = try Providers.registry()
    let loaded = await ConfigurationFolder(path: folder, providers: registry, programs: programs.loading()).load()
    let findings: [Finding]
    switch loaded {
    case .failure(let refused):
      findings = refused.problems.map {
        .failed("configuration", "\($0)", fix: "Correct this line; `moongate check` tells the rest.")
      }
    case .success(let generation):
      findings = await Examination(generation, registry: registry, recipient: to).findings()
    }
    await programs.end()
    let report = DoctorReport(checks: findings)
    print(json ? try ToolJSON.text(report) : report.text)
    if report.hasFailed { throw ExitCode(ExitStatus.found.rawValue) }
  }
}
