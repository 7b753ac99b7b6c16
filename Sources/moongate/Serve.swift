import ArgumentParser

/// `moongate serve`
struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Run the gateway.")
  @OptionGroup var configuration: ConfigurationOption
  func run() async throws { _ = try configuration.checked() }
}
