import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate policy diff`: shows how two configurations decide differently.
struct Diff: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run the same traffic against two configurations and list the decisions that differ.",
    discussion: """
      Without --log, the traffic is a simulated week of a small town, with an attacker. The output also lists who gains and who loses \
      access to which route. Exit status: 1 if decisions or access differ.
      """)

  @Argument(help: "The folder of the current configuration.") var old: String
  @Argument(help: "The folder of the new configuration.") var new: String
  @Option(help: "Recorded traffic: a file with the answer of GET /events?limit=100000 of the admin listener.") var log:
    String?
  @Option(help: "The provider whose policy is compared.") var provider: ProviderName?
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let before = try ConfigurationOption.generation(of: old)
    let after = try ConfigurationOption.generation(of: new)
    let registry = try after.registry ?? Providers.registry()
    let coded = registry.all.filter { $0 is any CodeProvider }.map(\.descriptor.name)
    guard let name = provider ?? coded.first(where: { before.policies[$0] != nil && after.policies[$0] != nil }) else {
      throw StartProblem("Both folders must configure the provider.", status: .couldNotRun)
    }
    do {
      let diff = try await PolicyDiff(
        old: before, new: after, provider: name, traffic: try traffic(name, registry), providers: registry,
        makeStore: TemporaryStore.make)
      print(json ? try ToolJSON.text(diff) : diff.text(colour: Terminal.showsColour))
      if diff.differs { throw ExitCode(ExitStatus.found.rawValue) }
    } catch let problem as SimulationProblem {
      throw StartProblem("\(problem).", status: .couldNotRun)
    }
  }

  private func traffic(_ name: ProviderName, _ registry: ProviderRegistry) throws -> Traffic {
    guard let log, let provider = registry.descriptor(name) else { return Traffic(seed: 1) }
    guard let data = FileManager.default.contents(atPath: log) else {
      throw StartProblem("The log \(log) cannot be read.", status: .couldNotRun)
    }
    do {
      let traffic = try Traffic(recorded: data, of: provider)
      if traffic.acts.isEmpty { throw StartProblem("\(log) contains no decision of \(name).", status: .couldNotRun) }
      return traffic
    } catch let error as TrafficProblem {
      throw StartProblem(
        "\(log):\(error.line): not an event. Save the answer of GET /events of the admin listener.",
        status: .couldNotRun
      )
    }
  }
}
