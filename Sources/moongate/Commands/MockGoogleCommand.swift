import ArgumentParser
import Foundation
import Hummingbird
import Logging
import MoongateCore
import MoongateMockGoogle
import MoongateSDK

/// `moongate mock-google`: runs the mock OpenID provider alone, for tests of gateways and other clients.
struct MockGoogleCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mock-google", abstract: "Run an OpenID provider for tests that signs in any user without a password.",
    discussion: """
      Prints its issuer, client id and client secret. Listens on this machine only. The demo does not need it: it contains this provider, at /mock-google.
      """)

  @Option(help: "The port to listen on; 0 lets the system choose.") var port = 9400
  @Option(help: "An allowed redirect URI, matched exactly. Can be repeated.") var redirect: [String] = []
  @Option(help: "The client id.") var clientId = "moongate"
  @Option(help: "The client secret. Default: a random secret, which is printed.") var clientSecret: String?
  @Option(help: "The issuer. Default: http://localhost:PORT.") var issuer: String?

  func validate() throws {
    guard (0...65_535).contains(port) else {
      throw ValidationError("--port must be from 0 to 65535, not \(port).")
    }
    guard !redirect.isEmpty else {
      throw ValidationError(
        "Add a redirect URI: --redirect http://localhost:8080/auth/callback/google_oauth")
    }
  }

  func run() async throws {
    let secret = clientSecret ?? Base64URL.encode(SystemRandom().bytes(32))
    let client = MockGoogle.Client(id: clientId, secret: secret, redirects: Set(redirect))
    // If the system chooses the port, it is known only after the server listens, and the issuer contains it.
    let site = DeferredSite()
    var logger = Logger(label: "mock-google", factory: StreamLogHandler.standardError(label:))
    logger.logLevel = .error
    let application = Application(
      responder: CallbackResponder { (request: Request, _: BasicRequestContext) in await site.respond(to: request) },
      configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: port), serverName: nil),
      onServerRunning: { channel in
        let name = issuer ?? "http://localhost:\(channel.localAddress?.port ?? port)"
        let path = URLComponents(string: name)?.path ?? ""
        await site.open(
          MockGoogleSite(
            MockGoogle(issuer: name, clients: { [client] }, random: { SystemRandom().bytes($0) }), path: path))
        let lines =
          "mock-google listens\n  issuer         \(name)\n  client_id      \(clientId)\n  client_secret  \(secret)\n"
        try? FileHandle.standardOutput.write(contentsOf: Data(lines.utf8))
      }, logger: logger)
    do {
      try await application.runService()
    } catch  where "\(error)".contains("EADDRINUSE") || "\(error)".contains("errno: 98") {
      throw StartProblem(
        "Port \(port) is in use by another program. Stop it, or choose another --port.", status: .couldNotRun)
    }
  }
}

/// A site that becomes available as soon as its server listens.
private actor DeferredSite {
  private var site: MockGoogleSite?

  func open(_ site: MockGoogleSite) { self.site = site }

  func respond(to request: Request) async -> Response {
    guard let site else { return Response(status: .serviceUnavailable) }
    return await site.respond(to: request)
  }
}
