import ArgumentParser

/// `moongate provider`: tools for authors of providers. Each subcommand is in its own file.
struct ProviderCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "provider", abstract: "List, test and create providers.",
    subcommands: [ProviderList.self, ProviderTest.self, ProviderNew.self])
}
