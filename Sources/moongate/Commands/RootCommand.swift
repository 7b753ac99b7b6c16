import ArgumentParser
import MoongateProgram

/// The command of the gateway. Each subcommand is in its own file.
package struct RootCommand: AsyncParsableCommand {
  package static let configuration = CommandConfiguration(
    commandName: "moongate",
    abstract: "An authentication gateway: every request must be authenticated before it reaches a service.",
    version: BuildVersion.text,
    subcommands: [
      Serve.self, Init.self, Check.self, Reload.self, Upgrade.self, Health.self, Doctor.self, ProxyCommand.self,
      Policy.self,
      ProviderCommand.self,
      AccountCommand.self,
      GroupCommand.self,
      InviteCommand.self,
      LocksCommand.self,
      TokenCommand.self,
      AppCommand.self,
      PagesCommand.self,
      KeysCommand.self,
      StoreCommand.self, Version.self, ReferenceCommand.self, HelpCommand.self,
    ])

  package init() {}
}
