import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateProxy

/// The documents that describe the gateway as an OpenID provider.
@Suite(.timeLimit(.minutes(2))) struct DiscoveryPathTests {
  private static let paths = ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"]

  private func gateway(hasApps: Bool = true, trusted: Bool = false) async throws -> TestGateway {
    var settings = GatewaySettings.test()
    if trusted { settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)] }
    let upstream = try await RecordingUpstream()
    let uri = try RedirectURI("https://app.example.com/in")
    let apps = [App(id: "app", name: "App", redirectURIs: [uri], consent: .never)]
    return try await TestGateway(
      routes: [.test(ports: [upstream.port], open: true)], settings: settings,
      change: { if hasApps { $0.apps = AppTable(apps, own: settings.publicURL) } })
  }

  private func isOwn(_ path: String, _ gateway: TestGateway, _ fields: String...) async throws -> Bool {
    let lines = (["GET \(path) HTTP/1.1"] + fields).joined(separator: "\r\n")
    return try await gateway.talk(lines + "\r\n\r\n").contains("\r\n\r\nown GET ")
  }

  @Test func gatewayAnswersAtItsOwnHostWithApps() async throws {
    let with = try await gateway()
    let without = try await gateway(hasApps: false)
    for path in Self.paths {
      #expect(try await isOwn(path, with, "Host: localhost:8080"))
      #expect(try await isOwn(path + "?x=1", with, "Host: localhost:8080"))
      #expect(!(try await isOwn(path, without, "Host: localhost:8080")))
    }
    #expect(!(try await isOwn(Self.paths[0] + "/x", with, "Host: localhost:8080")))
    await with.stop()
    await without.stop()
  }

  /// A service behind the gateway may be an OpenID provider itself. Its apps would trust the wrong issuer.
  @Test func otherHostsKeepTheirOwn() async throws {
    let gateway = try await gateway()
    #expect(!(try await isOwn(Self.paths[0], gateway, "Host: app.example.com")))
    await gateway.stop()
  }

  @Test func trustedProxyNamesTheHost() async throws {
    let gateway = try await gateway(trusted: true)
    #expect(try await isOwn(Self.paths[0], gateway, "Host: proxy.internal", "X-Forwarded-Host: localhost:8080"))
    #expect(!(try await isOwn(Self.paths[0], gateway, "Host: localhost:8080", "X-Forwarded-Host: app.example.com")))
    await gateway.stop()
  }
}
