import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Services that see another path and Host than their clients, through the whole data path.
@Suite(.timeLimit(.minutes(2))) struct RewritingTests {
  private static let cookie = "Cookie: moongate=\(TestGateway.token)\r\n"

  private static func service(_ fields: String...) -> RecordingUpstream.Script {
    let head = (["HTTP/1.1 302 Found"] + fields + ["Content-Length: 2"]).joined(separator: "\r\n")
    return { RecordingUpstream.isComplete($0) ? .answer("\(head)\r\n\r\nok") : nil }
  }

  private func get(_ gateway: TestGateway, _ path: String, _ fields: String...) async throws -> String {
    try await gateway.talk(
      (["GET \(path) HTTP/1.1", "Host: app.example.com"] + fields).joined(separator: "\r\n") + "\r\n\r\n")
  }

  /// The request lines that the service has received.
  private func lines(_ upstream: RecordingUpstream) -> [String] {
    upstream.all.components(separatedBy: "\r\n").filter { $0.hasSuffix(" HTTP/1.1") }.map {
      String($0.dropLast(" HTTP/1.1".count))
    }
  }

  @Test(arguments: [
    ("/wiki", "", "/"), ("/wiki?q=/wiki", "", "/?q=/wiki"), ("/wiki/", "", "/"),
    ("/wiki/a%20b;c=d/?e=f%2Fg", "", "/a%20b;c=d/?e=f%2Fg"),
    ("/%77iki;x/y?z", "", "/y?z"), ("/wiki", "/base", "/base"), ("/wiki/", "/base", "/base/"),
    ("/wiki/x?y", "/base", "/base/x?y"),
  ])
  func serviceSeesItsOwnPath(_ path: String, _ base: String, _ seen: String) async throws {
    let upstream = try await RecordingUpstream(Self.service())
    let gateway = try await TestGateway(routes: [
      .test("/wiki/**", ports: [upstream.port], open: true).rewritten(strip: "/wiki", base: base)
    ])
    for target in [path, "http://app.example.com\(path)"] {
      let answer = try await gateway.talk("GET \(target) HTTP/1.1\r\nHost: app.example.com\r\n\r\n")
      #expect(answer.hasPrefix("HTTP/1.1 302 "), "\(answer)")
    }
    #expect(lines(upstream) == ["GET \(seen)", "GET \(seen)"])
    #expect(upstream.all.components(separatedBy: "\r\nX-Forwarded-Prefix: /wiki\r\n").count == 3)
    #expect(upstream.all.contains("\r\nHost: app.example.com\r\n"))
    await gateway.stop()
  }

  @Test func basePathWithoutStrip() async throws {
    let upstream = try await RecordingUpstream(Self.service("Location: /base/login", "Set-Cookie: a=b; Path=/base"))
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true).rewritten(base: "/base")])
    for target in ["/", "/x?y", "http://app.example.com", "http://app.example.com?q"] {
      let answer = try await gateway.talk("GET \(target) HTTP/1.1\r\nHost: app.example.com\r\n\r\n")
      #expect(answer.contains("\r\nLocation: /login\r\nSet-Cookie: a=b; Path=/\r\n"), "\(answer)")
    }
    #expect(lines(upstream) == ["GET /base/", "GET /base/x?y", "GET /base/", "GET /base/?q"])
    #expect(!upstream.all.contains("X-Forwarded-Prefix"))
    await gateway.stop()
  }

  /// Attack: a path that reaches the service in another form than the one that its route's rules have judged.
  @Test func noPathWalksAroundARule() async throws {
    let upstream = try await RecordingUpstream(Self.service())
    let gateway = try await TestGateway(routes: [
      .test("/wiki/admin/**", ports: [upstream.port]).rewritten(strip: "/wiki"),
      .test("/wiki/**", ports: [upstream.port], open: true).rewritten(strip: "/wiki"),
    ])
    for path in [
      "/wiki/admin", "/wiki/admin/x", "/%77iki/admin", "/wiki;/admin", "/wiki/%61dmin", "/wiki%3Bx/admin;y/z",
    ] {
      #expect(try await get(gateway, path).hasPrefix("HTTP/1.1 401 "), "\(path)")
    }
    for path in [
      "/wiki/../admin", "/wiki/%2e%2e/admin", "/wiki/.;x/admin", "/wiki//admin", "/wiki/;/admin", "/wiki/%2Fadmin",
      "/wiki%2Fadmin", "/wiki/%5Cadmin", "/wiki/x%0d%0aHost:%20evil", "/wiki/%c0%afadmin", "//wiki/admin",
    ] {
      #expect(try await get(gateway, path).hasPrefix("HTTP/1.1 400 "), "\(path)")
    }
    for path in ["/wikiadmin", "/%2577iki/x", "/wiki%2525"] {
      #expect(try await get(gateway, path).hasPrefix("HTTP/1.1 404 "), "\(path)")
    }
    #expect(upstream.all.isEmpty)
    #expect(try await get(gateway, "/wiki/%2561dmin").hasPrefix("HTTP/1.1 302 "))
    #expect(lines(upstream) == ["GET /%2561dmin"])
    await gateway.stop()
  }

  /// Attack: a client names a prefix, which services put in front of their links and redirects.
  @Test func prefixOfTheClientIsRemoved() async throws {
    let upstream = try await RecordingUpstream(Self.service())
    let gateway = try await TestGateway(routes: [
      .test("/wiki/**", ports: [upstream.port], open: true).rewritten(strip: "/wiki"),
      .test("/**", ports: [upstream.port], open: true),
    ])
    for path in ["/wiki/x", "/x"] {
      _ = try await get(
        gateway, path, "X-Forwarded-Prefix: //evil.example", "x_forwarded_prefix: /evil", "X-Forwarded-Prefix: /evil",
        "X-Forwarded-Path: /evil")
    }
    #expect(!upstream.all.contains("evil"))
    #expect(upstream.all.components(separatedBy: "X-Forwarded-Prefix").count == 2)
    await gateway.stop()
  }

  @Test func hostIsTheOneThatTheRouteNames() async throws {
    let upstream = try await RecordingUpstream(
      Self.service("Location: http://wiki.internal/x", "Set-Cookie: a=b; Domain=wiki.internal"))
    let gateway = try await TestGateway(routes: [
      .test("/own/**", ports: [upstream.port], open: true).rewritten(host: .upstream),
      .test("/**", host: "app.example.com", ports: [upstream.port]).rewritten(host: .named("wiki.internal")),
    ])
    #expect(try await get(gateway, "/own/x").contains("\r\nLocation: http://wiki.internal/x\r\n"))
    #expect(upstream.all.hasPrefix("GET /own/x HTTP/1.1\r\nHost: 127.0.0.1:\(upstream.port)\r\n"))
    #expect(upstream.all.components(separatedBy: "Host:").count == 3)
    let answer = try await get(gateway, "/x", "Cookie: moongate=\(TestGateway.token)")
    #expect(answer.contains("\r\nLocation: http://app.example.com/x\r\nSet-Cookie: a=b\r\n"), "\(answer)")
    let seen = String(upstream.all[try #require(upstream.all.range(of: "GET /x ")).lowerBound...])
    #expect(seen.hasPrefix("GET /x HTTP/1.1\r\nHost: wiki.internal\r\n"))
    // Everything else is about the client's host.
    #expect(seen.contains("\r\nX-Forwarded-Host: app.example.com\r\n"))
    let token = try #require(
      seen.components(separatedBy: "X-Moongate-Assertion: ").last?.split(separator: "\r\n").first)
    let claims = try #require(Base64URL.decode(String(token.split(separator: ".")[1])))
    #expect(String(decoding: claims, as: UTF8.self).contains("\"app.example.com\""))
    await gateway.stop()
  }

  /// Attack: a Host that leads to a service with a name of its own reaches the routes of the client's host only.
  @Test func hostOfTheRouteIsNoHostOfClients() async throws {
    let upstream = try await RecordingUpstream(Self.service())
    let gateway = try await TestGateway(routes: [
      .test("/**", host: "app.example.com", ports: [upstream.port], open: true).rewritten(host: .named("wiki.internal"))
    ])
    let answer = try await gateway.talk("GET /x HTTP/1.1\r\nHost: wiki.internal\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 404 ") && upstream.all.isEmpty)
    await gateway.stop()
  }

  /// A request that is sent to another upstream gets the Host of that one.
  @Test func eachUpstreamGetsItsOwnHost() async throws {
    let dying = try await RecordingUpstream { RecordingUpstream.isComplete($0) ? .close : nil }
    let living = try await RecordingUpstream(Self.service("Location: http://127.0.0.1:1/x"))
    let gateway = try await TestGateway(routes: [
      .test("/in/**", ports: [dying.port, living.port], open: true).rewritten(
        strip: "/in", base: "/v1", host: .upstream)
    ])
    #expect(try await get(gateway, "/in/x").hasPrefix("HTTP/1.1 302 "))
    #expect(dying.all.hasPrefix("GET /v1/x HTTP/1.1\r\nHost: 127.0.0.1:\(dying.port)\r\n"))
    #expect(living.all.hasPrefix("GET /v1/x HTTP/1.1\r\nHost: 127.0.0.1:\(living.port)\r\n"))
    #expect(living.all.contains("\r\nX-Forwarded-Host: app.example.com\r\n"))
    await gateway.stop()
  }

  @Test func responsesLeadBackToTheRoute() async throws {
    let upstream = try await RecordingUpstream(
      Self.service(
        "Location: /login?next=%2Fx", "Content-Location: http://app.example.com/x", "Refresh: 5; url=/x",
        "Set-Cookie: a=b; Path=/; HttpOnly", "Server: secret/1.0", "Link: </x>; rel=next"))
    let gateway = try await TestGateway(routes: [
      .test("/wiki/**", ports: [upstream.port], open: true).rewritten(
        strip: "/wiki", responses: [("Server", nil), ("X-Frame-Options", "DENY")])
    ])
    let answer = try await get(gateway, "/wiki/x")
    let lines = [
      "Location: /wiki/login?next=%2Fx", "Content-Location: http://app.example.com/wiki/x", "Refresh: 5; url=/wiki/x",
      "Set-Cookie: a=b; Path=/wiki; HttpOnly", "Link: </x>; rel=next",
    ]
    #expect(answer.contains(lines.joined(separator: "\r\n")), "\(answer)")
    #expect(answer.contains("\r\nX-Frame-Options: DENY\r\n") && !answer.contains("Server"))
    #expect(answer.hasSuffix("\r\nContent-Length: 2\r\n\r\nok"))
    // The gateway's own answers on the route are not the service's.
    let refused = try await get(gateway, "/wiki/%2F")
    #expect(refused.hasPrefix("HTTP/1.1 400 ") && !refused.contains("DENY"))
    await gateway.stop()
  }

  /// WebSockets: the handshake is a response of the service.
  @Test func upgradesAreRewritten() async throws {
    let switching = [
      "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", "Server: secret",
      "Set-Cookie: a=b; Path=/",
    ].joined(separator: "\r\n")
    let upstream = try await RecordingUpstream { received in
      if received.hasSuffix("\r\n\r\n") { return .answer("\(switching)\r\n\r\n") }
      return received == "ping" ? .answer("pong") : nil
    }
    let gateway = try await TestGateway(routes: [
      .test("/wiki/**", ports: [upstream.port], upgrade: true).rewritten(
        strip: "/wiki", base: "/base", host: .upstream, responses: [("Server", nil)])
    ])
    let client = try await RawClient(port: gateway.port)
    let handshake =
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nOrigin: http://app.example.com\r\n"
    try await client.send("GET /wiki/ws?a HTTP/1.1\r\nHost: app.example.com\r\n\(handshake)\(Self.cookie)\r\n")
    let answer = try await client.read { $0.hasSuffix("\r\n\r\n") }.text
    #expect(answer.hasPrefix("HTTP/1.1 101 ") && answer.contains("\r\nSet-Cookie: a=b; Path=/\r\n"), "\(answer)")
    #expect(!answer.contains("secret") && answer.contains("\r\nConnection: Upgrade\r\n"))
    try await client.send("ping")
    #expect(try await client.read { $0.hasSuffix("pong") }.text == "pong")
    #expect(upstream.all.hasPrefix("GET /base/ws?a HTTP/1.1\r\nHost: 127.0.0.1:\(upstream.port)\r\n"))
    #expect(
      upstream.all.contains("\r\nX-Forwarded-Prefix: /wiki\r\n") && upstream.all.contains("\r\nUpgrade: websocket\r\n"))
    await gateway.stop()
  }

  @Test func requestsOfHTTP2AreRewritten() async throws {
    let gateway = try await TestGateway(routes: [
      .test("/wiki/**", ports: [3000], open: true).rewritten(
        strip: "/wiki", host: .named("wiki.internal"), responses: [("X-Frame-Options", "DENY")])
    ])
    try {
      let client = try EmbeddedStreams(gateway)
      defer { client.end() }
      _ = try client.frames()
      try client.send(client.head(1, path: "/wiki/x?y", [("x-forwarded-prefix", "/evil")]))
      let asked = try client.asked()
      #expect(asked.hasPrefix("GET /x?y HTTP/1.1\r\nHost: wiki.internal\r\n"))
      #expect(asked.contains("\r\nX-Forwarded-Host: h\r\n") && asked.contains("\r\nX-Forwarded-Prefix: /wiki\r\n"))
      #expect(!asked.contains("evil"))
      try client.answer(
        "HTTP/1.1 302 Found\r\nLocation: http://wiki.internal/z\r\nSet-Cookie: a=b; Path=/\r\nContent-Length: 0\r\n\r\n"
      )
      let fields = try client.frames().flatMap(\.fields)
      for field in ["location=https://h/wiki/z", "set-cookie=a=b; Path=/wiki", "x-frame-options=DENY"] {
        #expect(fields.contains(field), "\(fields)")
      }
      // Attack: the same paths as with HTTP/1.1.
      try client.send(client.head(3, path: "/wiki//x") + client.head(5, path: "/wiki%2Fx"))
      let refused = try client.frames().flatMap(\.fields).filter { $0.hasPrefix(":status") }
      #expect(refused == [":status=400", ":status=400"])
      #expect(try client.asked() == "")
    }()
    await gateway.stop()
  }

  /// With forward-auth, the proxy forwards the request itself: it has its own settings for paths and Host.
  @Test(arguments: ForwardAuthTests.dialects) func forwardAuthAnswersAreTheSame(_ dialect: String) async throws {
    var settings = GatewaySettings.test()
    settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)]
    let plain = Route.test("/wiki/**", ports: [1], open: true)
    var answers: [String] = []
    for route in [
      plain,
      plain.rewritten(
        strip: "/wiki", base: "/base", host: .named("wiki.internal"), responses: [("X-Frame-Options", "DENY")]),
    ] {
      let gateway = try await TestGateway(routes: [route], settings: settings)
      for path in ["/wiki", "/wiki/x?y", "/%77iki/x"] {
        answers.append(try await gateway.talk(ForwardAuthTests.text(ForwardAuthTests.question(dialect, "GET", path))))
      }
      await gateway.stop()
    }
    #expect(answers[0].hasPrefix("HTTP/1.1 200 ") && answers.prefix(3) == answers.suffix(3))
  }

  /// Attack, or accident: a service that leaves its path with each response would fill the log.
  @Test func leavingThePathIsLoggedOnceAMinute() async throws {
    let upstream = try await RecordingUpstream(
      Self.service("Location: /other/x?token=secret", "Set-Cookie: a=b; Path=/admin"))
    let gateway = try await TestGateway(routes: [
      .test("/wiki/**", ports: [upstream.port], open: true).rewritten(strip: "/wiki", base: "/base")
    ])
    for _ in 0..<3 {
      let answer = try await get(gateway, "/wiki/x")
      #expect(answer.contains("\r\nLocation: /other/x?token=secret\r\nSet-Cookie: a=b; Path=/admin\r\n"))
    }
    let lines = gateway.log.lines.filter { $0.contains("a response names a path outside of the one in `to`") }
    #expect(lines.count == 2 && lines.allSatisfy { $0.contains("http://127.0.0.1:\(upstream.port)") }, "\(lines)")
    #expect(
      lines.contains { $0.contains("field=Location") && $0.contains("path=/other/x ") && $0.contains("to=/base") })
    #expect(lines.contains { $0.contains("field=Set-Cookie") && $0.contains("path=/admin") })
    #expect(lines.allSatisfy { !$0.contains("secret") && $0.contains("route=/wiki/**") })
    gateway.clock.advance(by: .seconds(61))
    gateway.proxy.logSuppressedFailures()
    let more = gateway.log.lines.filter { $0.contains("further responses name a path outside") }
    #expect(more.count == 2 && more.allSatisfy { $0.contains("suppressed=2") }, "\(more)")
    await gateway.stop()
  }
}
