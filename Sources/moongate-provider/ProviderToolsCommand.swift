import ArgumentParser

/// The command `moongate-provider`: tools for authors of providers. Each subcommand is in its own file.
package struct ProviderToolsCommand: AsyncParsableCommand {
  package static let configuration = CommandConfiguration(
    commandName: "moongate-provider", abstract: "Create and test providers.",
    discussion: "`moongate provider list` lists the providers of a gateway.",
    subcommands: [ProviderTest.self, ProviderNew.self])

  package init() {}
}
