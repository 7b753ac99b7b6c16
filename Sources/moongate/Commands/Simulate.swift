import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// `moongate policy simulate`: an attacker against the configuration, a month in seconds.
struct Simulate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract:
      "Let an attacker at the policies: the real engine, a virtual clock, and honest people who go about their day.",
    discussion: """
      guess     one person's code, PIN or password, by whoever knows their number or address (for a PIN: holds their session), with the
                best plan there is
      flood     codes sent to number after number, each of another prefix: what pumping messages for money comes to
      spray     a few guesses at each of many accounts, from many networks, and never one that locks
      register  accounts made one after another: rows, hashes and messages

      Honest people sign in meanwhile: three on a device that has passed before, two on a new one each time. With `register` others register too.

      Exits with 1 where the chance of entry is above risk_budget.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Option(help: "guess, flood, spray or register.") var attacker: Simulation.Attacker
  @Option(name: .customLong("for"), help: "Virtual time, such as 12h or 30d.") var span = Span.month
  @Option(help: "How many addresses the attacker has.") var ips = 100
  @Option(help: "Over how many networks (/24) they are spread.") var networks = 10
  @Option(help: "How many accounts are sprayed.") var accounts = 100
  @Option(help: "Whose policy is attacked: phone_otp, pin, password, …") var provider: ProviderName?
  @Option(
    name: .customLong("price-sms"), help: "What one SMS costs, such as 0.05: the messages are told with what they cost."
  ) var price: Double?
  @Option(help: "Write a picture of guesses, messages and locks over time to this file (SVG).") var svg: String?
  @Option(help: "How long it may take in real time; what was not played by then is estimated from the pace.")
  var patience = Span.nineSeconds
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    guard ips > 0, networks > 0, accounts > 0 else {
      throw StartProblem("--ips, --networks and --accounts are 1 or more.", status: .couldNotRun)
    }
    if let price, !price.isFinite || price < 0 {
      throw StartProblem("--price-sms is an amount, such as 0.05.", status: .couldNotRun)
    }
    let generation = try configuration.generation()
    let registry = try generation.registry ?? Providers.registry()
    let coded = registry.all.filter { $0 is any CodeProvider }.map(\.descriptor.name)
    // Passwords are what registering costs most by.
    let hashed =
      attacker == .register
      ? registry.all.map(\.descriptor).first { $0.hashesSecrets && !$0.identifierKinds.isEmpty }?.name : nil
    guard
      let name = provider ?? hashed.flatMap({ generation.policies[$0] == nil ? nil : $0 })
        ?? coded.first(where: { generation.policies[$0] != nil })
    else {
      throw StartProblem(
        "gateway.lua configures no provider that sends codes: name another by --provider.", status: .couldNotRun)
    }
    let simulation = Simulation(
      attacker: attacker, provider: name, span: span.duration, addresses: ips, networks: networks, accounts: accounts,
      patience: patience.duration, price: price)
    do {
      let report = try await simulation.run(generation, providers: registry, makeStore: PassingStore.make)
      print(json ? try ToolJSON.text(report) : report.text(colour: Terminal.showsColour))
      if let svg, let timeline = report.timeline { try Self.write(SimulationPicture(report, timeline).svg, to: svg) }
      if report.isTooLikely { throw ExitCode(ExitStatus.found.rawValue) }
    } catch let problem as SimulationProblem {
      throw StartProblem("\(problem).", status: .couldNotRun)
    }
  }
}

extension Simulate {
  private static func write(_ text: String, to path: String) throws {
    do { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) } catch {
      throw StartProblem(
        "The picture cannot be written to \(path): \(error.localizedDescription)", status: .couldNotRun)
    }
  }
}

extension Simulation.Attacker: ExpressibleByArgument {}
