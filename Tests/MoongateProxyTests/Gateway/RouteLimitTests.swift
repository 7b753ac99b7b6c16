import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProxy

/// `rate` and `allow.networks`, byte by byte. The tests' client has the address 127.0.0.1.
@Suite(.timeLimit(.minutes(2))) struct RouteLimitTests {
  private static let cookie = "Cookie: moongate=\(TestGateway.token)"
  private static let handshake = "Connection: Upgrade\r\nUpgrade: websocket"

  private func gateway(_ routes: (Int) -> [Route], trusted: Bool = false) async throws -> (
    TestGateway, RecordingUpstream
  ) {
    let upstream = try await RecordingUpstream()
    var settings = GatewaySettings.test()
    if trusted { settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)] }
    return (try await TestGateway(routes: routes(upstream.port), settings: settings), upstream)
  }

  private func ask(_ gateway: TestGateway, _ path: String, _ fields: String...) async throws -> String {
    let lines = (["GET \(path) HTTP/1.1", "Host: localhost"] + fields).joined(separator: "\r\n")
    return try await gateway.talk(lines + "\r\n\r\n")
  }

  private func status(_ answer: String) -> Int { Int(answer.dropFirst(9).prefix(3)) ?? 0 }

  // MARK: rate

  @Test func requestBeyondTheRateIsRefusedWithItsFields() async throws {
    let (gateway, upstream) = try await gateway {
      [
        Route.test("/api/**", ports: [$0], open: true).limited(to: 2, per: .ip),
        .test("/free/**", ports: [$0], open: true),
      ]
    }
    for _ in 1...2 {
      let answer = try await ask(gateway, "/api/x")
      #expect(status(answer) == 200 && !answer.contains("RateLimit"))
    }
    let answer = try await ask(gateway, "/api/x")
    #expect(answer.hasPrefix("HTTP/1.1 429 Too Many Requests\r\n") && answer.contains("\"code\":\"rate_limited\""))
    #expect(answer.contains("\r\nRateLimit-Policy: \"ip\";q=2;w=3600\r\n"))
    let left = try #require(answer.firstMatch(of: /\r\nRateLimit: "ip";r=0;t=(\d+)\r\n/)?.output.1)
    #expect(answer.contains("\r\nRetry-After: \(left)\r\n") && answer.contains("\"retry_after\":\(left)"))
    let seconds = try #require(Int(left))
    #expect((1...3_780).contains(seconds))
    #expect(status(try await ask(gateway, "/free/x")) == 200)
    #expect(upstream.all.components(separatedBy: "GET /api/x").count == 3)
    let families = await gateway.proxy.metrics()
    let metric = try #require(families.first { $0.name == "moongate_rate_limited_total" })
    #expect(metric.samples.map(\.value) == [1] && metric.samples[0].labels[0].value == "/api/**")
    await gateway.stop()
  }

  @Test func refusedBodyIsNotReadAsARequest() async throws {
    let (gateway, upstream) = try await gateway {
      [Route.test("/api/**", ports: [$0], open: true).limited(to: 1, per: .global), .test(ports: [$0], open: true)]
    }
    let body = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
    let post = "POST /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    let answers = try await gateway.talk(
      post + post + "GET /after HTTP/1.1\r\nHost: localhost\r\n\r\n", answers: 3)
    let statuses = answers.components(separatedBy: "HTTP/1.1 ").dropFirst().map { Int($0.prefix(3)) }
    #expect(statuses == [200, 429, 200])
    #expect(upstream.all.components(separatedBy: "GET /smuggled").count == 2, "the first request's body")
    #expect(upstream.all.contains("GET /after"))
    await gateway.stop()
  }

  /// Attack: a client uses a second connection, another event loop, or forward-auth for a fresh limit.
  @Test func connectionsAndForwardAuthShareOneCounter() async throws {
    let (gateway, _) = try await gateway(
      {
        [Route.test("/api/**", ports: [$0]).limited(to: 8, per: .account)]
      }, trusted: true)
    var statuses: [Int] = []
    for _ in 1...4 {
      statuses.append(status(try await ask(gateway, "/api/x", Self.cookie)))
      let question = ForwardAuthTests.question("caddy", scheme: "http", host: "localhost", "/api/x")
      statuses.append(status(try await gateway.talk(ForwardAuthTests.text(question, Self.cookie + "\r\n"))))
    }
    #expect(statuses == Array(repeating: 200, count: 8))
    #expect(status(try await ask(gateway, "/api/x", Self.cookie)) == 429)
    for dialect in ForwardAuthTests.dialects {
      let question = ForwardAuthTests.question(dialect, scheme: "http", host: "localhost", "/api/x")
      let answer = try await gateway.talk(ForwardAuthTests.text(question, Self.cookie + "\r\n"))
      #expect(
        status(answer) == 429 && answer.contains("\r\nRateLimit-Policy: \"account\";q=8;w=3600\r\n"), "\(dialect)")
      #expect(answer.contains("\r\nRetry-After: "))
    }
    #expect(status(try await ask(gateway, "/api/x")) == 401, "another address, or nobody")
    await gateway.stop()
  }

  @Test func refusalIsRecordedWithItsRule() async throws {
    let (gateway, _) = try await gateway { [Route.test(ports: [$0]).limited(to: 1, per: .account)] }
    #expect(status(try await ask(gateway, "/x", Self.cookie)) == 200)
    let answer = try await ask(gateway, "/x?secret=1", Self.cookie)
    let id = try #require(answer.firstMatch(of: /"decision_id":"(dc_[^"]+)"/)?.output.1)
    let event = try #require(try await gateway.audit.event(DecisionID(text: String(id))))
    #expect(event.code == "rate_limited" && event.account == TestGateway.account)
    #expect(event.detail["rule"] == "rate" && event.detail["at"] == "routes.lua:1" && event.detail["path"] == "/x")
    #expect(event.detail["per"] == "account" && event.detail["max"] == "1" && event.detail["window"] == "3600")
    #expect(event.detail["retry_after"].flatMap { Int($0) } != nil)
    await gateway.stop()
  }

  // MARK: allow.networks

  @Test func networkReachesTheServiceWithoutIdentity() async throws {
    let (gateway, upstream) = try await gateway { [Route.test(ports: [$0]).open(to: "127.0.0.0/8")] }
    #expect(status(try await ask(gateway, "/anonymous", "Remote-User: root", "X-Moongate-Assertion: x")) == 200)
    #expect(!upstream.all.contains("Remote-User") && !upstream.all.contains("X-Moongate-Assertion"))
    #expect(status(try await ask(gateway, "/signed-in", Self.cookie)) == 200)
    #expect(upstream.all.contains("\r\nRemote-User: ac_alice\r\n") && !upstream.all.contains(TestGateway.token))
    await gateway.stop()
  }

  /// Attack: a proxy sends no address, or one that cannot be read. And: a client puts an address of the network before
  /// its own.
  @Test func onlyTheAddressThatTheProxyNamesCounts() async throws {
    let (gateway, upstream) = try await gateway(
      { [Route.test(ports: [$0]).open(to: "127.0.0.0/8", "10.0.0.0/8")] }, trusted: true)
    for value in ["", "unknown", "203.0.113.7", "10.1.2.3, 203.0.113.7", "10.1.2.3, unknown", "127.0.0.1"] {
      let field = value.isEmpty ? "X-A: b" : "X-Forwarded-For: \(value)"
      #expect(status(try await ask(gateway, "/x", field)) == 401, "\(value)")
    }
    #expect(upstream.all.isEmpty)
    #expect(status(try await ask(gateway, "/x", "X-Forwarded-For: 203.0.113.7, 10.1.2.3")) == 200)
    let question = ForwardAuthTests.question("nginx", scheme: "http", host: "localhost", "/x")
    let inside = try await gateway.talk(ForwardAuthTests.text(question, "X-Forwarded-For: 10.1.2.3\r\n"))
    #expect(status(inside) == 200 && inside.contains("\r\nRemote-User: \r\n"))
    #expect(status(try await gateway.talk(ForwardAuthTests.text(question, "X-Forwarded-For: 11.1.2.3\r\n"))) == 401)
    #expect(status(try await gateway.talk(ForwardAuthTests.text(question))) == 401)
    await gateway.stop()
  }

  /// Attack: a page of another site, in the browser of a user in the network, opens a WebSocket. No cookie is needed.
  @Test(arguments: [
    ("Origin: http://evil.example", 403), ("Origin: null", 403), ("Sec-Fetch-Site: cross-site", 403),
    ("Origin: http://localhost", 200), ("Sec-Fetch-Site: same-origin\r\nOrigin: http://localhost", 200),
    ("X-A: b", 200),
  ])
  func pageOfAnotherSiteOpensNoWebSocket(_ field: String, _ expected: Int) async throws {
    let (gateway, upstream) = try await gateway {
      [Route.test(ports: [$0], upgrade: true).open(to: "127.0.0.0/8")]
    }
    // The recording service answers with 200, which is enough: the request was allowed.
    #expect(status(try await ask(gateway, "/ws", Self.handshake, field)) == expected)
    #expect(upstream.all.isEmpty == (expected == 403))
    await gateway.stop()
  }
}
