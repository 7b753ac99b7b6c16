import DemoGoogle
import Foundation
import Hummingbird

/// The mock of Google below `/mock-google`, with the gateway as its only client. It signs in any user without a
/// password.
actor GoogleSite {
  private static let path = "/mock-google"

  private let clients: @Sendable () -> [MockGoogle.Client]
  /// Nil until the service listens, because the issuer contains the port.
  private var site: MockGoogleSite?

  /// - Parameters:
  ///   - id: the client id.
  ///   - secretFile: the file of the client secret. It is read for each request: the gateway creates it when it starts.
  ///   - redirects: the redirect URIs of the gateway.
  init(client id: String, secretFile: String, redirects: [String]) {
    clients = {
      guard let text = try? String(contentsOfFile: secretFile, encoding: .utf8) else { return [] }
      let secret = text.trimmingCharacters(in: .whitespacesAndNewlines)
      return secret.isEmpty ? [] : [MockGoogle.Client(id: id, secret: secret, redirects: Set(redirects))]
    }
  }

  /// - Parameter address: the address of the service, such as `http://127.0.0.1:3000`.
  func open(at address: String) {
    let random: @Sendable (Int) -> [UInt8] = { count in
      var generator = SystemRandomNumberGenerator()
      return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
    site = MockGoogleSite(
      MockGoogle(issuer: address + Self.path, clients: clients, random: random), path: Self.path)
  }

  nonisolated func addRoutes(to router: Router<BasicRequestContext>) {
    for path in [Self.path, Self.path + "/**"] {
      router.get(RouterPath(path)) { request, _ in await self.respond(to: request) }
      router.post(RouterPath(path)) { request, _ in await self.respond(to: request) }
    }
  }

  private func respond(to request: Request) async -> Response {
    guard let site else { return Response(status: .serviceUnavailable) }
    return await site.respond(to: request)
  }
}
