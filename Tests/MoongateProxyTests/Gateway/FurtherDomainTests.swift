import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Sessions on additional root domains, with proxying and forward-auth.
@Suite(.timeLimit(.minutes(2))) struct FurtherDomainTests {
  private static let domainToken = String(repeating: "D", count: 43)
  private static let handoff = "Location: https://app.example.org/auth/handoff?return_to=%2Fin%2Fx%3Fa%3D1\r\n"

  /// A gateway with a sign-in and its token for example.org.
  private func gateway(
    _ routes: [Route], isSuperseded: Bool = false, verdicts: [FunctionName: @Sendable (Facts) -> Verdict] = [:]
  ) async throws
    -> TestGateway
  {
    var settings = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "auth.example.com", port: 443))
    settings.domains = ["example.com", "example.org"]
    settings.cookieDomain = "example.com"
    settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)]
    let gateway = try await TestGateway(
      routes: routes, settings: settings, verdicts: verdicts, page: { refusal, _, _ in "<p>\(refusal.code.name)</p>" })
    let snapshot = TestGateway.snapshot(token: Self.domainToken, clock: gateway.clock)
    var session = snapshot.session
    session.domain = SessionDomain(
      name: "example.org", home: TokenHash(of: TestGateway.token.utf8), isSuperseded: isSuperseded)
    gateway.sessions.put(Self.domainToken, SessionSnapshot(session: session, account: snapshot.account))
    return gateway
  }

  private func ask(
    _ gateway: TestGateway, _ host: String, token: String? = nil, bearer: Bool = false, browser: Bool = true,
    path: String = "/in/x?a=1",
    scheme: String = "https"
  ) async throws -> String {
    let credential =
      token.map { bearer ? "Authorization: Bearer \($0)\r\n" : "Cookie: __Secure-moongate=\($0)\r\n" } ?? ""
    return try await gateway.talk(
      "GET \(path) HTTP/1.1\r\nHost: \(host)\r\nX-Forwarded-Proto: \(scheme)\r\n\(browser ? "Accept: text/html\r\n" : "")\(credential)\r\n"
    )
  }

  @Test func requestWithoutADomainTokenIsRedirectedToTheHandoff() async throws {
    let gateway = try await gateway([.test("/in/**", ports: [1]), .test("/enter/**", ports: [1], flow: "enter")])
    #expect(try await ask(gateway, "app.example.org").contains(Self.handoff))
    #expect(
      try await ask(gateway, "app.example.org", scheme: "http").contains(Self.handoff), "by the scheme of public_url")
    #expect(try await ask(gateway, "app.example.org", browser: false).hasPrefix("HTTP/1.1 401"))
    #expect(
      try await ask(gateway, "app.example.org", path: "/enter/x").contains(
        "Location: https://app.example.org/auth/handoff?flow=enter&return_to=%2Fenter%2Fx\r\n"))
    #expect(
      try await ask(gateway, "app.example.com").contains(
        "Location: https://auth.example.com/auth/login?return_to=https%3A%2F%2Fapp.example.com%2Fin%2Fx%3Fa%3D1\r\n"))
    await gateway.stop()
  }

  /// Attack: a stolen token of one root domain, sent to hosts of another, as a cookie and as Bearer, before and after
  /// it was cached.
  @Test func tokenIsValidOnlyOnItsDomain() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway([.test("/**", ports: [upstream.port])])
    for _ in 1...2 {
      for (token, host, isGood) in [
        (TestGateway.token, "app.example.com", true), (TestGateway.token, "auth.example.com", true),
        (TestGateway.token, "app.example.org", false),
        (Self.domainToken, "app.example.org", true), (Self.domainToken, "example.org", true),
        (Self.domainToken, "app.example.com", false),
        (Self.domainToken, "auth.example.com", false), (Self.domainToken, "evil-example.org", false),
        (Self.domainToken, "localhost", false),
      ] {
        for bearer in [false, true] {
          let answer = try await ask(gateway, host, token: token, bearer: bearer, browser: false)
          #expect(answer.hasPrefix(isGood ? "HTTP/1.1 200" : "HTTP/1.1 401"), "\(host) \(bearer)")
        }
      }
    }
    await gateway.stop()
  }

  /// An access token of a program is bound to routes, not to domains, because no browser stores it. A domain's cookie
  /// in addition is one credential too many, as usual.
  @Test func tokenOfAProgramIsGoodOnEveryDomain() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway([
      .test("/any/**", ports: [upstream.port], tokens: .services), .test("/**", ports: [upstream.port]),
    ])
    let token = try await gateway.token().text
    for host in ["app.example.com", "app.example.org"] {
      let bearer = "GET /any/x HTTP/1.1\r\nHost: \(host)\r\nAuthorization: Bearer \(token)\r\n"
      #expect(try await gateway.talk(bearer + "\r\n").hasPrefix("HTTP/1.1 200"))
      #expect(
        try await gateway.talk(bearer + "Cookie: __Secure-moongate=\(Self.domainToken)\r\n\r\n").hasPrefix(
          "HTTP/1.1 400"))
      #expect(try await gateway.talk(bearer.replacing("/any/x", with: "/x") + "\r\n").hasPrefix("HTTP/1.1 401"))
    }
    await gateway.stop()
  }

  /// A gateway without `domains` accepts no domain tokens, including those from before.
  @Test func withoutDomainsADomainTokenIsInvalid() async throws {
    let gateway = try await TestGateway(routes: [.test(ports: [1])])
    var session = TestGateway.snapshot(token: Self.domainToken, clock: gateway.clock).session
    session.domain = SessionDomain(name: "example.org", home: session.token, isSuperseded: false)
    gateway.sessions.put(
      Self.domainToken, SessionSnapshot(session: session, account: TestGateway.snapshot(clock: gateway.clock).account))
    for host in ["localhost", "app.example.org"] {
      let answer = try await gateway.talk(
        "GET / HTTP/1.1\r\nHost: \(host)\r\nCookie: moongate=\(Self.domainToken)\r\n\r\n")
      #expect(answer.hasPrefix("HTTP/1.1 401"))
    }
    await gateway.stop()
  }

  /// A step-up at public_url gives the sign-in a new token. The domain's token keeps its old state and is renewed when
  /// that is insufficient.
  @Test func supersededTokenIsRenewedIfInsufficient() async throws {
    let upstream = try await RecordingUpstream()
    let requirement = Requirement.passed("pin", within: nil)
    let decide = FunctionName("routes[1].decide")
    for (isSuperseded, location) in [
      (true, "https://app.example.org/auth/handoff?return_to=%2Fin%2Fx%3Fa%3D1"),
      (
        false, "https://auth.example.com/auth/pin?flow=step_up&return_to=https%3A%2F%2Fapp.example.org%2Fin%2Fx%3Fa%3D1"
      ),
    ] {
      let gateway = try await gateway(
        [
          .test("/in/**", ports: [upstream.port], requirement: requirement),
          .test("/no/**", ports: [upstream.port], decide: decide),
          .test("/**", ports: [upstream.port]),
        ], isSuperseded: isSuperseded, verdicts: [decide: { _ in .deny("not_today") }])
      #expect(try await ask(gateway, "app.example.org", token: Self.domainToken).contains("Location: \(location)\r\n"))
      #expect(
        try await ask(gateway, "app.example.org", token: Self.domainToken, browser: false).contains("step_up_required"))
      let denied = try await ask(gateway, "app.example.org", token: Self.domainToken, path: "/no/x")
      #expect(denied.hasPrefix(isSuperseded ? "HTTP/1.1 302" : "HTTP/1.1 403"))
      #expect(
        try await ask(gateway, "app.example.org", token: Self.domainToken, path: "/x").hasPrefix("HTTP/1.1 200"),
        "no user is stranded")
      await gateway.stop()
    }
  }

  @Test func activityIsRecordedForTheSignInToken() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway([.test("/**", ports: [upstream.port])])
    #expect(try await ask(gateway, "app.example.org", token: Self.domainToken).hasPrefix("HTTP/1.1 200"))
    await gateway.proxy.flushActivity()
    #expect(Array(gateway.sessions.touched.keys) == [TokenHash(of: TestGateway.token.utf8)])
    await gateway.stop()
  }

  @Test(arguments: ForwardAuthTests.dialects) func forwardAuthWorksForEachDomain(_ dialect: String) async throws {
    let gateway = try await gateway([.test("/**", ports: [1])])
    let question = { (host: String, target: String) in ForwardAuthTests.question(dialect, host: host, target) }
    let browser = "Accept: text/html\r\n"
    #expect(
      try await gateway.talk(ForwardAuthTests.text(question("app.example.org", "/in/x?a=1"), browser)).contains(
        Self.handoff))
    for (token, host, isGood) in [
      (Self.domainToken, "app.example.org", true), (Self.domainToken, "app.example.com", false),
      (TestGateway.token, "app.example.com", true),
      (TestGateway.token, "app.example.org", false),
    ] {
      let answer = try await gateway.talk(
        ForwardAuthTests.text(question(host, "/x"), "Cookie: __Secure-moongate=\(token)\r\n"))
      #expect(answer.hasPrefix(isGood ? "HTTP/1.1 200" : "HTTP/1.1 401"), "\(host)")
    }
    // A proxy with forward-auth for the handoff itself would cause a redirect loop.
    for path in ["/auth/handoff?return_to=%2Fx", "/auth/hand%6fff"] {
      let answer = try await gateway.talk(ForwardAuthTests.text(question("app.example.org", path), browser))
      #expect(answer.hasPrefix("HTTP/1.1 403") && !answer.contains("Location:"))
    }
    await gateway.stop()
  }

  /// Attack: the domain's cookie is not stored, and the handoff loops.
  @Test func handoffLoopIsReportedWithItsCause() async throws {
    let gateway = try await gateway([.test("/in/**", ports: [1])])
    var answer = ""
    for _ in 1...3 {
      answer = try await gateway.talk(
        "GET /auth/handoff?lead=https://app.example.org/in/x?a=1 HTTP/1.1\r\nHost: app.example.org\r\n\r\n")
      #expect(answer.hasPrefix("HTTP/1.1 303"))
      answer = try await ask(gateway, "app.example.org")
    }
    #expect(answer.hasPrefix("HTTP/1.1 401") && !answer.contains("Location:"), "\(answer)")
    let event = try #require(try await gateway.audit.events(limit: 1).first)
    #expect(event.detail["reason"]?.contains("It blocks this site's cookies") == true)
    await gateway.stop()
  }
}
