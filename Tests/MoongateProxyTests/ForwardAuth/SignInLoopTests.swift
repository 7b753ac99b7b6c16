import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateProxy

/// A browser that repeatedly returns from sign-in without its session gets an explanation instead of an endless
/// redirect loop.
@Suite(.timeLimit(.minutes(2))) struct SignInLoopTests {
  private static let dead = String(repeating: "D", count: 43)

  private func lead(_ gateway: TestGateway, to place: String) async throws {
    #expect(
      try await gateway.talk("GET /auth/login?lead=\(place) HTTP/1.1\r\nHost: localhost\r\n\r\n").hasPrefix(
        "HTTP/1.1 303"))
  }

  private func arrive(
    _ gateway: TestGateway, _ fields: String = "", host: String = "localhost", path: String = "/home?a=1"
  ) async throws -> String {
    try await gateway.talk("GET \(path) HTTP/1.1\r\nHost: \(host)\r\nAccept: text/html\r\n\(fields)\r\n")
  }

  @Test(
    arguments: [
      ("", "localhost", "It blocks this site's cookies"),
      ("Cookie: moongate=a; moongate=b\r\n", "localhost", "two cookies of the same name"),
      ("Cookie: moongate=\(dead)\r\n", "localhost", "a sign-in that has ended"),
      ("", "127.0.0.1", "The sign-in of localhost is not sent to 127.0.0.1"),
    ]) func thirdReturnReportsTheCause(_ fields: String, _ host: String, _ cause: String) async throws
  {
    let gateway = try await TestGateway(
      routes: [.test(ports: [1])],
      page: { refusal, _, _ in "<p>\(refusal.code.name) \(refusal.sentence) \(refusal.decision)</p>" })
    for round in 1...3 {
      try await lead(gateway, to: "http://\(host)/home?a=1")
      let answer = try await arrive(gateway, fields, host: host)
      guard round == 3 else {
        #expect(answer.hasPrefix("HTTP/1.1 302"))
        continue
      }
      #expect(
        answer.hasPrefix("HTTP/1.1 401 Unauthorized\r\n") && answer.contains("text/html") && answer.contains(cause),
        "\(answer)")
      let id = try #require(answer.range(of: "dc_[A-Za-z0-9_-]+", options: .regularExpression))
      let event = try await gateway.audit.event(DecisionID(text: String(answer[id])))
      #expect(event?.detail["reason"]?.contains(cause) == true && event?.detail["path"] == "/home")
    }
    // What follows is a fresh attempt.
    #expect(try await arrive(gateway, fields, host: host).hasPrefix("HTTP/1.1 302"))
    await gateway.stop()
  }

  @Test func httpOnlyLoopIsReported() async throws {
    var settings = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "localhost", port: 443))
    settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)]
    let gateway = try await TestGateway(
      routes: [.test(ports: [1])], settings: settings, page: { refusal, _, _ in refusal.sentence })
    var answer = ""
    for _ in 1...3 {
      try await lead(gateway, to: "/home")
      // The same with forward-auth.
      answer = try await gateway.talk(
        ForwardAuthTests.text(
          ForwardAuthTests.question("caddy", scheme: "http", host: "localhost", "/home"), "Accept: text/html\r\n"))
    }
    #expect(
      answer.hasPrefix("HTTP/1.1 401") && answer.contains("Sign-in is for https") && !answer.contains("Location:"))
    await gateway.stop()
  }

  /// A client that arrives with a session, or that was not redirected, is in no loop.
  @Test func otherClientsAreNotInALoop() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(routes: [.test(ports: [upstream.port])])
    for _ in 0..<5 { #expect(try await arrive(gateway).hasPrefix("HTTP/1.1 302")) }
    for _ in 0..<2 {
      try await lead(gateway, to: "/home?a=1")
      #expect(try await arrive(gateway).hasPrefix("HTTP/1.1 302"))
    }
    try await lead(gateway, to: "/home?a=1")
    #expect(try await arrive(gateway, "Cookie: moongate=\(TestGateway.token)\r\n").hasPrefix("HTTP/1.1 200"))
    #expect(gateway.proxy.shared.redirectLoops.isEmpty)
    try await lead(gateway, to: "/home?a=1")
    #expect(try await arrive(gateway).hasPrefix("HTTP/1.1 302"))
    // Signing out and moving between gateway pages causes no loop.
    for path in ["/auth/logout?lead=/home?a=1", "/auth/login?lead=/auth/verify"] {
      for _ in 0..<4 {
        _ = try await gateway.talk("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try await arrive(gateway).hasPrefix("HTTP/1.1 302"))
      }
    }
    await gateway.stop()
  }

  /// The troubleshooting guide quotes sentences of the page.
  @Test func theManualQuotesThePage() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
      .deletingLastPathComponent()
    let text = { (path: String) in try String(contentsOf: root.appending(path: path), encoding: .utf8) }
    let section = try #require(
      try text("Documentation/guides/troubleshooting.md").components(separatedBy: "\n## Redirect loops\n").last)
    let quoted = try #require(section.components(separatedBy: "\n## ").first).matches(of: /(?m)^\| `([^`]+)` \|/).map {
      String($0.1)
    }
    let source = try text("Sources/MoongateProxy/Access/RedirectLoop.swift")
    #expect(quoted.count == 5)
    for sentence in quoted { #expect(source.contains(sentence), "nothing says `\(sentence)`") }
  }

  @Test func longAddressesThatDifferAtTheirEndsAreTwo() throws {
    let returns = RedirectLoopDetector()
    let client = try #require(ClientAddress(bytes: [192, 0, 2, 1]))
    let long = "/?q=" + String(repeating: "a", count: 15_000)
    for round in 1...3 {
      for end in ["1", "2"] { returns.expect(client, at: long + end, now: ManualClock.start) }
      returns.recordSignedInArrival(client, at: long + "2")
      #expect(!returns.bounced(client, at: long + "2", now: ManualClock.start), "it arrived")
      #expect(returns.bounced(client, at: long + "1", now: ManualClock.start) == (round == 3))
    }
  }

  @Test func memoryIsBoundedAndTimePasses() throws {
    let returns = RedirectLoopDetector()
    let start = ManualClock.start
    for index in 0..<20_000 {
      returns.expect(
        ClientAddress(bytes: [10, 0, UInt8(index >> 8), UInt8(index & 255)]) ?? .unspecified, at: "/", now: start)
    }
    let client = try #require(ClientAddress(bytes: [192, 0, 2, 1]))
    // A minute later there is space again, and later arrivals are not related to the sign-in.
    for round in 0..<5 {
      let now = start + .seconds(60 * (round + 1))
      returns.expect(client, at: "/", now: now)
      #expect(!returns.bounced(client, at: "/", now: now + .seconds(60)))
    }
    #expect(
      RedirectLoopDetector.place("https://a.example?x=1#f") == "/?x=1"
        && RedirectLoopDetector.place("/auth/verify?id=1") == nil)
    for place in ["/web/http://a.example//x", "/x?to=https://a.example/y", "/a%2Fb"] {
      #expect(RedirectLoopDetector.place(place) == place && RedirectLoopDetector.place("https://h:1\(place)") == place)
    }
  }
}
