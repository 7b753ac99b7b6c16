import ArgumentParser
import Foundation
import Hummingbird
import Logging

/// The upstream service of the demo. It identifies users only by the gateway's headers.
///
/// It has no accounts and verifies nothing, so it must be reachable only through the gateway.
@main
struct DemoService: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo-service",
    abstract:
      "Run a demo service that shows the signed-in user, the steps of the sign-in, and all headers of the request.")

  @Option(help: "The address to listen on.") var host = "127.0.0.1"
  @Option(help: "The port to listen on; 0 lets the system choose.") var port = 3000

  func validate() throws {
    guard (0...65_535).contains(port) else {
      throw ValidationError("--port must be from 0 to 65535, not \(port).")
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
      throw CleanError("Port \(port) on \(host) is in use by another program. Stop it, or choose another --port.")
    }
  }
}

/// An error message for the user, printed without the name of the error type.
struct CleanError: Error, CustomStringConvertible {
  let description: String

  init(_ sentence: String) { description = sentence }
}
