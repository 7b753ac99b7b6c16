import ArgumentParser
import Foundation
import Hummingbird
import Logging
import MoongateCore
import MoongateMockGoogle
import MoongateSDK

/// `moongate mock-google`: the mock provider alone, for gateways and other clients under test.
struct MockGoogleCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mock-google", abstract: "Run an OpenID provider for tests, that lets anyone be anyone.",
    discussion: """
      Prints its issuer and its client's id and secret. Listens on this machine only. The demo needs none: it is its own provider, at /mock-google.
      """)

  @Option(help: "The port to listen on; 0 lets the system choose.") var port = 9400
  @Option(help: "An address that people may be sent back to, to the letter; may be given more than once.") var redirect:
    [String] = []
  @Option(help: "The id of its one client.") var clientId = "moongate"
  @Option(help: "The client's secret; made up and printed where it is left out.") var clientSecret: String?
  @Option(help: "How it calls itself, where that is not http://localhost:PORT.") var issuer: String?

  func validate() throws {
    guard (0...65_535).contains(port) else {
      throw ValidationError("--port must lie between 0 and 65535; it is \(port).")
    }
    guard !redirect.isEmpty else {
      throw ValidationError(
        "Say where people are sent back to: --redirect http://localhost:8080/auth/callback/google_oauth")
    }
  }

  func run() async throws {
    let secret = clientSecret ?? Base64URL.encode(SystemRandom().bytes(32))
    let client = MockGoogle.Client(id: clientId, secret: secret, redirects: Set(redirect))
    // The system's choice of a port is known only once the server listens, and the issuer is made from it.
    let site = LateSite()
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
        "Port \(port) is taken by another program. Stop it, or give another --port.", status: .couldNotRun)
    }
  }
}

/// A site that is there as soon as its server listens.
private actor LateSite {
  private var site: MockGoogleSite?

  func open(_ site: MockGoogleSite) { self.site = site }

  func respond(to request: Request) async -> Response {
    guard let site else { return Response(status: .serviceUnavailable) }
    return await site.respond(to: request)
  }
}
