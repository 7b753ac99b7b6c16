import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate policy simulate`: simulates a month of attack in seconds.
struct Simulate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract:
      "Simulate an attack on the policies, with the real engine, a virtual clock, and ordinary users.",
    discussion: """
      guess     guesses the code, PIN or password of one user, with the best strategy. The attacker knows the identifier
                (for a PIN: has the session)
      flood     sends codes to one number after another, each with a different prefix (SMS pumping)
      spray     makes a few guesses at each of many accounts, from many networks, without locking any of them
      register  creates accounts one after another: the cost in rows, hashes and messages

      Meanwhile, ordinary users sign in: three on a trusted device, two on a new device each time. With `register`, others register too.

      Exit status: 1 if the probability of a successful attack is above risk_budget.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Option(help: "The attack: guess, flood, spray or register.") var attacker: Simulation.Attacker
  @Option(name: .customLong("for"), help: "The virtual time, for example 12h or 30d.") var span = Span.month
  @Option(help: "The number of the attacker's IP addresses.") var ips = 100
  @Option(help: "The number of networks (/24) that the addresses are in.") var networks = 10
  @Option(help: "The number of accounts for `spray`.") var accounts = 100
  @Option(help: "The provider to attack: phone_otp, pin, password, …") var provider: ProviderName?
  @Option(
    name: .customLong("price-sms"), help: "The price of one SMS, for example 0.05, to print the cost of the messages."
  ) var price: Double?
  @Option(help: "Write a chart of guesses, messages and locks over time to this SVG file.") var svg: String?
  @Option(help: "The limit in real time. The rest of the virtual time is extrapolated from the measured rate.")
  var patience = Span.nineSeconds
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    guard ips > 0, networks > 0, accounts > 0 else {
      throw StartProblem("--ips, --networks and --accounts must be 1 or more.", status: .couldNotRun)
    }
    if let price, !price.isFinite || price < 0 {
      throw StartProblem("--price-sms must be an amount, for example 0.05.", status: .couldNotRun)
    }
    let generation = try configuration.generation()
    let registry = try generation.registry ?? Providers.registry()
    let coded = registry.all.filter { $0 is any CodeProvider }.map(\.descriptor.name)
    // Hashing a password is the main cost of a registration.
    let hashed =
      attacker == .register
      ? registry.all.map(\.descriptor).first { $0.hashesSecrets && !$0.identifierKinds.isEmpty }?.name : nil
    guard
      let name = provider ?? hashed.flatMap({ generation.policies[$0] == nil ? nil : $0 })
        ?? coded.first(where: { generation.policies[$0] != nil })
    else {
      throw StartProblem(
        "gateway.lua configures no provider that sends codes. Choose another with --provider.", status: .couldNotRun)
    }
    let simulation = Simulation(
      attacker: attacker, provider: name, span: span.duration, addresses: ips, networks: networks, accounts: accounts,
      timeLimit: patience.duration, price: price)
    do {
      let report = try await simulation.run(generation, providers: registry, makeStore: TemporaryStore.make)
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
        "The chart cannot be written to \(path): \(error.localizedDescription)", status: .couldNotRun)
    }
  }
}

extension Simulation.Attacker: ExpressibleByArgument {}
