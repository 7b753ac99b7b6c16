import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Requests from a trusted proxy: what its forwarding headers mean for the service, for access and for the log.
@Suite(.timeLimit(.minutes(2))) struct BehindProxyTests {
  /// - Parameter limit: `limits.per_ip`.
  private func gateway(trusted: Bool = true, limit: Int? = nil) async throws -> (TestGateway, RecordingUpstream) {
    var settings = GatewaySettings.test()
    if trusted { settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)] }
    settings.connectionLimits.requestsPerSecondPerAddress = limit
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(
      routes: [
        .test("/open/**", ports: [upstream.port], open: true),
        .test("/ws", host: "app.example.com", ports: [upstream.port], upgrade: true),
        .test("/in/**", host: "app.example.com", ports: [upstream.port]),
      ], settings: settings)
    return (gateway, upstream)
  }

  private func ask(_ gateway: TestGateway, _ path: String = "/open/x", _ fields: String...) async throws -> String {
    let lines = (["GET \(path) HTTP/1.1", "Host: proxy.internal"] + fields).joined(separator: "\r\n")
    return try await gateway.talk(lines + "\r\n\r\n")
  }

  @Test(arguments: [
    ("203.0.113.7:61598", "203.0.113.7"), ("\"[2001:db8::1]:4711\"", "2001:db8::1"), ("198.51.100.4,", "198.51.100.4"),
    ("[2001:db8::1]:443", "2001:db8::1"),
  ])
  func theServiceLearnsTheAddressWithoutItsPort(_ value: String, _ address: String) async throws {
    let (gateway, upstream) = try await gateway()
    let answer = try await ask(gateway, "/open/x", "X-Forwarded-For: \(value)", "X-Forwarded-Proto: https")
    #expect(answer.hasPrefix("HTTP/1.1 200 "))
    #expect(upstream.all.contains("\r\nX-Forwarded-For: \(address)\r\nX-Forwarded-Proto: https\r\n"))
    #expect(gateway.log.lines.allSatisfy { !$0.contains("X-Forwarded-For") })
    await gateway.stop()
  }

  /// Attack: a client uses a new port with each request to get fresh limits.
  @Test func twoPortsOfOneAddressShareItsLimit() async throws {
    let (gateway, _) = try await gateway(limit: 3)
    var statuses: [String] = []
    for port in 50_001...50_006 {
      statuses.append(
        String(try await ask(gateway, "/open/x", "X-Forwarded-For: 203.0.113.1:\(port)").dropFirst(9).prefix(3)))
    }
    #expect(statuses.contains("429"))
    // Two clients of one proxy do not share one.
    for number in 2...7 {
      let answer = try await ask(gateway, "/open/x", "X-Forwarded-For: 203.0.113.\(number):50001")
      #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(number)")
    }
    await gateway.stop()
  }

  @Test func anUnreadableAddressIsLoggedOnceAMinute() async throws {
    let (gateway, upstream) = try await gateway()
    for _ in 0..<3 {
      let answer = try await ask(gateway, "/open/x", "X-Forwarded-For: 198.51.100.4, unknown")
      #expect(answer.hasPrefix("HTTP/1.1 200 "))
    }
    #expect(upstream.all.contains("\r\nX-Forwarded-For: 127.0.0.1\r\n"))
    let lines = gateway.log.lines.filter { $0.contains("a forwarding header cannot be read") }
    #expect(lines.count == 1 && lines[0].contains("X-Forwarded-For") && lines[0].contains("unknown"), "\(lines)")
    gateway.clock.advance(by: .seconds(61))
    gateway.proxy.logSuppressedFailures()
    let later = gateway.log.lines.filter { $0.contains("a forwarding header still cannot be read") }
    #expect(later.count == 1 && later[0].contains("2"), "\(later)")
    await gateway.stop()
  }

  /// The connection's own scheme never stands in for a header that is there.
  @Test func anUnreadableSchemeIsRefusedAndLogged() async throws {
    let (gateway, upstream) = try await gateway()
    for fields in [
      "X-Forwarded-Proto: gopher", "X-Forwarded-Proto: https\r\nX-Forwarded-Proto: ftp", "X-Forwarded-Proto: ,",
    ] {
      let answer = try await ask(gateway, "/open/x", fields)
      #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.contains("\"code\":\"bad_request\""), "\(fields)")
    }
    #expect(upstream.all.isEmpty)
    #expect(
      gateway.log.lines.contains {
        $0.contains("X-Forwarded-Proto") && $0.contains("gopher") && $0.contains("127.0.0.1")
      })
    await gateway.stop()
  }

  @Test func theHeadersOfOthersHaveNoEffect() async throws {
    let (gateway, upstream) = try await gateway(trusted: false)
    let answer = try await ask(
      gateway, "/open/x", "X-Forwarded-Proto: gopher", "X-Forwarded-For: unknown", "X-Forwarded-Host: a b")
    #expect(answer.hasPrefix("HTTP/1.1 200 "))
    #expect(upstream.all.contains("\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n"))
    #expect(gateway.log.lines.allSatisfy { !$0.contains("forwarding header") })
    await gateway.stop()
  }

  /// RFC 6455 section 10.2: the Origin of a `wss` page is that of `https`.
  @Test func aWebSocketByWSSIsSecure() async throws {
    let (gateway, upstream) = try await gateway()
    let head = [
      "GET /ws HTTP/1.1", "Host: app.example.com", "X-Forwarded-Proto: wss", "Origin: https://app.example.com",
      "Cookie: moongate=\(TestGateway.token)", "Upgrade: websocket", "Connection: Upgrade",
    ]
    // The recording service answers with 200, which is enough: the request was allowed.
    let answer = try await gateway.talk(head.joined(separator: "\r\n") + "\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 200 ") && upstream.all.contains("\r\nX-Forwarded-Proto: https\r\n"))
    // Attack: a page of another site.
    let other = head.map { $0.replacing("Origin: https://app", with: "Origin: https://evil") }
    #expect(try await gateway.talk(other.joined(separator: "\r\n") + "\r\n\r\n").hasPrefix("HTTP/1.1 403 "))
    await gateway.stop()
  }

  /// Attack: the proxy passes the client's X-Forwarded-Host on. A client names an open host there, and in Host a closed
  /// one of the same service.
  @Test func theServiceGetsTheHostThatIsJudged() async throws {
    let upstream = try await RecordingUpstream()
    var settings = GatewaySettings.test()
    settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)]
    let gateway = try await TestGateway(
      routes: [
        .test("/**", host: "open.example.com", ports: [upstream.port], open: true),
        .test("/**", host: "closed.example.com", ports: [upstream.port]),
      ], settings: settings)
    let claimed = try await gateway.talk(
      "GET /x HTTP/1.1\r\nHost: closed.example.com\r\nX-Forwarded-Host: open.example.com\r\n\r\n")
    #expect(claimed.hasPrefix("HTTP/1.1 200 ") && !upstream.all.contains("closed"), "\(upstream.all)")
    #expect(upstream.all.contains("\r\nHost: open.example.com\r\n"))
    let swapped = try await gateway.talk(
      "GET /x HTTP/1.1\r\nHost: open.example.com\r\nX-Forwarded-Host: closed.example.com\r\n\r\n")
    #expect(swapped.hasPrefix("HTTP/1.1 401 "))
    // Without the header, Host counts and is passed on, with its port.
    _ = try await gateway.talk("GET /y HTTP/1.1\r\nHost: open.example.com:8443\r\n\r\n")
    #expect(upstream.all.contains("GET /y HTTP/1.1\r\nHost: open.example.com:8443\r\n"))
    await gateway.stop()
  }

  @Test func theLastHostCounts() async throws {
    let (gateway, upstream) = try await gateway()
    for hosts in [
      "app.example.com, app.example.com", "x.example\r\nX-Forwarded-Host: app.example.com", "a b, APP.example.com:",
    ] {
      let answer = try await ask(
        gateway, "/in/x", "X-Forwarded-Host: \(hosts)", "X-Forwarded-Proto: https, https", "Accept: text/html")
      let back = "return_to=https%3A%2F%2Fapp.example.com%2Fin%2Fx\r\n"
      #expect(answer.hasPrefix("HTTP/1.1 302 ") && answer.contains(back), "\(hosts) \(answer)")
    }
    // Attack: a host of the client's choice in front of the proxy's, or one that makes the proxy's own Host count.
    for hosts in ["app.example.com, other.example", "app.example.com, a b", "", ","] {
      let answer = try await gateway.talk(
        "GET /in/x HTTP/1.1\r\nHost: app.example.com\r\nX-Forwarded-Host: \(hosts)\r\n\r\n")
      let status = hosts.hasSuffix("other.example") ? "404" : "400"
      #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(hosts) \(answer)")
    }
    #expect(upstream.all.isEmpty)
    await gateway.stop()
  }
}
