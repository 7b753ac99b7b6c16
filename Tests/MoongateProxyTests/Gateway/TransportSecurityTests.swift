import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProxy

/// `Strict-Transport-Security` (RFC 6797) on all responses of the gateway itself.
@Suite(.timeLimit(.minutes(2))) struct TransportSecurityTests {
  private static let line = "\r\nStrict-Transport-Security: max-age=31536000\r\n"
  private static let decide = FunctionName("routes[4].decide")

  private func gateway(_ settings: GatewaySettings, upstream: Int) async throws -> TestGateway {
    try await TestGateway(
      routes: [
        .test("/open/**", ports: [upstream], open: true), .test("/down/**", ports: [1], open: true),
        .test("/in/**", ports: [upstream]),
        .test("/no/**", ports: [upstream], decide: Self.decide),
      ],
      settings: settings, verdicts: [Self.decide: { _ in .deny("not_today") }],
      page: { refusal, _, _ in "<p>\(refusal.code.name)</p>" })
  }

  private func settings(isSecure: Bool = true, hsts: Duration? = GatewaySettings.usualHSTS) -> GatewaySettings {
    var settings = GatewaySettings.test()
    settings.publicURL = PublicURL(isSecure: isSecure, host: "localhost", port: isSecure ? 443 : 80)
    settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)]
    settings.hsts = hsts
    return settings
  }

  private static let cookie = "Cookie: __Host-moongate=\(TestGateway.token)\r\n"
  private static let question = "X-Original-Method: GET\r\nX-Original-URL: https://localhost"

  /// All kinds of refusals, redirects, pages, the API, and forward-auth responses.
  static let own: [(String, String)] = [
    ("GET /in/x HTTP/1.1\r\nHost: localhost\r\n\r\n", "401"),
    ("GET /in/x HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n", "302"),
    ("GET /no/x HTTP/1.1\r\nHost: localhost\r\n\(cookie)\r\n", "403"),
    ("GET /down/x HTTP/1.1\r\nHost: localhost\r\n\r\n", "502"),
    ("GET /nowhere HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n", "404"),
    ("GET /a//b HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"),
    ("rubbish\r\n\r\n", "400"), ("GET / HTTP/3.0\r\nHost: localhost\r\n\r\n", "505"),
    ("TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
    ("GET /auth/login HTTP/1.1\r\nHost: localhost\r\n\r\n", "200"),
    ("GET /auth/login?lead=/open/x HTTP/1.1\r\nHost: localhost\r\n\r\n", "303"),
    ("GET /api/auth/session HTTP/1.0\r\nHost: localhost\r\n\r\n", "200"),
    ("GET /auth/forward/nginx HTTP/1.1\r\nHost: m\r\n\(question)/in/x\r\n\(cookie)\r\n", "200"),
    ("GET /auth/forward/nginx HTTP/1.1\r\nHost: m\r\n\(question)/open/x\r\n\r\n", "200"),
    ("GET /auth/forward/nginx HTTP/1.0\r\nHost: m\r\n\(question)/open/x\r\n\r\n", "200"),
    ("GET /auth/forward/nginx HTTP/1.1\r\nHost: m\r\n\(question)/in/x\r\n\r\n", "401"),
    ("GET /auth/forward/nginx HTTP/1.1\r\nHost: m\r\n\(question)/no/x\r\n\(cookie)\r\n", "403"),
  ]

  @Test(arguments: own) func everyGatewayResponseHasTheHeaderOnce(_ request: String, _ status: String) async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway(settings(), upstream: upstream.port)
    let answer = try await gateway.talk(request)
    #expect(answer.dropFirst(9).hasPrefix(status), "\(answer)")
    #expect(answer.components(separatedBy: Self.line).count == 2, "\(answer)")
    await gateway.stop()
  }

  @Test(arguments: own) func headerIsOmittedWithoutHTTPSOrIfDisabled(_ request: String, _: String) async throws {
    let upstream = try await RecordingUpstream()
    for settings in [settings(isSecure: false), settings(hsts: nil)] {
      let gateway = try await gateway(settings, upstream: upstream.port)
      #expect(!(try await gateway.talk(request)).contains("Strict-Transport-Security"))
      await gateway.stop()
    }
  }

  /// An upstream's own header, or its absence, is not changed.
  @Test func upstreamResponseKeepsItsOwnHeader() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway(settings(), upstream: upstream.port)
    #expect(
      !(try await gateway.talk("GET /open/x HTTP/1.1\r\nHost: localhost\r\n\r\n")).contains("Strict-Transport-Security")
    )
    await gateway.stop()
  }

  /// A reload applies at once, also to prepared forward-auth responses.
  @Test func reloadedDurationAppliesAtOnce() async throws {
    let gateway = try await gateway(settings(), upstream: 1)
    let request = "GET /auth/forward/nginx HTTP/1.1\r\nHost: m\r\n\(Self.question)/in/x\r\n\(Self.cookie)\r\n"
    #expect(try await gateway.talk(request).contains(Self.line))
    var next = TestGeneration(
      gateway: settings(hsts: .seconds(60)), routes: [.test("/in/**", ports: [1])], flows: [], policies: [])
    next.id = "next"
    gateway.active.activate(next, at: gateway.clock.now())
    #expect(try await gateway.talk(request).contains("\r\nStrict-Transport-Security: max-age=60\r\n"))
    await gateway.stop()
  }

  // MARK: failing policies

  /// `decide` fails for every request. The log reports it once with file and line, and each refusal is found by its
  /// decision.
  @Test func aFailingDecideIsInTheLogOnce() async throws {
    let fault = PolicyFault(
      kind: .error, location: SourceLocation(file: "routes.lua", line: 9), message: "attempt to index a nil value")
    let decide = FunctionName("routes[1].decide")
    let gateway = try await TestGateway(
      routes: [.test("/in/**", ports: [1], decide: decide)], settings: settings(isSecure: false),
      verdicts: [decide: { _ in .fault(fault) }])
    var decisions: Set<String> = []
    let direct = "GET /in/x HTTP/1.1\r\nHost: localhost\r\nCookie: moongate=\(TestGateway.token)\r\n\r\n"
    let asked =
      "GET /auth/forward/nginx HTTP/1.1\r\nHost: m\r\n\(Self.question)/in/x\r\nCookie: moongate=\(TestGateway.token)\r\n\r\n"
    for request in [direct, direct, asked, direct] {
      let answer = try await gateway.talk(request)
      #expect(answer.hasPrefix("HTTP/1.1 503 ") && answer.contains("\"code\":\"policy_error\""), "\(answer)")
      let id = try #require(answer.firstMatch(of: /"decision_id":"(dc_[A-Za-z0-9_-]+)"/)).1
      #expect(
        try await gateway.audit.event(DecisionID(text: String(id)))?.detail["fault"]
          == "routes.lua:9: attempt to index a nil value")
      decisions.insert(String(id))
    }
    #expect(decisions.count == 4)
    let lines = gateway.log.lines.filter { $0.hasPrefix("error a policy failed") }
    #expect(lines.count == 1)
    #expect(
      lines.first?.contains("fault=routes.lua:9: attempt to index a nil value rule=routes[1].decide") == true,
      "\(lines)")
    #expect(decisions.contains { lines.first?.contains("decision=\($0) ") == true })
    gateway.clock.advance(by: .seconds(60))
    _ = try await gateway.talk(direct)
    #expect(gateway.log.lines.last { $0.hasPrefix("error a policy failed") }?.hasSuffix("suppressed=3") == true)
    await gateway.stop()
  }
}
