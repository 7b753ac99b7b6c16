import ArgumentParser

/// `moongate provider`: lists providers, and runs the tools for their authors.
struct ProviderCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "provider", abstract: "List, test and create providers.",
    subcommands: [ProviderList.self, RunProviderTest.self, RunProviderNew.self])
}
