import ArgumentParser
import CoreMetrics
import Foundation
import Logging
import MoongateCore
import MoongateProgram
import MoongateProxy
import Tracing

/// `moongate serve`: runs the gateway.
struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run the gateway.",
    discussion: """
      Logs to standard error at the level of MOONGATE_LOG (trace, debug, info, notice, warning or error; default: notice). \
      MOONGATE_ACCESS_LOG=stdout, or a file, receives one line of JSON for each request of the public listener. \
      SIGHUP reloads the configuration and reopens the access log. SIGTERM and SIGINT stop the gateway after open connections have finished, within the \
      time of `drain` in gateway.lua. SIGUSR2 starts the program again in place of this process (moongate upgrade). \
      Under systemd, the gateway reports readiness (NOTIFY_SOCKET) and liveness (WATCHDOG_USEC), and accepts sockets named listen and admin (LISTEN_FDS).
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Option(
    help:
      "The public listener, in place of the address in gateway.lua: for gateways that share a folder on one machine.")
  var listen: String?
  @Option(help: "The admin listener, in place of the address in gateway.lua.") var admin: String?

  func run() async throws {
    // Ignore the signal until its handler is installed; by default it would end the process.
    signal(SIGUSR2, SIG_IGN)
    _ = ProgramCall.own
    let predecessor = try Predecessor.take()
    let inherited = try InheritedSockets.take()
    do {
      try await serve(on: predecessor?.sockets ?? inherited, after: predecessor)
    } catch {
      let sentence = (error as? StartProblem)?.sentence ?? "\(error)"
      predecessor?.send(.failed(sentence))
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
    let listenAddresses = ListenAddresses(
      listen: try address(listen, "--listen"), admin: try address(admin, "--admin"), sockets: sockets)
    let notifier = ServiceNotifier()
    do {
      try await Gateway(
        folder: folder, listenAddresses: listenAddresses, metrics: metrics, notifier: notifier,
        predecessor: predecessor, spans: spans,
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
        "\(option) \(text) is not an address to listen on. Write HOST:PORT, for example 127.0.0.1:8080 or [::1]:8080.",
        status: .couldNotRun)
    }
    return address
  }
}
