import ArgumentParser
import CoreMetrics
import Foundation
import Logging
import MoongateCore
import MoongateProxy
import Tracing

/// `moongate serve`: the gateway itself.
struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run the gateway.",
    discussion: """
      Logs on standard error, at the level that MOONGATE_LOG names (trace, debug, info, notice, warning or error; notice if it names none). \
      MOONGATE_ACCESS_LOG=stdout, or a file, has a line of JSON for each request of the public listener. \
      SIGHUP reads the configuration again and opens the access log anew; SIGTERM and SIGINT let connections finish, for as long as `drain` in \
      gateway.lua says. SIGUSR2 starts the program again in this process's place (moongate upgrade). \
      Under systemd it tells when it serves (NOTIFY_SOCKET) and that it is alive (WATCHDOG_USEC), and takes sockets named listen and admin (LISTEN_FDS).
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Option(help: "Listen here and not where gateway.lua says: for gateways that share a folder on one machine.")
  var listen: String?
  @Option(help: "The admin listener's address, likewise.") var admin: String?

  func run() async throws {
    // Before it is trapped it would end the process.
    signal(SIGUSR2, SIG_IGN)
    _ = ProgramCall.own
    let predecessor = try Predecessor.take()
    let inherited = try InheritedSockets.take()
    do {
      try await serve(on: predecessor?.sockets ?? inherited, after: predecessor)
    } catch {
      let sentence = (error as? StartProblem)?.sentence ?? "\(error)"
      predecessor?.say(.failed(sentence))
      throw error
    }
  }

  private func serve(on sockets: InheritedSockets, after predecessor: Predecessor?) async throws {
    let folder = try configuration.checked()
    let level = try Logger.Level.fromEnvironment()
    LoggingSystem.bootstrap { label in LineLog(label: label, level: level) }
    let metrics = MetricRegistry(
      help: Dictionary(
        uniqueKeysWithValues: [MetricDefinition.deliveriesTotal, .deliverySeconds].map { ($0.name, $0.help) }))
    MetricsSystem.bootstrap(metrics)
    let spans = SpanQueue()
    InstrumentationSystem.bootstrap(RecordingTracer(spans))
    let places = Gateway.Places(
      listen: try address(listen, "--listen"), admin: try address(admin, "--admin"), sockets: sockets)
    let notifier = ServiceNotifier()
    do {
      try await Gateway(
        folder: folder, places: places, metrics: metrics, notifier: notifier, predecessor: predecessor, spans: spans,
        logger: Logger(label: "serve")
      ).run()
    } catch let problem as StartProblem {
      notifier.status(problem.sentence)
      throw problem
    }
  }

  private func address(_ text: String?, _ option: String) throws(StartProblem) -> ListenAddress? {
    guard let text else { return nil }
    guard let address = ListenAddress(text) else {
      throw StartProblem(
        "\(option) \(text) is no address to listen on, such as 127.0.0.1:8080 or [::1]:8080.", status: .couldNotRun)
    }
    return address
  }
}
