import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// `moongate policy diff`: what a change of the files would change for people.
struct Diff: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Play the same traffic against two configurations and tell which decisions differ.",
    discussion: """
      Without --log the traffic is a simulated week of a small town, with an attacker. Tells as well who gains and who loses \
      access to which route. Exits with 1 where decisions or access differ.
      """)

  @Argument(help: "The folder that serves now.") var old: String
  @Argument(help: "The folder that is to serve.") var new: String
  @Option(help: "Recorded events: what GET /events?limit=100000 of the admin listener answers.") var log: String?
  @Option(help: "Whose policy is compared.") var provider: ProviderName?
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let before = try ConfigurationOption.generation(of: old)
    let after = try ConfigurationOption.generation(of: new)
    let registry = try after.registry ?? Providers.registry()
    let coded = registry.all.filter { $0 is any CodeProvider }.map(\.descriptor.name)
    guard let name = provider ?? coded.first(where: { before.policies[$0] != nil && after.policies[$0] != nil }) else {
      throw StartProblem("Both folders must configure the provider that is compared.", status: .couldNotRun)
    }
    do {
      let diff = try await PolicyDiff(
        old: before, new: after, provider: name, traffic: try traffic(name, registry), providers: registry,
        makeStore: PassingStore.make)
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
      if traffic.acts.isEmpty { throw StartProblem("\(log) holds no decision about \(name).", status: .couldNotRun) }
      return traffic
    } catch let error as TrafficProblem {
      throw StartProblem(
        "\(log):\(error.line): not an event; save what GET /events of the admin listener answers.", status: .couldNotRun
      )
    }
  }
}
