import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Service workers at the host of the sign-in pages.
@Suite(.timeLimit(.minutes(2))) struct ServiceWorkerTests {
  private static let settings: GatewaySettings = {
    var settings = GatewaySettings.test(publicURL: PublicURL(isSecure: false, host: "localhost", port: 8080))
    settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)]
    return settings
  }()

  private func upstream() async throws -> RecordingUpstream {
    try await RecordingUpstream {
      RecordingUpstream.isComplete($0)
        ? .answer("HTTP/1.1 200 OK\r\nservice-WORKER-allowed: /\r\nX-Own: kept\r\nContent-Length: 2\r\n\r\nok") : nil
    }
  }

  private func script(_ path: String, host: String = "localhost", fields: String = "Service-Worker: script\r\n")
    -> String
  {
    "GET \(path) HTTP/1.1\r\nHost: \(host)\r\n\(fields)\r\n"
  }

  /// Attack: a service registers a worker whose scope contains `/auth/`, by a script at the root or by the header that
  /// widens the scope. The worker reads passwords on the sign-in page.
  @Test func noServiceControlsTheSignInPages() async throws {
    let upstream = try await upstream()
    let gateway = try await TestGateway(
      routes: [.test("/open/**", ports: [upstream.port], open: true), .test(ports: [upstream.port], open: true)],
      settings: Self.settings)
    for path in ["/sw.js", "/", "/sw.js?v=/a/b", "/%73w.js", "/sw;v=1.js"] {
      let answer = try await gateway.talk(script(path))
      #expect(answer.hasPrefix("HTTP/1.1 403") && answer.contains("control the sign-in pages"), "\(path)")
      let asked = try await gateway.talk(
        ForwardAuthTests.text(
          ForwardAuthTests.question("nginx", scheme: "http", host: "localhost", path), "service-worker: script\r\n"))
      #expect(asked.hasPrefix("HTTP/1.1 403"), "\(path)")
    }
    #expect(upstream.all.isEmpty)
    for path in ["/sw.js", "/open/sw.js"] {
      let answer = try await gateway.talk(script(path, fields: ""))
      #expect(answer.hasPrefix("HTTP/1.1 200") && answer.contains("X-Own: kept"), "\(path)")
      #expect(!answer.lowercased().contains("service-worker-allowed"), "\(path)")
    }
    await gateway.stop()
  }

  /// A worker of a service in its own folder, on its own host, or on a route that the operator trusts.
  @Test func otherServiceWorkersWork() async throws {
    let upstream = try await upstream()
    let gateway = try await TestGateway(
      routes: [
        .test("/trusted.js", ports: [upstream.port], open: true, serviceWorker: true),
        .test(ports: [upstream.port], open: true),
      ], settings: Self.settings)
    let own = try await gateway.talk(script("/app/sw.js"))
    #expect(own.hasPrefix("HTTP/1.1 200") && !own.lowercased().contains("service-worker-allowed"))
    for request in [script("/trusted.js"), script("/sw.js", host: "app.example.com")] {
      let answer = try await gateway.talk(request)
      #expect(answer.hasPrefix("HTTP/1.1 200") && answer.contains("service-WORKER-allowed: /"), "\(request)")
    }
    #expect(upstream.all.contains("Service-Worker: script\r\n"))
    await gateway.stop()
  }
}
