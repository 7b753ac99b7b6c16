import ArgumentParser

/// `moongate check`
struct Check: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Tell every problem of a configuration.")
  @OptionGroup var configuration: ConfigurationOption
  func run() async throws { _ = try configuration.checked() }
}
