import ArgumentParser

/// `moongate provider`: for whoever writes one. Each question is a file of its own.
struct ProviderCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "provider", abstract: "List, try out and begin providers.",
    subcommands: [ProviderList.self, ProviderTest.self, ProviderNew.self])
}
