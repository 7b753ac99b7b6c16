import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate provider list`: lists the providers of this program.
struct ProviderList: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the providers of this program.",
    discussion: "With --config, it also lists the provider instances and programs of a folder.")

  @Option(name: .customLong("config"), help: "A folder whose provider instances and programs are listed too.")
  var folder: String?
  @Flag(help: "Print JSON.") var json = false

  /// One provider in the JSON output.
  private struct Entry: Encodable {
    let name: String
    let shape: String
    let begin: [String]
    let submit: [String]
    let settings: [String]
    let outcomes: [String]
    let facts: [String]
    let sdk: Int
    let instanceOf: String?

    enum CodingKeys: String, CodingKey {
      case name, shape, begin, submit, settings, outcomes, facts, sdk
      case instanceOf = "instance_of"
    }
  }

  func run() async throws {
    // A kind of site is listed by its instances.
    let providers = try await ConfigurationOption.registry(of: folder).all.filter {
      !$0.descriptor.isKind || $0.descriptor.instanceOf != nil
    }
    let entries = providers.map { provider in
      let descriptor = provider.descriptor
      return Entry(
        name: descriptor.name.rawValue, shape: provider is any CodeProvider ? "code" : "full",
        begin: descriptor.beginFields.map(\.name),
        submit: descriptor.submitFields.map(\.name), settings: descriptor.settings.map(\.name),
        outcomes: descriptor.outcomes.map(\.reason.rawValue),
        facts: descriptor.facts.map { fact in
          "\(descriptor.of(fact)?.rawValue ?? "providers.\(descriptor.name)").\(fact.name)"
        },
        sdk: descriptor.sdk,
        instanceOf: descriptor.instanceOf?.rawValue)
    }
    if json {
      print(try ToolJSON.text(entries))
      return
    }
    let width = entries.map(\.name.count).max() ?? 0
    for entry in entries {
      let settings = entry.settings.isEmpty ? "no settings" : "settings: \(entry.settings.joined(separator: ", "))"
      let instance = entry.instanceOf.map { "an instance of \($0), " } ?? ""
      print(
        "\(entry.name.padding(toLength: width, withPad: " ", startingAt: 0))  \(entry.shape)  \(instance)\(settings)")
    }
  }
}
