import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Forward-auth requests about paths with slashes inside names (`encoded`).
@Suite(.timeLimit(.minutes(2))) struct EncodedForwardAuthTests {
  private static let cookie = "Cookie: moongate=\(TestGateway.token)\r\n"

  private func gateway(_ routes: [Route]) async throws -> TestGateway {
    var settings = GatewaySettings.test()
    settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)]
    return try await TestGateway(routes: routes, settings: settings)
  }

  private func ask(
    _ gateway: TestGateway, _ dialect: String, _ target: String, _ fields: String = cookie
  ) async throws -> String {
    try await gateway.talk(ForwardAuthTests.text(ForwardAuthTests.question(dialect, "GET", target), fields))
  }

  @Test(arguments: ForwardAuthTests.dialects) func namesWithSlashesPass(_ dialect: String) async throws {
    let gateway = try await gateway([.test(ports: [1]).taking(.all)])
    for path in EncodedPathTests.paths {
      let answer = try await ask(gateway, dialect, path)
      #expect(answer.hasPrefix("HTTP/1.1 200") && answer.contains("Remote-User: ac_alice"), "\(path): \(answer)")
    }
    await gateway.stop()
  }

  @Test(arguments: ForwardAuthTests.dialects) func otherRoutesRefuseThem(_ dialect: String) async throws {
    let gateway = try await gateway([
      .test("/plain/**", ports: [1], open: true), .test("/admin/**", ports: [1]),
      .test(ports: [1], open: true).taking(.all),
    ])
    for path in [
      "/plain/a%2Fb", "/plain//b", "/admin%2Fusers", "/%61dmin%5cusers", "/%2Fadmin", "/x%2F..%2Fadmin", "/x//../admin",
      "//x", "//app.example.com/x", "/auth%2Flogin", "/auth//login", "/api%2Fauth%2Fflows",
    ] {
      let answer = try await ask(gateway, dialect, path, "")
      #expect(answer.hasPrefix("HTTP/1.1 400") && answer.contains("\"code\":\"bad_request\""), "\(path): \(answer)")
    }
    #expect(try await ask(gateway, dialect, "/x%2Fy", "").hasPrefix("HTTP/1.1 200"))
    await gateway.stop()
  }

  /// A user comes back to exactly the address that was asked for.
  @Test(arguments: ForwardAuthTests.dialects) func signInKeepsThePath(_ dialect: String) async throws {
    let gateway = try await gateway([.test(ports: [1]).taking(.all)])
    for path in EncodedPathTests.paths {
      let answer = try await ask(gateway, dialect, path, "Accept: text/html\r\n")
      let back = PercentEncoding.encode("https://app.example.com\(path)")
      #expect(answer.contains("\r\nLocation: http://localhost:8080/auth/login?return_to=\(back)\r\n"), "\(answer)")
    }
    await gateway.stop()
  }

  /// Envoy's own request has the path of the client behind its name. Nobody else may ask.
  @Test func untrustedPeerAsksForNothing() async throws {
    let gateway = try await TestGateway(routes: [.test(ports: [1], open: true).taking(.all)])
    for path in ["/auth/forward/envoy/a%2Fb", "/auth/forward/envoy//a", "/auth/forward/envoy/a%5Cb"] {
      let answer = try await gateway.talk("GET \(path) HTTP/1.1\r\nHost: app.example.com\r\n\r\n")
      #expect(answer.hasPrefix("HTTP/1.1 403"), "\(path): \(answer)")
    }
    for path in [
      "/auth/forward/nginx%2F", "/auth/forward/nginx//", "/auth/forward%2Fenvoy/x", "/auth//forward/envoy/x",
    ] {
      let answer = try await gateway.talk("GET \(path) HTTP/1.1\r\nHost: app.example.com\r\n\r\n")
      #expect(answer.hasPrefix("HTTP/1.1 400"), "\(path): \(answer)")
    }
    await gateway.stop()
  }
}
