import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import NIOCore
import Synchronization
import Testing

@testable import MoongateProxy

/// Requests that must not reach an upstream.
@Suite(.timeLimit(.minutes(2))) struct RefusalTests {
  private let cookie = "Cookie: moongate=\(TestGateway.token)\r\n"

  /// Request smuggling: the second request of each is an attacker's and must not reach the upstream.
  @Test(
    arguments: [
      "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "Content-Length: 0\r\nContent-Length: 44\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "Transfer-Encoding:\u{b}chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "X: y\r\n Transfer-Encoding: chunked\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "X: y\nContent-Length: 10\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "X: y\0z\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "Content-Length : 0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ]) func ambiguousFramingIsRefused(_ rest: String) async throws
  {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    let answer = try await gateway.talkToEnd("POST /first HTTP/1.1\r\nHost: localhost\r\n\(rest)")
    #expect(answer.text.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
    #expect(
      answer.text.contains("\r\nConnection: close\r\n") && answer.text.contains("\"code\":\"bad_request\"")
        && answer.text.contains("\"decision_id\":\"dc_"))
    #expect(answer.ended)
    #expect(answer.text.components(separatedBy: "HTTP/1.1 ").count == 2)
    #expect(upstream.all == "")
    await gateway.stop()
  }

  @Test func malformedChunksEndTheUpstreamsConnectionToo() async throws {
    let upstream = try await RecordingUpstream { _ in nil }
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    let answer = try await gateway.talkToEnd(
      "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\nabc\r\n0\r\n\r\n")
    #expect(answer.text.hasPrefix("HTTP/1.1 400") && answer.ended)
    #expect(!upstream.all.hasSuffix("0\r\n\r\n"))
    try await until { upstream.open == 0 }
    await gateway.stop()
  }

  @Test(
    arguments: [
      ("GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505), ("TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
      ("CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 405), ("GET / HTTP/1.1\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
      ("GET http://evil/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
      ("GET http://localhost:81/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
      ("GET http://u@localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
      ("GET /../x HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
      ("GET /a%2f..%2fb HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
      ("GET /a//b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400), ("GET /..;/b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
      ("GET /none HTTP/1.1\r\nHost: other\r\n\r\n", 404),
    ]) func isRefused(_ text: String, _ status: Int) async throws
  {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(host: "localhost", ports: [upstream.port], open: true)])
    let answer = try await gateway.talk(text)
    #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer)")
    #expect(upstream.all == "")
    await gateway.stop()
  }

  /// These all name one host, and the upstream receives one spelling.
  @Test(
    arguments: [
      ("/", "LOCALHOST", "localhost"), ("/", "localhost.", "localhost"), ("/", "LocalHost:8080", "localhost:8080"),
      ("http://localhost/", "LOCALHOST", "localhost"),
      ("http://localhost:80", "localhost", "localhost"), ("HTTP://LOCALHOST./?a=b", "localhost", "localhost"),
    ]) func hostsHaveOneSpelling(_ target: String, _ host: String, _ sent: String) async throws
  {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(host: "localhost", ports: [upstream.port], open: true)])
    #expect(try await gateway.talk("GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n").hasPrefix("HTTP/1.1 200"))
    #expect(upstream.all.hasPrefix(target.contains("?") ? "GET /?a=b HTTP/1.1\r\n" : "GET / HTTP/1.1\r\n"))
    #expect(
      upstream.all.contains("\r\nHost: \(sent)\r\n") && upstream.all.contains("\r\nX-Forwarded-Host: \(sent)\r\n"))
    await gateway.stop()
  }

  /// The forwarded path is byte for byte the one that was judged.
  @Test func pathsAreForwardedUnchanged() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test("/open/**", ports: [upstream.port], open: true)])
    for path in ["/open/a%20b;x=1/c", "/%6fpen/x", "/open/%252e%252e/y", "/open;p/z?q=/../%"] {
      #expect(try await gateway.talk("GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n").hasPrefix("HTTP/1.1 200"), "\(path)")
      #expect(upstream.all.contains("GET \(path) HTTP/1.1\r\n"))
    }
    #expect(try await gateway.talk("GET /OPEN/x HTTP/1.1\r\nHost: h\r\n\r\n").hasPrefix("HTTP/1.1 404"))
    await gateway.stop()
  }

  /// Wrong session tokens and contradictory credentials.
  @Test(
    arguments: [
      "", "Cookie: moongate=\r\n", "Cookie: moongate\r\n", "Cookie: moongate=\(String(repeating: "X", count: 43))\r\n",
      "Cookie: moongate=\(TestGateway.token.dropLast())\r\n", "Cookie: moongate=\(TestGateway.token)T\r\n",
      "Cookie: moongate=\"\(TestGateway.token)\"\r\n",
      "Cookie: Moongate=\(TestGateway.token)\r\n", "Cookie: __Host-moongate=\(TestGateway.token)\r\n",
      "Cookie: moongate=\(TestGateway.token.lowercased())\r\n",
      "Cookie: moongate=\(String(repeating: "T", count: 20_000))\r\n",
      "Cookie: moongate=\(TestGateway.token); moongate=\(TestGateway.token)\r\n",
      "Cookie: moongate=\(TestGateway.token)\r\nCookie: moongate=other\r\n",
      "Authorization: Basic \(TestGateway.token)\r\n",
      "Authorization: Bearer x\r\n",
      "Authorization: Bearer\r\n", "Authorization: Bearer\t\(TestGateway.token)\r\n",
      "Authorization: Bearer \t\(TestGateway.token)\r\n",
    ]) func invalidSessionCredentialsAreRefused(_ fields: String) async throws
  {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    let answer = try await gateway.talk("GET /x?y=z HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 401 Unauthorized\r\n") && answer.contains("\"code\":\"unauthenticated\""))
    #expect(!answer.contains("WWW-Authenticate"), "a route for browsers does not request HTTP authentication")
    let browser = try await gateway.talk(
      "GET /x?y=z HTTP/1.1\r\nHost: localhost\r\nAccept: text/html, */*\r\n\(fields)\r\n")
    #expect(browser.hasPrefix("HTTP/1.1 302 Found\r\nLocation: /auth/login?return_to=%2Fx%3Fy%3Dz\r\n"))
    #expect(upstream.all == "")
    await gateway.stop()
  }

  /// Cookies planted by a sibling site must not lock the user out and are not forwarded.
  @Test(arguments: [
    "moongate; moongate=T", "moongate=T;moongate", " moongate =\tT ;a=b", "a; moongate=T; =",
    "moongate-flow; moongate=T",
  ])
  func validSessionCookiesAreAccepted(_ cookie: String) async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    let answer = try await gateway.talk(
      "GET / HTTP/1.1\r\nHost: h\r\nCookie: \(cookie.replacing("T", with: TestGateway.token))\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
    #expect(!upstream.all.contains("moongate") && !upstream.all.contains(TestGateway.token))
    await gateway.stop()
  }

  @Test func cookieAndBearerThatDifferAre400() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    for bearer in ["other", String(repeating: "X", count: 43)] {
      #expect(
        try await gateway.talk("GET / HTTP/1.1\r\nHost: h\r\n\(cookie)Authorization: Bearer \(bearer)\r\n\r\n")
          .hasPrefix("HTTP/1.1 400"))
    }
    #expect(
      try await gateway.talk("GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n")
        .hasPrefix("HTTP/1.1 400"))
    #expect(
      try await gateway.talk("GET / HTTP/1.1\r\nHost: h\r\n\(cookie)Authorization: Bearer \(TestGateway.token)\r\n\r\n")
        .hasPrefix("HTTP/1.1 200"))
    #expect(!upstream.all.contains(TestGateway.token))
    await gateway.stop()
  }

  @Test func aBrowserOnAnotherHostIsSentToPublicURL() async throws {
    let gateway = try await TestGateway(routes: [.test(ports: [1])])
    let answer = try await gateway.talk("GET /a HTTP/1.1\r\nHost: App.example.com:81\r\nAccept: text/html\r\n\r\n")
    #expect(
      answer.contains(
        "\r\nLocation: http://localhost:8080/auth/login?return_to=http%3A%2F%2Fapp.example.com%3A81%2Fa\r\n"))
    let post = try await gateway.talk(
      "POST /a HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nContent-Length: 3\r\n\r\nabc")
    #expect(post.hasPrefix("HTTP/1.1 401"))
    await gateway.stop()
  }

  @Test func browsersGetAPage() async throws {
    let gateway = try await TestGateway(
      routes: [.test(ports: [1])],
      page: { refusal, _, languages in "<p>\(refusal.code.name) \(languages ?? "-") \(refusal.decision)</p>" })
    for (field, languages) in [
      ("", "-"), ("Accept-Language: hi-IN, en;q=0.5\r\n", "hi-IN, en;q=0.5"),
      ("Accept-Language: \(String(repeating: "hi,", count: 100))\r\n", "-"),
    ] {
      let answer = try await gateway.talk("POST /a HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\(field)\r\n")
      #expect(answer.contains("Content-Type: text/html; charset=utf-8\r\n"))
      #expect(answer.contains("<p>unauthenticated \(languages) dc_"))
    }
    await gateway.stop()
  }

  /// Forwarding headers of untrusted clients are replaced.
  @Test(
    arguments: [
      ("X-Forwarded-For: 1.2.3.4\r\n", "127.0.0.1"), ("X-Forwarded-For: \r\n", "127.0.0.1"),
      ("X-Forwarded-For: rubbish, \u{e9}\r\n", "127.0.0.1"),
      ("X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\n", "127.0.0.1"),
    ]) func untrustedPeersCannotSetForwardingHeaders(_ fields: String, _ address: String) async throws
  {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true)])
    #expect(try await gateway.talk("GET / HTTP/1.1\r\nHost: h\r\n\(fields)\r\n").hasPrefix("HTTP/1.1 200"))
    #expect(
      upstream.all.contains("\r\nX-Forwarded-For: \(address)\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\n"))
    #expect(!upstream.all.contains("evil"))
    await gateway.stop()
  }

  @Test func forwardedHeadersOfTrustedProxiesAreUsed() async throws {
    let upstream = try await RecordingUpstream()
    var settings = GatewaySettings.test()
    settings.trustedProxies = [
      AddressBlock(network: [127, 0, 0, 1], prefix: 32), AddressBlock(network: [10, 0, 0, 0], prefix: 8),
    ]
    let gateway = try await TestGateway(
      routes: [.test(host: "app.example.com", ports: [upstream.port], open: true)], settings: settings)
    for (index, (list, address)) in [
      ("6.6.6.6, 1.2.3.4, 10.1.1.1", "1.2.3.4"), ("rubbish, 1.2.3.4", "1.2.3.4"), ("1.2.3.4, rubbish", "127.0.0.1"),
      ("", "127.0.0.1"),
      ("2001:DB8::1", "2001:db8::1"),
    ].enumerated() {
      let answer = try await gateway.talk(
        "GET /\(index) HTTP/1.1\r\nHost: inner:8080\r\nX-Forwarded-For: \(list)\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: APP.example.com\r\n\r\n"
      )
      #expect(answer.hasPrefix("HTTP/1.1 200"))
      #expect(
        upstream.all.contains(
          "GET /\(index) HTTP/1.1\r\nHost: app.example.com\r\nX-Forwarded-For: \(address)\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: app.example.com\r\n"
        ), "\(list)")
      #expect(!upstream.all.contains("inner"))
    }
    let flood =
      "GET / HTTP/1.1\r\nHost: h\r\n" + String(repeating: "X-Forwarded-For: 1.1.1.1\r\n", count: 10_000) + "\r\n"
    #expect(try await gateway.talk(flood).hasPrefix("HTTP/1.1 431"))
    await gateway.stop()
  }

  @Test func aRefusedBodyIsReadToItsEndOrTheConnectionEnds() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    // A refused body must not be parsed as the next request, in either case.
    let body = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\(cookie)\r\n"
    let text =
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)GET /next HTTP/1.1\r\nHost: localhost\r\n\(cookie)\r\n"
    let answer = try await gateway.talk(text, answers: 2, for: 3)
    #expect(answer.hasPrefix("HTTP/1.1 401"))
    #expect(!upstream.all.contains("smuggled"))
    await gateway.stop()
  }

  @Test func bodiesAreLimitedByTheirRoute() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port], open: true, bodyLimit: 10)])
    #expect(
      try await gateway.talk("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n0123456789").hasPrefix(
        "HTTP/1.1 200"))
    #expect(
      try await gateway.talk("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n01234567890").hasPrefix(
        "HTTP/1.1 413"))
    let chunked =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n6\r\n012345\r\n0\r\n\r\n"
    #expect(try await gateway.talk(chunked).hasPrefix("HTTP/1.1 413"))
    #expect(
      try await gateway.talk("POST /auth/x HTTP/1.1\r\nHost: h\r\nContent-Length: 65537\r\n\r\n").hasPrefix(
        "HTTP/1.1 413"))
    await gateway.stop()
  }

  @Test func requirementsAndDecisions() async throws {
    let upstream = try await RecordingUpstream()
    let pin = ProviderName(test: "pin")
    let rule = FunctionName("routes[3].decide")
    let gateway = try await TestGateway(
      routes: [
        .test("/pin/**", ports: [upstream.port], requirement: .passed(pin, within: .seconds(300)), flow: "step_up"),
        .test("/mail/**", ports: [upstream.port], requirement: .emailVerified),
        .test("/**", ports: [upstream.port], decide: rule),
      ],
      verdicts: [
        rule: { facts in
          switch facts.request?.path {
          case "/deny": .deny("not_today")
          case "/more": .requireAlso(pin)
          case "/fault": .fault(PolicyFault(kind: .error, location: nil, message: "no"))
          default: facts.request?.query == "q=1" && facts.session?.account == "ac_alice" ? .allow : .deny("other")
          }
        }
      ])
    let get = { (path: String, fields: String) in
      try await gateway.talk("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(cookie)\(fields)\r\n")
    }
    let pinAnswer = try await get("/pin/x", "")
    #expect(
      pinAnswer.hasPrefix("HTTP/1.1 403") && pinAnswer.contains("\"code\":\"step_up_required\"")
        && pinAnswer.contains("\"provider\":\"pin\",\"flow\":\"step_up\""))
    #expect(
      try await get("/pin/x", "Accept: text/html\r\n").contains(
        "Location: /auth/pin?flow=step_up&return_to=%2Fpin%2Fx\r\n"))
    #expect(try await get("/mail/x", "").hasPrefix("HTTP/1.1 200"))
    #expect(try await get("/ok?q=1", "").hasPrefix("HTTP/1.1 200"))
    let denied = try await get("/deny", "")
    #expect(denied.hasPrefix("HTTP/1.1 403") && denied.contains("\"code\":\"not_today\""))
    #expect(try await get("/more", "").contains("\"code\":\"step_up_required\""))
    let fault = try await get("/fault", "")
    #expect(fault.hasPrefix("HTTP/1.1 503") && fault.contains("\"code\":\"policy_error\"") && !fault.contains("\"no\""))

    // A step counts for the route's time, as a half-open interval.
    let stepped = String(repeating: "P", count: 43)
    gateway.sessions.put(
      stepped,
      TestGateway.snapshot(
        token: stepped, clock: gateway.clock, passed: [PassedStep(provider: pin, at: gateway.clock.now())]))
    let ask = {
      try await gateway.talk("GET /pin/x HTTP/1.1\r\nHost: localhost\r\nCookie: moongate=\(stepped)\r\n\r\n")
    }
    #expect(try await ask().hasPrefix("HTTP/1.1 200"))
    gateway.clock.advance(by: .milliseconds(299_999))
    #expect(try await ask().hasPrefix("HTTP/1.1 200"))
    gateway.clock.advance(by: .milliseconds(1))
    try await until { (try? await ask().hasPrefix("HTTP/1.1 403")) ?? false }
    await gateway.stop()
  }

  /// Attack: requests that make `decide` exceed its budget again and again, on the event loops of all requests.
  @Test func aDecisionThatIsKilledAgainAndAgainIsNotRunForAWhile() async throws {
    let upstream = try await RecordingUpstream()
    let rule = FunctionName("routes[1].decide")
    let runs = Mutex(0)
    let gateway = try await TestGateway(
      routes: [.test("/**", ports: [upstream.port], decide: rule)],
      verdicts: [
        rule: { _ in
          runs.withLock { $0 += 1 }
          return .fault(PolicyFault(kind: .steps, location: nil, message: "stopped"))
        }
      ])
    for _ in 0..<100 {
      #expect(try await gateway.talk("GET /x HTTP/1.1\r\nHost: localhost\r\n\(cookie)\r\n").hasPrefix("HTTP/1.1 503"))
    }
    // Each loop counts separately.
    #expect(runs.withLock { $0 } <= 5 * System.coreCount)
    await gateway.stop()
  }
}

/// Waits up to ten seconds until the condition holds.
func until(_ condition: () async -> Bool, _ location: Testing.SourceLocation = #_sourceLocation) async throws {
  let end = ContinuousClock.now + .seconds(10)
  while ContinuousClock.now < end {
    if await condition() { return }
    try await Task.sleep(for: .milliseconds(10))
  }
  Issue.record("did not come to hold in ten seconds", sourceLocation: location)
}
