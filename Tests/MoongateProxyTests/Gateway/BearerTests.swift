import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Routes whose service receives an access token of an app for each user.
@Suite(.timeLimit(.minutes(2))) struct BearerTests {
  private static let cookie = "Cookie: moongate=\(TestGateway.token)\r\n"
  private static let foreign = "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.e30.x\r\n"
  private static let decide = FunctionName("reports.decide")

  private static func app(requirement: AppRequirement = AppRequirement(), decide: FunctionName? = nil) -> App {
    App(
      id: "reports", name: "Reports", redirectURIs: [], consent: .once,
      authentication: .secret(SecretText("a secret of the app")), requirement: requirement, decide: decide,
      signing: .es256, accessToken: .jwt(audience: ["https://reports.example.com"]))
  }

  private static func route(
    _ path: String, _ port: Int, open: Bool = false, tokens: RouteTokens? = nil
  ) -> Route {
    var route = Route.test(path, ports: [port], open: open, tokens: tokens)
    route.bearer = "reports"
    return route
  }

  /// - Parameter trusted: whether the gateway believes the client addresses that the test sends.
  private func gateway(
    _ port: Int, _ app: App = Self.app(), trusted: Bool = false,
    verdicts: [FunctionName: @Sendable (Facts) -> Verdict] = [:]
  ) async throws -> TestGateway {
    var settings = GatewaySettings.test()
    settings.answersCredentials = trusted
    if trusted { settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)] }
    return try await TestGateway(
      routes: [
        Self.route("/open/**", port, open: true), Self.route("/programs/**", port, tokens: .services),
        .test("/other/**", ports: [port], open: true), Self.route("/**", port),
      ], settings: settings, verdicts: verdicts, change: { $0.apps = AppTable([app], own: nil) })
  }

  private func request(_ path: String = "/x", _ fields: String = Self.cookie) -> String {
    "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n"
  }

  /// The values of Authorization that the service has received.
  private func tokens(_ upstream: RecordingUpstream) -> [String] {
    upstream.all.components(separatedBy: "\r\n").filter { $0.lowercased().hasPrefix("authorization: ") }
      .map { String($0.dropFirst("Authorization: ".count)) }
  }

  private func claims(_ value: String?, _ gateway: TestGateway) async throws -> [String: JSONClaim] {
    let text = try #require(value)
    #expect(text.hasPrefix("Bearer "))
    let apps = try #require(gateway.apps)
    return try #require(
      await apps.signing.verify(String(text.dropFirst(7)), type: JWTType.accessToken, at: gateway.clock.now()))
  }

  @Test func serviceReceivesATokenForTheUser() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway(upstream.port)
    let client = try await RawClient(port: gateway.port)
    // One connection, and so one event loop.
    for _ in 0..<3 {
      try await client.send(request())
      #expect(try await client.answers().hasPrefix("HTTP/1.1 200"))
    }
    let sent = tokens(upstream)
    #expect(sent.count == 3 && Set(sent).count == 1, "one token for the requests of a session")
    let claims = try await claims(sent.first, gateway)
    #expect(claims["sub"] == .text("ac_alice") && claims["aud"] == .text("https://reports.example.com"))
    #expect(claims["client_id"] == .text("reports") && claims["iss"] == .text("http://localhost:8080"))
    let now = Double(gateway.clock.now().seconds)
    #expect(claims["exp"]?.number == now + 600 && claims["iat"]?.number == now)
    #expect(upstream.all.contains("Remote-User: ac_alice\r\n"), "the identity headers stay")
    // Other routes state nothing.
    _ = try await gateway.talk(request("/other/x", Self.cookie))
    #expect(tokens(upstream).count == 3)
    await gateway.stop()
  }

  @Test func tokenIsMadeAnewBeforeItExpires() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway(upstream.port)
    let client = try await RawClient(port: gateway.port)
    for (wait, kinds) in [(0, 1), (449, 1), (1, 2), (400, 2)] {
      gateway.clock.advance(by: .seconds(wait))
      // The event loops read the clock again after a few milliseconds.
      try await Task.sleep(for: .milliseconds(10))
      try await client.send(request())
      #expect(try await client.answers().hasPrefix("HTTP/1.1 200"))
      #expect(Set(tokens(upstream)).count == kinds, "after \(wait) more seconds")
    }
    await gateway.stop()
  }

  /// Attack: a client adds a token of somebody else, of another issuer, or of its own.
  @Test func clientCannotReplaceTheToken() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway(upstream.port)
    let own = "Authorization: Basic \(Data("root:guess".utf8).base64EncodedString())\r\n"
    #expect(try await gateway.talk(request("/x", Self.cookie + own)).hasPrefix("HTTP/1.1 200"))
    #expect(try await gateway.talk(request("/x", Self.cookie + Self.foreign)).hasPrefix("HTTP/1.1 400"))
    let sent = tokens(upstream)
    #expect(sent.count == 1 && sent[0].hasPrefix("Bearer ey") && !upstream.all.contains("Basic"))
    // Without a session, the service judges a token of the client itself, as on every other open route.
    #expect(try await gateway.talk(request("/open/x", Self.foreign)).hasPrefix("HTTP/1.1 200"))
    #expect(upstream.all.contains("\r\n\(Self.foreign)"))
    await gateway.stop()
  }

  /// Attack: a user whom the app does not admit reaches its API by the gateway's token, or by one of the client's.
  @Test func userWhomTheAppRefusesGetsNoToken() async throws {
    let upstream = try await RecordingUpstream()
    let app = Self.app(requirement: AppRequirement(steps: [.passed("pin", within: nil)]))
    let gateway = try await gateway(upstream.port, app)
    for _ in 0..<3 {
      #expect(
        try await gateway.talk(request("/x", Self.cookie + "Authorization: Negotiate x\r\n")).hasPrefix("HTTP/1.1 200"))
    }
    #expect(tokens(upstream).isEmpty && upstream.all.contains("Remote-User: ac_alice\r\n"))
    let lines = gateway.log.lines.filter { $0.contains("a service gets no access token") }
    #expect(lines.count == 1 && lines[0].contains("needs_pin") && lines[0].contains("routes.lua:1"), "\(lines)")
    #expect(lines[0].contains("reports"), "\(lines)")
    await gateway.stop()
  }

  /// Attack: `decide` of the app lets in the office. A token that was made there is sent for requests of the same
  /// session from elsewhere.
  @Test func tokenIsForTheClientThatTheAppJudged() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway(
      upstream.port, Self.app(decide: Self.decide), trusted: true,
      verdicts: [Self.decide: { $0.client.address.description == "198.51.100.9" ? .allow : .deny("elsewhere") }])
    let client = try await RawClient(port: gateway.port)
    for (address, count) in [("198.51.100.9", 1), ("203.0.113.1", 1), ("198.51.100.9", 2)] {
      try await client.send(request("/x", Self.cookie + "X-Forwarded-For: \(address)\r\n"))
      #expect(try await client.answers().hasPrefix("HTTP/1.1 200"))
      #expect(tokens(upstream).count == count, "\(address)")
    }
    await gateway.stop()
  }

  /// Attack: a sign-out, and the session's token is sent on.
  @Test func tokenEndsWithTheSession() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway(upstream.port)
    #expect(try await gateway.talk(request("/open/x")).hasPrefix("HTTP/1.1 200"))
    #expect(tokens(upstream).count == 1)
    gateway.sessions.end(TestGateway.token)
    try await until {
      let before = tokens(upstream).count
      _ = try? await gateway.talk(request("/open/x"))
      return tokens(upstream).count == before
    }
    #expect(try await gateway.talk(request()).hasPrefix("HTTP/1.1 401"))
    await gateway.stop()
  }

  /// Attack: the operator takes a right away, and the token from before is sent on.
  @Test func reloadJudgesAnew() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway(upstream.port)
    let client = try await RawClient(port: gateway.port)
    try await client.send(request())
    #expect(try await client.answers().hasPrefix("HTTP/1.1 200"))
    #expect(tokens(upstream).count == 1)
    var next = TestGeneration(gateway: .test(), routes: [Self.route("/**", upstream.port)], flows: [], policies: [])
    next.id = "next"
    next.apps = AppTable([Self.app(requirement: AppRequirement(factors: 2))], own: nil)
    gateway.active.activate(next, at: gateway.clock.now())
    try await client.send(request())
    #expect(try await client.answers().hasPrefix("HTTP/1.1 200"))
    #expect(tokens(upstream).count == 1)
    await gateway.stop()
  }

  /// Attack: a token of a program, which has proved nothing about its holder, in place of a session.
  @Test func tokenOfAProgramGetsNone() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway(upstream.port)
    let token = try await gateway.token()
    let answer = try await gateway.talk(request("/programs/x", "Authorization: Bearer \(token.text)\r\n"))
    #expect(answer.hasPrefix("HTTP/1.1 200") && upstream.all.contains("Remote-User: token:ci\r\n"))
    #expect(tokens(upstream).isEmpty)
    await gateway.stop()
  }

  /// A rule that fails is logged like any other, and never gives a token.
  @Test func failingRuleGivesNoToken() async throws {
    let upstream = try await RecordingUpstream()
    let fault = PolicyFault(kind: .error, location: SourceLocation(file: "apps.lua", line: 7), message: "no luck")
    let gateway = try await gateway(
      upstream.port, Self.app(decide: Self.decide), verdicts: [Self.decide: { _ in .fault(fault) }])
    #expect(try await gateway.talk(request()).hasPrefix("HTTP/1.1 200"))
    #expect(tokens(upstream).isEmpty)
    #expect(gateway.log.lines.contains { $0.contains("apps.lua:7") })
    #expect(gateway.log.lines.contains { $0.contains("a service gets no access token") && $0.contains("policy_error") })
    await gateway.stop()
  }

  /// A session that is not cached, because another process serves too, is asked about and gets its token each time.
  @Test func tokenIsSentWithoutTheCache() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway(upstream.port)
    await gateway.proxy.trustCaches(false)
    for _ in 0..<2 { #expect(try await gateway.talk(request()).hasPrefix("HTTP/1.1 200")) }
    #expect(tokens(upstream).count == 2)
    await gateway.stop()
  }

  @Test func requestsOfOneSessionShareATokenThatIsBeingMade() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway(upstream.port)
    let answers = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<24 { group.addTask { try await gateway.talk(request()) } }
      return try await group.reduce(into: [String]()) { $0.append($1) }
    }
    #expect(answers.count == 24 && answers.allSatisfy { $0.hasPrefix("HTTP/1.1 200") })
    let sent = tokens(upstream)
    #expect(
      sent.count == 24 && Set(sent).count <= ProcessInfo.processInfo.activeProcessorCount + 2, "one an event loop")
    await gateway.stop()
  }

  @Test(arguments: ForwardAuthTests.dialects) func forwardAnswersHaveTheToken(_ dialect: String) async throws {
    let gateway = try await gateway(1, trusted: true)
    let ask = { (path: String, more: String) in
      try await gateway.talk(ForwardAuthTests.text(ForwardAuthTests.question(dialect, "GET", path), more))
        .components(separatedBy: "\r\n")
    }
    let lines = try await ask("/x", Self.cookie)
    #expect(lines[0] == "HTTP/1.1 200 OK" && lines.contains("Remote-User: ac_alice"))
    let stated = lines.filter { $0.lowercased().hasPrefix("authorization:") }
    #expect(stated.count == 1)
    let value = try #require(stated.first).dropFirst("Authorization: ".count)
    #expect(try await claims(String(value), gateway)["sub"] == .text("ac_alice"))
    #expect(!lines.contains("X-Envoy-Auth-Headers-To-Remove: authorization"))
    #expect(
      lines.contains("X-Moongate-Authorization: remove") == ["nginx", "caddy", "haproxy"].contains(dialect))
    let anonymous = try await ask("/open/x", Self.foreign)
    // Traefik copies the header from the answer.
    #expect(anonymous.contains(String(Self.foreign.dropLast())) == (dialect == "traefik"))
    #expect(!anonymous.contains { $0.hasSuffix("remove") || $0.hasPrefix("X-Envoy") })
    await gateway.stop()
  }
}
