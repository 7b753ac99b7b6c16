import ArgumentParser
import Foundation
import Hummingbird
import Logging

/// The service behind the demo: an ordinary one, that knows of its visitors only what the gateway's headers say.
///
/// It owns no account and checks nothing. Nobody should reach it but through the gateway: whoever can, is who they
/// claim.
@main
struct DemoService: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo-service",
    abstract: "A small service that shows who arrived through the gateway, by which steps, and the headers it got.")

  @Option(help: "The address to listen on.") var host = "127.0.0.1"
  @Option(help: "The port to listen on; 0 lets the system choose.") var port = 3000

  func validate() throws {
    guard (0...65_535).contains(port) else {
      throw ValidationError("--port must lie between 0 and 65535; it is \(port).")
    }
  }

  func run() async throws {
    var logger = Logger(label: "demo-service", factory: StreamLogHandler.standardError(label:))
    logger.logLevel = .warning
    let app = Application(
      router: DemoRoutes.router(), configuration: .init(address: .hostname(host, port: port), serverName: nil),
      onServerRunning: { channel in
        // For scripts that let the system choose the port.
        let line = "demo-service listens on http://\(host):\(channel.localAddress?.port ?? port)\n"
        try? FileHandle.standardOutput.write(contentsOf: Data(line.utf8))
      }, logger: logger)
    do {
      try await app.runService()
    } catch let error as any Error & CustomStringConvertible
      where "\(error)".contains("EADDRINUSE") || "\(error)".contains("errno: 98")
    {
      throw CleanError("Port \(port) on \(host) is taken by another program. Stop it, or give another --port.")
    }
  }
}

/// A sentence for whoever started the program, without the name of an error type before it.
struct CleanError: Error, CustomStringConvertible {
  let description: String

  init(_ sentence: String) { description = sentence }
}
