import ArgumentParser

/// `moongate policy`: tools for policies. Each subcommand is in its own file.
struct Policy: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Test, explain and compare policies.",
    subcommands: [
      PolicyTest.self, Show.self, PolicyFacts.self, PolicyClaims.self, Explain.self, Simulate.self, Diff.self,
      PolicyShadowCommand.self,
      PolicyTypes.self,
    ])
}
