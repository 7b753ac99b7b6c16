import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Routes that say by which headers their service learns who the user is.
@Suite(.timeLimit(.minutes(2))) struct RouteIdentityTests {
  private static let cookie = "Cookie: moongate=\(TestGateway.token)\r\n"
  private static let own = "Authorization: Basic \(Data("root:guess".utf8).base64EncodedString())\r\n"
  private static let stated = "Authorization: Basic \(Data("alice@example.com:sesame".utf8).base64EncodedString())"

  private static func named(
    _ headers: [ServiceIdentity.Statement: (String, [IdentityTemplate.Part])], encoding: HeaderEncoding = .utf8
  ) -> ServiceIdentity {
    var identity = ServiceIdentity()
    identity.headers = headers.mapValues { ServiceIdentity.Header(name: $0.0, value: IdentityTemplate($0.1)) }
    identity.encoding = encoding
    return identity
  }

  private static var basic: ServiceIdentity {
    var identity = ServiceIdentity()
    identity.basic = ServiceIdentity.Basic(user: IdentityTemplate([.email]), password: SecretText("sesame"))
    return identity
  }

  private static func route(
    _ path: String, _ port: Int, _ identity: ServiceIdentity, open: Bool = false, tokens: RouteTokens? = nil
  ) -> Route {
    var route = Route.test(path, ports: [port], open: open, tokens: tokens)
    route.identity = identity
    return route
  }

  private func ask(_ gateway: TestGateway, _ path: String, _ fields: String) async throws -> String {
    try await gateway.talk("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n")
  }

  /// The head of the last request for the path.
  private func head(_ path: String, _ upstream: RecordingUpstream) -> String {
    let rest = upstream.all.components(separatedBy: "GET \(path) ").dropFirst().last ?? ""
    return (rest.components(separatedBy: "\r\n\r\n").first ?? "") + "\r\n"
  }

  @Test func namedHeadersReplaceTheUsualOnes() async throws {
    let upstream = try await RecordingUpstream()
    let identity = Self.named([
      .user: ("X-WEBAUTH-USER", [.email]), .groups: ("X-Groups", [.groups]), .name: ("X-Full-Name", [.name]),
    ])
    let gateway = try await TestGateway(routes: [
      Self.route("/named/**", upstream.port, identity), .test(ports: [upstream.port]),
    ])
    #expect(try await ask(gateway, "/named/x", Self.cookie).hasPrefix("HTTP/1.1 200"))
    let seen = upstream.all
    for line in [
      "X-WEBAUTH-USER: alice@example.com", "X-Full-Name: Alice", "Remote-Email: alice@example.com",
      "Remote-Phone: +919999999999", "X-Moongate-Assertion: ey",
    ] { #expect(seen.contains("\r\n\(line)"), "\(line)") }
    for name in ["Remote-User", "Remote-Name", "Remote-Groups", "X-Groups"] { #expect(!seen.contains(name), "\(name)") }
    _ = try await ask(gateway, "/x", Self.cookie)
    let usual = head("/x", upstream)
    #expect(usual.contains("\r\nRemote-User: ac_alice\r\n") && !usual.contains("X-WEBAUTH-USER"))
    await gateway.stop()
  }

  /// Attack: a service that believes `X-User` on one route is reached by another route, or by a client without a
  /// session, with a header of the client's choice, in a spelling that it reads as the same name.
  @Test func namesOfAnyRouteAreRemovedOnEveryRoute() async throws {
    let upstream = try await RecordingUpstream()
    let identity = Self.named([.user: ("X-User", [.id]), .email: ("Mail.Of_User", [.email])])
    let gateway = try await TestGateway(routes: [
      Self.route("/named/**", upstream.port, identity, open: true),
      .test("/open/**", ports: [upstream.port], open: true),
      .test(ports: [upstream.port]),
    ])
    let names = [
      "X-User", "x_user", "X.USER", "x~User", "Mail-Of-User", "mail_of_user", "MAIL.OF.USER", "Remote-User",
      "REMOTE_USER",
    ]
    let forged = names.map { "\($0): mallory\r\n\($0): mallory\r\n" }.joined()
    for (path, fields) in [
      ("/named/x", ""), ("/named/x", Self.cookie), ("/open/x", ""), ("/open/x", Self.cookie), ("/x", Self.cookie),
      ("/x", Self.cookie + "Connection: X-User, Mail.Of_User\r\n"),
    ] {
      #expect(try await ask(gateway, path, fields + forged).hasPrefix("HTTP/1.1 200"), "\(path)")
    }
    #expect(!upstream.all.contains("mallory"))
    #expect(upstream.all.components(separatedBy: "\r\nX-User: ac_alice\r\n").count == 2)
    #expect(upstream.all.components(separatedBy: "\r\nMail.Of_User: alice@example.com\r\n").count == 2)
    // Names that no route uses are for the service.
    _ = try await ask(gateway, "/open/x", "X-Users: kept\r\nX-Use: kept\r\nXX-User: kept\r\n")
    #expect(upstream.all.components(separatedBy: "kept").count == 4)
    await gateway.stop()
  }

  @Test func trailersOfClientsCannotNameAUser() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [
      Self.route("/**", upstream.port, Self.named([.user: ("X-User", [.id])]), open: true)
    ])
    let answer = try await gateway.talk(
      "POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: X-User\r\n\r\n"
        + "1\r\na\r\n0\r\nX-User: mallory\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 200") && !upstream.all.contains("mallory"), "\(upstream.all)")
    await gateway.stop()
  }

  /// Attack: a name that ends its header, or that a service decodes to the name of somebody else.
  @Test(arguments: [
    (HeaderEncoding.utf8, "Zoë\r\nX-User: root", "ZoëX-User: root"),
    (.percent, "Zoë\r\nX-User: root", "Zo%C3%ABX-User%3A%20root"), (.percent, "%72oot", "%2572oot"),
    (.rfc2047, "Zoë", "=?UTF-8?B?Wm/Dqw==?="),
    (.rfc2047, "=?UTF-8?B?cm9vdA==?=", "=?UTF-8?B?PT9VVEYtOD9CP2NtOXZkQT09Pz0=?="),
  ]) func namesAreEncoded(_ encoding: HeaderEncoding, _ name: String, _ value: String) async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [
      Self.route("/**", upstream.port, Self.named([.name: ("X-Name", [.name])], encoding: encoding))
    ])
    gateway.sessions.put(TestGateway.token, TestGateway.snapshot(clock: gateway.clock, name: name))
    #expect(try await ask(gateway, "/x", Self.cookie).hasPrefix("HTTP/1.1 200"))
    #expect(upstream.all.contains("\r\nX-Name: \(value)\r\n"), "\(upstream.all)")
    #expect(!upstream.all.contains("\r\nX-User"))
    await gateway.stop()
  }

  /// Attack: a client without a session guesses the password by which the service believes the gateway, or a user adds
  /// the credentials of another one.
  @Test func basicReplacesWhatClientsSend() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [
      Self.route("/basic/**", upstream.port, Self.basic, open: true), .test(ports: [upstream.port], open: true),
    ])
    for fields in [Self.cookie, Self.cookie + Self.own, Self.cookie + "authorization: Negotiate x\r\n"] {
      #expect(try await ask(gateway, "/basic/x", fields).hasPrefix("HTTP/1.1 200"))
    }
    #expect(upstream.all.components(separatedBy: "\r\n\(Self.stated)\r\n").count == 4)
    #expect(upstream.all.lowercased().components(separatedBy: "authorization:").count == 4)
    for fields in [Self.own, "Cookie: moongate=\(String(repeating: "X", count: 43))\r\n" + Self.own] {
      #expect(try await ask(gateway, "/basic/x", fields).hasPrefix("HTTP/1.1 200"))
    }
    #expect(upstream.all.lowercased().components(separatedBy: "authorization:").count == 4)
    // The services of other routes have passwords of their own.
    _ = try await ask(gateway, "/x", Self.cookie + Self.own)
    #expect(upstream.all.contains("\r\n\(Self.own)") && !gateway.log.lines.joined().contains("sesame"))
    await gateway.stop()
  }

  /// A program's token stands for its owner, and a service token has no address.
  @Test func basicNeedsTheUserOfTheTemplate() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [
      Self.route("/**", upstream.port, Self.basic, tokens: .services)
    ])
    let token = try await gateway.token()
    #expect(try await ask(gateway, "/x", "Authorization: Bearer \(token.text)\r\n").hasPrefix("HTTP/1.1 200"))
    #expect(upstream.all.contains("Remote-User: token:ci\r\n") && !upstream.all.lowercased().contains("authorization:"))
    await gateway.stop()
  }

  /// Attack: a change of the account stays without effect in cached header lines.
  @Test func headersFollowTheAccountAndTheConfiguration() async throws {
    let upstream = try await RecordingUpstream()
    let first = Self.route("/**", upstream.port, Self.named([.user: ("X-User", [.email])]))
    let gateway = try await TestGateway(routes: [first])
    _ = try await ask(gateway, "/one", Self.cookie)
    #expect(upstream.all.contains("\r\nX-User: alice@example.com\r\n"))
    gateway.sessions.change(TestGateway.token, TestGateway.snapshot(clock: gateway.clock, emailVerified: false))
    var tries = 0
    try await until {
      tries += 1
      _ = try? await ask(gateway, "/two\(tries)", Self.cookie)
      return !head("/two\(tries)", upstream).contains("X-User")
    }
    let second = Self.route("/**", upstream.port, Self.named([.user: ("X-Account", [.id])]))
    gateway.active.activate(
      TestGeneration(gateway: .test(), routes: [second], flows: [], policies: []), at: gateway.clock.now())
    _ = try await ask(gateway, "/three", Self.cookie + "X-User: for the service\r\nx_account: mallory\r\n")
    let last = head("/three", upstream)
    #expect(last.contains("\r\nX-Account: ac_alice\r\n") && !last.contains("mallory"))
    #expect(last.contains("X-User: for the service\r\n"), "no route uses the name any more")
    await gateway.stop()
  }

  // MARK: forward-auth

  private func asking(_ routes: [Route], answersCredentials: Bool = true) async throws -> TestGateway {
    var settings = GatewaySettings.test()
    settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)]
    settings.answersCredentials = answersCredentials
    return try await TestGateway(routes: routes, settings: settings)
  }

  private func forward(_ gateway: TestGateway, _ dialect: String, _ path: String, _ more: String) async throws
    -> [String]
  {
    let answer = try await gateway.talk(ForwardAuthTests.text(ForwardAuthTests.question(dialect, "GET", path), more))
    return answer.components(separatedBy: "\r\n")
  }

  /// Attack: a proxy that replaces only what an answer has passes on a header by which another route names the user.
  @Test(arguments: ForwardAuthTests.dialects) func answersHaveTheNamesOfAllRoutes(_ dialect: String) async throws {
    let gateway = try await asking([
      Self.route("/named/**", 1, Self.named([.user: ("X-User", [.email]), .name: ("X-Name", [.name])])),
      .test("/open/**", ports: [1], open: true), .test(ports: [1]),
    ])
    let forged = "X-User: mallory\r\nx_name: mallory\r\n"
    let named = try await forward(gateway, dialect, "/named/x", Self.cookie + forged)
    let wanted = [
      "HTTP/1.1 200 OK", "Remote-User: ", "Remote-Email: alice@example.com", "Remote-Phone: +919999999999",
      "Remote-Name: ", "Remote-Groups: ", "X-Name: Alice", "X-User: alice@example.com",
    ]
    #expect(Array(named.prefix(wanted.count)) == wanted, "\(named)")
    // Twice, because the answer of the other route is cached for the same session and audience.
    for _ in 0..<2 {
      let usual = try await forward(gateway, dialect, "/x", Self.cookie + forged)
      #expect(usual.contains("Remote-User: ac_alice") && usual.contains("X-User: ") && usual.contains("X-Name: "))
    }
    let anonymous = try await forward(gateway, dialect, "/open/x", forged)
    #expect(anonymous[0] == "HTTP/1.1 200 OK" && anonymous.contains("X-User: ") && anonymous.contains("X-Name: "))
    await gateway.stop()
  }

  /// Attack: a proxy that knows nothing of the gateway's Authorization passes the client's on.
  @Test(arguments: ForwardAuthTests.dialects) func answersStateBasic(_ dialect: String) async throws {
    let gateway = try await asking([Self.route("/**", 1, Self.basic, open: true)])
    let isTold = { (lines: [String]) in
      dialect == "envoy"
        ? lines.contains("X-Envoy-Auth-Headers-To-Remove: authorization")
        : lines.contains("X-Moongate-Authorization: remove")
    }
    for fields in [Self.cookie, Self.cookie + Self.own] {
      let lines = try await forward(gateway, dialect, "/x", fields)
      #expect(lines[0] == "HTTP/1.1 200 OK")
      #expect(lines.filter { $0.lowercased().hasPrefix("authorization:") } == [Self.stated])
      // Envoy removes after it has copied.
      #expect(isTold(lines) == (dialect != "envoy" && dialect != "traefik"), "\(lines)")
    }
    let anonymous = try await forward(gateway, dialect, "/x", Self.own)
    #expect(!anonymous.contains { $0.lowercased().hasPrefix("authorization:") })
    #expect(isTold(anonymous) == (dialect != "traefik"))
    await gateway.stop()
  }

  /// Attack: a user asks `/auth/forward` through a proxy that passes everything on, and reads the service's password.
  @Test(arguments: ForwardAuthTests.dialects) func answersStateNoCredentialUnasked(_ dialect: String) async throws {
    let routes = [Self.route("/basic/**", 1, Self.basic, open: true), Route.test(ports: [1])]
    let gateway = try await asking(routes, answersCredentials: false)
    let refused = try await forward(gateway, dialect, "/basic/x", Self.cookie)
    #expect(refused[0].hasPrefix("HTTP/1.1 403"))
    #expect(!refused.contains { $0.lowercased().hasPrefix("authorization:") })
    // Nothing is secret in these answers.
    #expect(try await forward(gateway, dialect, "/basic/x", Self.own)[0] == "HTTP/1.1 200 OK")
    #expect(try await forward(gateway, dialect, "/x", Self.cookie)[0] == "HTTP/1.1 200 OK")
    await gateway.stop()
  }
}
