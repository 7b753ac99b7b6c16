import ArgumentParser
import CoreMetrics
import Logging
import MoongateProxy

/// `moongate serve`: the gateway itself.
struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run the gateway.",
    discussion: """
      Logs on standard error, at the level that MOONGATE_LOG names (trace, debug, info, notice, warning or error; notice if it names none). \
      MOONGATE_ACCESS_LOG=stdout, or a file, has a line of JSON for each request of the public listener. \
      SIGHUP reads the configuration again and opens the access log anew; SIGTERM and SIGINT let requests at work end, for 10 seconds at most.
      """)

  @OptionGroup var configuration: ConfigurationOption

  func run() async throws {
    let folder = try configuration.checked()
    let level = try Logger.Level.fromEnvironment()
    LoggingSystem.bootstrap { label in LineLog(label: label, level: level) }
    let metrics = MetricRegistry()
    MetricsSystem.bootstrap(metrics)
    try await Gateway(folder: folder, metrics: metrics, logger: Logger(label: "serve")).run()
  }
}
