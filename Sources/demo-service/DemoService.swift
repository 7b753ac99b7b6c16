import ArgumentParser
import Foundation
import Hummingbird
import Logging

/// The upstream service of the demo. It identifies users only by the gateway's headers.
///
/// It has no accounts and verifies nothing, so it must be reachable only through the gateway. With `--google-secret`,
/// it also plays Google for the gateway.
@main
struct DemoService: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo-service",
    abstract:
      "Run a demo service that shows the signed-in user, the steps of the sign-in, and all headers of the request.")

  @Option(help: "The address to listen on.") var host = "127.0.0.1"
  @Option(help: "The port to listen on; 0 lets the system choose.") var port = 3000
  @Option(
    help:
      "Also serve a mock of Google at /mock-google, which signs in any user without a password. The file has the gateway's client secret."
  )
  var googleSecret: String?
  @Option(help: "The gateway's client id at the mock of Google.") var googleClient = "moongate-demo"
  @Option(help: "A redirect URI of the gateway at the mock of Google, matched exactly. Can be repeated.")
  var googleRedirect = ["http://localhost:8080/auth/callback/google_oauth"]

  func validate() throws {
    guard (0...65_535).contains(port) else {
      throw ValidationError("--port must be from 0 to 65535, not \(port).")
    }
    // Attack: other machines sign in as any user.
    guard googleSecret == nil || ["127.0.0.1", "localhost"].contains(host) else {
      throw ValidationError("The mock of Google signs in anyone: with --google-secret, --host must be 127.0.0.1.")
    }
  }

  func run() async throws {
    var logger = Logger(label: "demo-service", factory: StreamLogHandler.standardError(label:))
    logger.logLevel = .warning
    let google = googleSecret.map { GoogleSite(client: googleClient, secretFile: $0, redirects: googleRedirect) }
    let router = DemoRoutes.router()
    google?.addRoutes(to: router)
    let app = Application(
      router: router, configuration: .init(address: .hostname(host, port: port), serverName: nil),
      onServerRunning: { channel in
        // For scripts that let the system choose the port.
        let address = "http://\(host):\(channel.localAddress?.port ?? port)"
        await google?.open(at: address)
        try? FileHandle.standardOutput.write(contentsOf: Data("demo-service listens on \(address)\n".utf8))
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
