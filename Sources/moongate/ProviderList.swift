import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// `moongate provider list`: what this program has.
struct ProviderList: ParsableCommand {
  static let configuration = CommandConfiguration(commandName: "list", abstract: "List the providers of this program.")

  @Flag(help: "Print JSON.") var json = false

  /// One provider, for programs.
  private struct Entry: Encodable {
    let name: String
    let shape: String
    let begin: [String]
    let submit: [String]
    let settings: [String]
    let outcomes: [String]
    let facts: [String]
    let sdk: Int
  }

  func run() throws {
    let entries = try Providers.registry().all.map { provider in
      let descriptor = provider.descriptor
      return Entry(
        name: descriptor.name.rawValue, shape: provider is any CodeProvider ? "code" : "full", begin: descriptor.beginFields.map(\.name),
        submit: descriptor.submitFields.map(\.name), settings: descriptor.settings.map(\.name), outcomes: descriptor.outcomes.map(\.reason.rawValue),
        facts: descriptor.facts.compactMap { fact in descriptor.of(fact).map { "\($0.rawValue).\(fact.name)" } }, sdk: descriptor.sdk)
    }
    if json {
      print(try ToolJSON.text(entries))
      return
    }
    let width = entries.map(\.name.count).max() ?? 0
    for entry in entries {
      let settings = entry.settings.isEmpty ? "no settings" : "settings: \(entry.settings.joined(separator: ", "))"
      print("\(entry.name.padding(toLength: width, withPad: " ", startingAt: 0))  \(entry.shape)  \(settings)")
    }
  }
}
