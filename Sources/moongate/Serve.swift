import ArgumentParser
import Logging

/// `moongate serve`: the gateway itself.
struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run the gateway.",
    discussion: """
      Logs on standard error, at the level that MOONGATE_LOG names (trace, debug, info, notice, warning or error; notice if it names none). \
      SIGHUP reads the configuration again; SIGTERM and SIGINT let requests at work end, for 10 seconds at most.
      """)

  @OptionGroup var configuration: ConfigurationOption

  func run() async throws {
    let folder = try configuration.checked()
    let level = try Logger.Level.fromEnvironment()
    LoggingSystem.bootstrap { label in LineLog(label: label, level: level) }
    try await Gateway(folder: folder, logger: Logger(label: "serve")).run()
  }
}
