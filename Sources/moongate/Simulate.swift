import ArgumentParser
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// `moongate policy simulate`: an attacker against the configuration, a month in seconds.
struct Simulate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Let an attacker at the policies: the real engine, a virtual clock, and honest people who go about their day.",
    discussion: """
      guess   one person's code, PIN or password, by whoever knows their number or address (for a PIN: holds their session), with the
              best plan there is
      flood   codes sent to person after person
      spray   a few guesses at each of many accounts, and never one that locks

      Exits with 1 where the chance of entry is above risk_budget.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Option(help: "guess, flood or spray.") var attacker: Simulation.Attacker
  @Option(name: .customLong("for"), help: "Virtual time, such as 12h or 30d.") var span = Span.month
  @Option(help: "How many addresses the attacker has.") var ips = 100
  @Option(help: "How many accounts are sprayed.") var accounts = 100
  @Option(help: "Whose policy is attacked: phone_otp, pin, password, …") var provider: ProviderName?
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    guard ips > 0, accounts > 0 else { throw StartProblem("--ips and --accounts are 1 or more.", status: .couldNotRun) }
    let generation = try configuration.generation()
    let registry = try ProviderRegistry(Providers.all)
    let coded = registry.all.filter { $0 is any CodeProvider }.map(\.descriptor.name)
    guard let name = provider ?? coded.first(where: { generation.policies[$0] != nil }) else {
      throw StartProblem("gateway.lua configures no provider that sends codes: name another by --provider.", status: .couldNotRun)
    }
    let simulation = Simulation(attacker: attacker, provider: name, span: span.duration, addresses: ips, accounts: accounts)
    do {
      let report = try await simulation.run(generation, providers: registry, makeStore: PassingStore.make)
      print(json ? try ToolJSON.text(report) : report.text(colour: Terminal.showsColour))
      if report.isTooLikely { throw ExitCode(ExitStatus.found.rawValue) }
    } catch let problem as SimulationProblem {
      throw StartProblem("\(problem).", status: .couldNotRun)
    }
  }
}

extension Simulation.Attacker: ExpressibleByArgument {}
