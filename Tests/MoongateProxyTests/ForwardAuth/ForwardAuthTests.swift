import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Forward-auth requests, byte by byte.
@Suite(.timeLimit(.minutes(2))) struct ForwardAuthTests {
  private static let cookie = "Cookie: moongate=\(TestGateway.token)\r\n"

  /// A gateway that trusts its peer.
  private func gateway(
    _ routes: [Route]? = nil, verdicts: [FunctionName: @Sendable (Facts) -> Verdict] = [:], trusted: Bool = true
  ) async throws -> TestGateway {
    var settings = GatewaySettings.test()
    if trusted { settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)] }
    return try await TestGateway(
      routes: routes ?? [
        .test("/open/**", ports: [1], open: true),
        .test("/only/**", host: "app.example.com", methods: ["GET"], ports: [1]),
        .test("/in/**", ports: [1]),
      ],
      settings: settings, verdicts: verdicts, page: { refusal, _, _ in "<p>\(refusal.code.name)</p>" })
  }

  /// The forward-auth request as the dialect's proxy sends it.
  static func question(
    _ dialect: String, _ method: String = "GET", scheme: String = "https", host: String = "app.example.com",
    _ target: String = "/in/x?q=1"
  ) -> (line: String, fields: [String]) {
    switch dialect {
    case "nginx":
      (
        "GET /auth/forward/nginx HTTP/1.1",
        ["Host: moongate", "X-Original-URL: \(scheme)://\(host)\(target)", "X-Original-Method: \(method)"]
      )
    case "envoy":
      ("\(method) /auth/forward/envoy\(target) HTTP/1.1", ["Host: \(host)", "X-Forwarded-Proto: \(scheme)"])
    default:
      (
        "GET /auth/forward/\(dialect) HTTP/1.1",
        [
          "Host: moongate", "X-Forwarded-Method: \(method)", "X-Forwarded-Proto: \(scheme)",
          "X-Forwarded-Host: \(host)",
          "X-Forwarded-Uri: \(target)",
        ]
      )
    }
  }

  static func text(_ question: (line: String, fields: [String]), _ more: String = "") -> String {
    ([question.line] + question.fields).joined(separator: "\r\n") + "\r\n" + more + "\r\n"
  }

  static let dialects = ["nginx", "traefik", "caddy", "envoy", "haproxy"]

  private func status(_ answer: String) -> Int { Int(answer.dropFirst(9).prefix(3)) ?? 0 }

  @Test(arguments: dialects) func allowingAnswerCarriesEveryHeader(_ dialect: String) async throws {
    let gateway = try await gateway()
    let client = try await RawClient(port: gateway.port)
    // Twice on one connection, which must be reused.
    for _ in 0..<2 {
      try await client.send(
        Self.text(Self.question(dialect), Self.cookie + "Remote-User: root\r\nX-Original-Host: x\r\n"))
      let answer = try await client.answers()
      let lines = answer.components(separatedBy: "\r\n")
      #expect(lines[0] == "HTTP/1.1 200 OK")
      #expect(
        lines.contains("Content-Length: 0") && !answer.contains("Transfer-Encoding") && answer.hasSuffix("\r\n\r\n"))
      #expect(lines.contains("Remote-User: ac_alice") && lines.contains("Remote-Email: alice@example.com"))
      #expect(lines.contains("Remote-Phone: +919999999999") && lines.contains("Remote-Name: Alice"))
      let token = try #require(lines.first { $0.hasPrefix("X-Moongate-Assertion: ") }).dropFirst(
        "X-Moongate-Assertion: ".count)
      let parts = token.split(separator: ".").map { Data(Base64URL.decode(String($0)) ?? []) }
      let claims = try #require(try JSONSerialization.jsonObject(with: parts[1]) as? [String: Any])
      #expect(claims["aud"] as? String == "app.example.com" && claims["sub"] as? String == "ac_alice")
      #expect(
        try verify(Data(token.split(separator: ".").prefix(2).joined(separator: ".").utf8), parts[2], gateway.keys))
    }
    await gateway.stop()
  }

  @Test(arguments: dialects) func openRouteSendsEmptyHeadersForAnonymousRequests(_ dialect: String) async throws {
    let gateway = try await gateway()
    for more in ["", "Cookie: moongate=\(String(repeating: "X", count: 43))\r\n", "Cookie: moongate=a; moongate=b\r\n"]
    {
      let right = try await gateway.talk(Self.text(Self.question(dialect, "GET", "/open/x"), more))
      #expect(right.hasPrefix("HTTP/1.1 200 OK\r\n"))
      for name in [
        "Remote-User", "Remote-Email", "Remote-Phone", "Remote-Name", "Remote-Groups", "X-Moongate-Assertion",
      ] {
        #expect(right.contains("\r\n\(name): \r\n"))
      }
    }
    #expect(
      try await gateway.talk(Self.text(Self.question(dialect, "GET", "/open/x"), Self.cookie)).contains(
        "Remote-User: ac_alice\r\n"))
    await gateway.stop()
  }

  /// Attack: a client's header is added to the proxy's or replaces it. Missing, repeated, empty or malformed headers
  /// give 400, never 200. Only the scheme may be a list, whose last value is the proxy's.
  ///
  /// Attack: `Host: closed.example,open.example` or the other way round, which a proxy passes on as X-Forwarded-Host.
  @Test(arguments: dialects) func invalidForwardingHeadersAreRefused(_ dialect: String) async throws {
    let gateway = try await gateway()
    let right = Self.question(dialect, "GET", "/open/x")
    for index in right.fields.indices where dialect == "envoy" || index > 0 {
      let field = right.fields[index]
      let name = String(field.prefix { $0 != ":" })
      var bad: [[String]] = [[], ["\(name): "]]
      if name != "X-Forwarded-Proto" {
        bad += [
          [field, field], [field, "\(name.lowercased()): "], ["\(name): \(field.dropFirst(name.count + 2)), x"],
        ]
      }
      switch name {
      case "X-Original-Method", "X-Forwarded-Method":
        bad += ["GET /", "G(T", "GET,POST", "\u{e9}"].map { ["\(name): \($0)"] }
      case "X-Forwarded-Proto":
        bad += ["ftp", "https:", "https, gopher", "HTTPS/1", ","].map { ["\(name): \($0)"] }
        bad.append([field, "\(name): gopher"])
      case "X-Forwarded-Host":
        let lists = ["h, a b", ",", "app.example.com,x.example", "app.example.com,"]
        bad += (["a b", "user@h", "h/", "h:99999", "a..b"] + lists).map { ["\(name): \($0)"] }
      case "Host": bad += ["a b", "user@h", "h/", "h:99999", "a..b", "h,h"].map { ["\(name): \($0)"] }
      case "X-Forwarded-Uri":
        bad += [
          "open/x", "http://h/open/x", "*", "/open/x#y", "/open/x?a#b", "/open/ x", "/open/\u{e9}", "/open/x?\u{e9}",
        ].map { ["\(name): \($0)"] }
      case "X-Original-URL":
        bad += [
          "/open/x", "//app.example.com/open/x", "ftp://app.example.com/open/x", "https:/open/x", "https://",
          "https:///open/x",
          "https://u@app.example.com/open/x", "https://app.example.com/open/x#y", "https://app.example.com/open/x y",
          "https://a\\b/open/x",
          "https://app.example.com:0/open/x", "https://app.example.com/open/x?a#b",
        ].map { ["\(name): \($0)"] }
      default: break
      }
      for lines in bad {
        var fields = right.fields
        fields.replaceSubrange(index...index, with: lines)
        let answer = try await gateway.talk(Self.text((right.line, fields), Self.cookie))
        #expect(status(answer) == 400 && answer.contains("\"code\":\"bad_request\""), "\(lines): \(answer.prefix(40))")
      }
    }
    #expect(status(try await gateway.talk(Self.text(right))) == 200)
    await gateway.stop()
  }

  /// All lines are one list (RFC 9110 section 5.3), and an empty member is none.
  @Test(arguments: ["traefik", "caddy", "haproxy"])
  func theLastSchemeCounts(_ dialect: String) async throws {
    let gateway = try await gateway()
    for (scheme, host) in [
      ("X-Forwarded-Proto: wss", "X-Forwarded-Host: app.example.com:"),
      ("X-Forwarded-Proto: http, https", "X-Forwarded-Host: APP.example.com"),
      ("X-Forwarded-Proto: ws\r\nX-Forwarded-Proto: WSS,", "X-Forwarded-Host: app.example.com"),
    ] {
      var question = Self.question(dialect, "GET", "/only/x")
      question.fields = question.fields.map {
        $0.hasPrefix("X-Forwarded-Proto") ? scheme : $0.hasPrefix("X-Forwarded-Host") ? host : $0
      }
      let answer = try await gateway.talk(Self.text(question, "Accept: text/html\r\n"))
      #expect(
        answer.hasPrefix("HTTP/1.1 302 ") && answer.contains("return_to=https%3A%2F%2Fapp.example.com"), "\(answer)")
      #expect(status(try await gateway.talk(Self.text(question, Self.cookie))) == 200)
    }
    await gateway.stop()
  }

  /// Attack: the address that the proxy names is the client's in limits and audit, whatever the proxy's own is.
  @Test(arguments: dialects) func theClientOfARefusalIsTheForwardedOne(_ dialect: String) async throws {
    let gateway = try await gateway()
    let answer = try await gateway.talk(
      Self.text(Self.question(dialect, "GET", "/nowhere"), "X-Forwarded-For: \"[2001:db8::1]:4711\"\r\n"))
    let id = try #require(answer.range(of: "\"decision_id\":\"(dc_[^\"]+)\"", options: .regularExpression))
    let event = try await gateway.audit.event(DecisionID(text: String(answer[id].dropFirst(15).dropLast())))
    #expect(event?.address == "2001:db8::1")
    let unread = try await gateway.talk(
      Self.text(Self.question(dialect, "GET", "/open/x"), "X-Forwarded-For: unknown\r\n"))
    #expect(status(unread) == 200 && gateway.log.lines.contains { $0.contains("X-Forwarded-For") })
    await gateway.stop()
  }

  /// A script or a prefetch must not read the sign-in page in place of its answer. The proxies pass these headers on.
  @Test(
    arguments: dialects,
    [
      "Accept: text/html, */*; q=0.01\r\nX-Requested-With: XMLHttpRequest\r\nSec-Fetch-Mode: cors\r\n",
      "Accept: text/html;q=0, application/json\r\n", "Accept: text/html\r\nHX-Request: true\r\n",
      "Accept: text/html\r\nSec-Purpose: prefetch;prerender\r\nSec-Fetch-Mode: navigate\r\n",
    ]) func onlyNavigationsAreRedirected(_ dialect: String, _ fields: String) async throws
  {
    let gateway = try await gateway()
    let answer = try await gateway.talk(Self.text(Self.question(dialect), fields))
    #expect(status(answer) == 401 && !answer.contains("Location:"))
    let page = try await gateway.talk(Self.text(Self.question(dialect), "Sec-Fetch-Mode: navigate\r\n"))
    #expect(page.contains("\r\nLocation: http://localhost:8080/auth/login?return_to="))
    await gateway.stop()
  }

  /// Only HTTP/1.1 must have Host, but Envoy's Host is the original one.
  @Test(arguments: dialects) func aQuestionByOldHTTPIsAnswered(_ dialect: String) async throws {
    let gateway = try await gateway()
    var question = Self.question(dialect, "GET", "/open/x")
    question.line = question.line.replacing("HTTP/1.1", with: "HTTP/1.0")
    question.fields.removeAll { $0.hasPrefix("Host:") }
    #expect(status(try await gateway.talk(Self.text(question))) == (dialect == "envoy" ? 400 : 200))
    await gateway.stop()
  }

  @Test(arguments: dialects) func otherDialectsHeadersAreNotRead(_ dialect: String) async throws {
    let gateway = try await gateway()
    let own = Self.question(dialect, "GET", "/in/x")
    let names = own.fields.map { $0.prefix { $0 != ":" }.lowercased() }
    let others = [
      "X-Original-URL: https://app.example.com/open/x", "X-Original-Method: GET", "X-Forwarded-Method: GET",
      "X-Forwarded-Uri: /open/x",
      "X-Forwarded-Host: x.example", "X_Forwarded_Uri: /open/x", "X-Original-Uri: /open/x",
    ].filter { line in !names.contains(line.prefix { $0 != ":" }.lowercased()) }
    #expect(status(try await gateway.talk(Self.text(own, others.joined(separator: "\r\n") + "\r\n"))) == 401)
    await gateway.stop()
  }

  @Test(arguments: dialects) func untrustedPeerIsDenied(_ dialect: String) async throws {
    let gateway = try await gateway(trusted: false)
    let answer = try await gateway.talk(Self.text(Self.question(dialect, "GET", "/open/x"), Self.cookie))
    #expect(status(answer) == 403 && answer.contains("\"code\":\"denied\"") && !answer.contains("Remote-User"))
    await gateway.stop()
  }

  @Test(
    arguments: dialects,
    [
      "/open//x", "/open/../in", "/open/%2e%2e/in", "/open/..;/in", "/open%2fx", "/open/%5cx", "/open\\x", "/open/%zz",
      "/open/%00", "/open/;/x",
      "/open/./x",
    ]) func pathsThatAreNotInNormalFormAre400(_ dialect: String, _ path: String) async throws
  {
    let gateway = try await gateway()
    #expect(status(try await gateway.talk(Self.text(Self.question(dialect, "GET", path), Self.cookie))) == 400)
    await gateway.stop()
  }

  @Test(arguments: dialects) func hostsAndPathsAreNormalized(_ dialect: String) async throws {
    let gateway = try await gateway([.test("/only/**", host: "app.example.com", ports: [1], open: true)])
    for (host, path, expected) in [
      ("APP.example.com.", "/only/x", 200), ("app.example.com:8443", "/%6fnly/x;y=1", 200),
      ("other.example.com", "/only/x", 403),
      ("app.example.com", "/ONLY/x", 403), ("app.example.com", "/only/%252e%252e/x", 200),
    ] {
      #expect(
        status(try await gateway.talk(Self.text(Self.question(dialect, host: host, path)))) == expected,
        "\(host)\(path)")
    }
    await gateway.stop()
  }

  @Test(arguments: dialects) func browsersAreRedirectedToSignIn(_ dialect: String) async throws {
    let gateway = try await gateway()
    for (method, redirect) in [("GET", 302), ("HEAD", 302), ("POST", 303), ("DELETE", 303)] {
      let answer = try await gateway.talk(Self.text(Self.question(dialect, method), "Accept: text/html,*/*\r\n"))
      #expect(status(answer) == (dialect == "nginx" ? 401 : redirect), "\(method) \(answer)")
      let back = "https%3A%2F%2Fapp.example.com%2Fin%2Fx%3Fq%3D1"
      #expect(answer.contains("\r\nLocation: http://localhost:8080/auth/login?return_to=\(back)\r\n"))
      let program = try await gateway.talk(Self.text(Self.question(dialect, method), "Accept: */*\r\n"))
      #expect(
        status(program) == 401 && !program.contains("Location:")
          && (dialect == "envoy" && method == "HEAD" || program.contains("\"code\":\"unauthenticated\"")))
    }
    // Absolute URLs are used even on public_url's own host, because the proxy has another address.
    let home = try await gateway.talk(
      Self.text(Self.question(dialect, scheme: "http", host: "localhost:8080"), "Accept: text/html\r\n"))
    #expect(
      home.contains(
        "Location: http://localhost:8080/auth/login?return_to=http%3A%2F%2Flocalhost%3A8080%2Fin%2Fx%3Fq%3D1\r\n"))
    await gateway.stop()
  }

  @Test(arguments: dialects) func requirementsAndDecisionsHold(_ dialect: String) async throws {
    let pin = ProviderName(test: "pin")
    let rule = FunctionName("routes[2].decide")
    let gateway = try await gateway(
      [
        .test("/pin/**", ports: [1], requirement: .passed(pin, within: .seconds(300)), flow: "step_up"),
        .test("/in/**", ports: [1], decide: rule),
      ],
      verdicts: [
        rule: { facts in
          switch (
            facts.request?.path, facts.request?.method, facts.request?.host, facts.request?.query,
            facts.client.address.description
          ) {
          case ("/in/x", "PUT", "app.example.com", "q=1", "203.0.113.9"): .allow
          case ("/in/fault", _, _, _, _): .fault(PolicyFault(kind: .error, location: nil, message: "no"))
          default: .deny("not_today")
          }
        }
      ])
    let ask = { (method: String, path: String, more: String) in
      try await gateway.talk(Self.text(Self.question(dialect, method, path), Self.cookie + more))
    }
    let browser = try await ask("GET", "/pin/x", "Accept: text/html\r\n")
    #expect(status(browser) == (dialect == "nginx" ? 401 : 302))
    #expect(
      browser.contains(
        "Location: http://localhost:8080/auth/pin?flow=step_up&return_to=https%3A%2F%2Fapp.example.com%2Fpin%2Fx\r\n"))
    let program = try await ask("GET", "/pin/x", "")
    #expect(
      status(program) == 403 && program.contains("\"code\":\"step_up_required\"")
        && program.contains("\"provider\":\"pin\""))
    #expect(status(try await ask("PUT", "/in/x?q=1", "X-Forwarded-For: 203.0.113.9\r\n")) == 200)
    let denied = try await ask("PUT", "/in/x?q=1", "")
    #expect(
      status(denied) == 403 && denied.contains("\"code\":\"not_today\""),
      "without a forwarded address, the client is the proxy")
    #expect(status(try await ask("GET", "/in/fault", "")) == 503)
    let nowhere = try await ask("GET", "/nowhere", "")
    #expect(status(nowhere) == 403 && nowhere.contains("\"code\":\"denied\""))
    let id = try #require(nowhere.range(of: "\"decision_id\":\"(dc_[^\"]+)\"", options: .regularExpression))
    let event = try await gateway.audit.event(DecisionID(text: String(nowhere[id].dropFirst(15).dropLast())))
    #expect(
      event?.detail["path"] == "/nowhere" && event?.detail["host"] == "app.example.com"
        && event?.detail["reason"] == "no route")
    await gateway.stop()
  }

  @Test(arguments: dialects) func methodsAndBodiesOfTheQuestion(_ dialect: String) async throws {
    let gateway = try await gateway()
    for (method, expected) in [
      ("GET", 200), ("PURGE", 200), ("POST", 200), ("get", 200), ("CONNECT", dialect == "envoy" ? 405 : 403),
      ("TRACE", dialect == "envoy" ? 405 : 403),
    ] {
      #expect(
        status(try await gateway.talk(Self.text(Self.question(dialect, method, "/in/x"), Self.cookie))) == expected,
        "\(method)")
    }
    // HEAD is answered like GET; a body is read to its end, and the next request is answered.
    var question = Self.question(dialect, "POST", "/in/x")
    if dialect != "envoy" { question.line = question.line.replacing("GET ", with: "POST ") }
    let body = Self.text(question, Self.cookie + "Content-Length: 5\r\n") + "12345"
    let two = try await gateway.talk(body + Self.text(Self.question(dialect), Self.cookie), answers: 2)
    #expect(two.components(separatedBy: "HTTP/1.1 200 OK").count == 3)
    let closing = try await gateway.talkToEnd(Self.text(Self.question(dialect), Self.cookie + "Connection: close\r\n"))
    #expect(closing.ended && closing.text.contains("Connection: close\r\n\r\n"))
    await gateway.stop()
  }

  @Test(arguments: dialects) func tokens(_ dialect: String) async throws {
    let gateway = try await gateway()
    let ask = { (more: String) in try await gateway.talk(Self.text(Self.question(dialect), more)) }
    let first = "Authorization: Bearer \(TestGateway.token)\r\nX-Forwarded-For: 203.0.113.7\r\n"
    #expect(status(try await ask(first)) == 200)
    #expect(status(try await ask(Self.cookie + "Authorization: Bearer other\r\n")) == 400)
    #expect(status(try await ask("Authorization: Bearer \(TestGateway.token)\r\nAuthorization: Bearer x\r\n")) == 400)
    #expect(status(try await ask("Cookie: moongate=\(TestGateway.token); moongate=\(TestGateway.token)\r\n")) == 401)
    // The request counts as activity.
    try await until { gateway.sessions.touched[TokenHash(of: TestGateway.token.utf8)] != nil }
    // The use has the address of the client, not of the proxy that asks.
    #expect(gateway.sessions.touched[TokenHash(of: TestGateway.token.utf8)]?.address == "203.0.113.7")
    gateway.sessions.end(TestGateway.token)
    try await until { (try? await ask(Self.cookie).hasPrefix("HTTP/1.1 401")) ?? false }
    gateway.sessions.isDown = true
    try await until { (try? await ask(Self.cookie).hasPrefix("HTTP/1.1 503")) ?? false }
    await gateway.stop()
  }

  /// Paths that belong to no dialect are the gateway's own, and no forward-auth request is answered there.
  @Test(arguments: [
    "/auth/forward/", "/auth/forward/nginx/", "/auth/forward/NGINX", "/auth/forward/%6eginx", "/auth/forward/envoy",
    "/auth/forward/nginx/x",
    "/auth/forward",
  ]) func pathsOfNoDialectAreServedByTheGateway(_ path: String) async throws {
    let gateway = try await gateway()
    let question = Self.question("nginx", "GET", "/open/x")
    let answer = try await gateway.talk(Self.text(("GET \(path) HTTP/1.1", question.fields), Self.cookie))
    #expect(answer.contains("own GET \(path)"))
    await gateway.stop()
  }
}
