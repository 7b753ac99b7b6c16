import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateProxy

/// Access by groups, and the groups that services and proxies receive.
@Suite(.timeLimit(.minutes(2))) struct GroupTests {
  private static var ops: GroupName { get throws { try GroupName(test: "ops") } }
  private static var staff: GroupName { get throws { try GroupName(test: "staff") } }
  private static let function = FunctionName("accounts.groups.staff")
  private static let claim = FunctionName("accounts.claims.plan")

  /// `ops` has members; `staff` is computed: accounts with a verified address of example.com.
  private static func rules(_ generation: inout TestGeneration) throws {
    generation.accounts.groups = [
      try ops: .members, try staff: .computed(function), try GroupName(test: "a,b"): .members,
    ]
    generation.accounts.claims = ["plan": claim]
    generation.conditions[function] = { facts in
      facts.account.isEmailVerified
        && facts.identifiers.contains { $0.kind == .email && $0.value.hasSuffix("@example.com") }
    }
    generation.claims[claim] = { _ in .text("new") }
  }

  private func request(_ path: String = "/", _ more: String = "", token: String = TestGateway.token) -> String {
    "GET \(path) HTTP/1.1\r\nHost: localhost\r\nCookie: moongate=\(token)\r\n\(more)\r\n"
  }

  private func gateway(_ routes: [Route], groups: Set<GroupName> = [], emailVerified: Bool = true) async throws
    -> TestGateway
  {
    let gateway = try await TestGateway(routes: routes, change: Self.rules)
    gateway.sessions.put(
      TestGateway.token, TestGateway.snapshot(clock: gateway.clock, emailVerified: emailVerified, groups: groups))
    return gateway
  }

  @Test func memberPassesAndUpstreamReceivesTheGroups() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway(
      [.test(ports: [upstream.port], groups: ["ops"])], groups: [try Self.ops, try GroupName(test: "a,b")])
    #expect(try await gateway.talk(request()).hasPrefix("HTTP/1.1 200"))
    #expect(upstream.all.contains("\r\nRemote-Groups: a%2Cb,ops,staff\r\n"), "\(upstream.all)")
    let claims = try Self.claims(in: upstream.all)
    #expect(claims["groups"] as? [String] == ["a,b", "ops", "staff"])
    #expect(claims["claims"] as? [String: String] == ["plan": "new"])
    await gateway.stop()
  }

  @Test func nonMemberIsForbiddenAndServiceIsNotAsked() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway([.test(ports: [upstream.port], groups: ["ops"])])
    for method in ["GET", "HEAD", "OPTIONS", "POST"] {
      let answer = try await gateway.talk(request().replacing("GET", with: method))
      #expect(answer.hasPrefix("HTTP/1.1 403"), "\(answer)")
      if method == "HEAD" { #expect(answer.hasSuffix("\r\n\r\n")) }
      if method == "GET" { #expect(answer.contains("\"code\":\"forbidden\"") && answer.contains("\"group\":\"ops\"")) }
    }
    #expect(upstream.all.isEmpty)
    await gateway.stop()
  }

  @Test func oneOfSeveralGroupsIsEnough() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway([.test(ports: [upstream.port], groups: ["ops", "staff"])])
    #expect(try await gateway.talk(request()).hasPrefix("HTTP/1.1 200"))
    gateway.sessions.change(TestGateway.token, TestGateway.snapshot(clock: gateway.clock, emailVerified: false))
    var answer = ""
    repeat { answer = try await gateway.talk(request()) } while answer.hasPrefix("HTTP/1.1 200")
    #expect(answer.hasPrefix("HTTP/1.1 403") && answer.contains("\"group\":[\"ops\",\"staff\"]"))
    await gateway.stop()
  }

  /// Attack: a step-up for a user without the group would ask for a passcode again and again.
  @Test func missingGroupIsRefusedBeforeAnyStep() async throws {
    let gateway = try await gateway([
      .test(ports: [1], requirement: .passed(ProviderName(test: "pin"), within: nil), groups: ["ops"])
    ])
    for more in ["", "Accept: text/html\r\n"] {
      let answer = try await gateway.talk(request("/", more))
      #expect(answer.hasPrefix("HTTP/1.1 403") && !answer.contains("Location:") && answer.contains("forbidden"))
    }
    await gateway.stop()
  }

  @Test func refusalPageReceivesTheUserAndTheRequestedURL() async throws {
    let seen = Seen()
    let gateway = try await TestGateway(
      routes: [.test(ports: [1], groups: ["ops"])],
      page: { refusal, visitor, _ in
        seen.visitor.withLock { $0 = visitor }
        return "<p>\(refusal.code.name)</p>"
      }, change: Self.rules)
    let answer = try await gateway.talk(request("/ops/x?a=1", "Accept: text/html\r\n"))
    #expect(answer.hasPrefix("HTTP/1.1 403") && answer.contains("<p>forbidden</p>"))
    let visitor = seen.visitor.withLock { $0 }
    #expect(visitor?.account.id == TestGateway.account && visitor?.address == "http://localhost/ops/x?a=1")
    await gateway.stop()
  }

  /// Attack: clients send group headers themselves, in every spelling that a service may read.
  @Test(
    arguments: [
      "Remote-Groups: ops", "remote-groups: ops", "REMOTE_GROUPS: ops", "Remote_Groups: ops", "remote.groups: ops",
      "Remote-Groups : ops",
      "X-Forwarded-Groups: ops", "X-WEBAUTH-GROUPS: ops", "Remote-Groups: ops\r\nRemote-Groups: ops",
      "Remote-Groups: staff,\r\n ops", "Remote-Groups: \(String(repeating: "ops,", count: 7000))",
      "Remote-Groups: \(String(repeating: "ops,", count: 16_384))",
      "Connection: Remote-Groups\r\nRemote-Groups: ops", "X-Moongate-Groups: ops", "REMOTE-groups:ops\0,staff",
    ]) func clientsCannotSetGroups(_ forged: String) async throws
  {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway([.test(ports: [upstream.port])])
    let answer = try await gateway.talk(request("/", forged + "\r\n"))
    if answer.hasPrefix("HTTP/1.1 200") {
      #expect(upstream.all.contains("Remote-Groups: staff\r\n"))
      // The base64 of the signed assertion may hold any three letters.
      let lines = upstream.all.lowercased().split(separator: "\r\n").filter { !$0.hasPrefix("x-moongate-assertion:") }
      #expect(!lines.contains { $0.contains("ops") }, "\(upstream.all)")
    } else {
      #expect(answer.hasPrefix("HTTP/1.1 400") || answer.hasPrefix("HTTP/1.1 431"))
      #expect(upstream.all.isEmpty)
    }
    await gateway.stop()
  }

  /// Attack: a failing function must neither admit a user nor remove a group silently, because services also refuse by
  /// group.
  @Test func failingFunctionIs503AndNeverFewerGroups() async throws {
    let fault = PolicyFault(kind: .error, location: SourceLocation(file: "accounts.lua", line: 3), message: "no luck")
    @Sendable func failing(facts: Facts) throws(PolicyFault) -> Bool { throw fault }
    let upstream = try await RecordingUpstream()
    let gateway = try await TestGateway(
      routes: [
        .test("/open/**", ports: [upstream.port], open: true),
        .test("/ops/**", ports: [upstream.port], groups: ["ops"]),
        .test(ports: [upstream.port]),
      ],
      change: { generation in
        try Self.rules(&generation)
        generation.conditions[Self.function] = failing
      })
    gateway.sessions.put(TestGateway.token, TestGateway.snapshot(clock: gateway.clock, groups: [try Self.ops]))
    for path in ["/ops/x", "/x"] {
      let answer = try await gateway.talk(request(path))
      #expect(answer.hasPrefix("HTTP/1.1 503") && answer.contains("policy_error"), "\(answer)")
    }
    #expect(upstream.all.isEmpty)
    // Open routes treat the user as anonymous.
    #expect(try await gateway.talk(request("/open/x")).hasPrefix("HTTP/1.1 200"))
    #expect(!upstream.all.contains("Remote-"))
    #expect(gateway.log.lines.contains { $0.contains("accounts.lua:3") })
    await gateway.stop()
  }

  /// Attack: an ended membership stays effective in a cache, in an assertion of the same minute, or in an open socket.
  @Test func endedMembershipTakesEffectWithinASecond() async throws {
    let echo = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    let upstream = try await RecordingUpstream { received in
      received.hasPrefix("GET /ws")
        ? (RecordingUpstream.isComplete(received) ? .answer(echo) : nil) : RecordingUpstream.hello(received)
    }
    let gateway = try await gateway(
      [
        .test("/ws", ports: [upstream.port], upgrade: true, groups: ["ops"]),
        .test(ports: [upstream.port], groups: ["ops"]),
      ], groups: [try Self.ops])
    let socket = try await RawClient(port: gateway.port)
    try await socket.send(request("/ws", "Origin: http://localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"))
    #expect(try await socket.read { $0.hasSuffix("\r\n\r\n") }.text.hasPrefix("HTTP/1.1 101"))
    #expect(try await gateway.talk(request()).hasPrefix("HTTP/1.1 200"))
    gateway.sessions.change(TestGateway.token, TestGateway.snapshot(clock: gateway.clock))
    let changed = ContinuousClock.now
    var answer = ""
    repeat {
      let asked = ContinuousClock.now - changed
      answer = try await gateway.talk(request())
      #expect(asked < .seconds(1) || !answer.hasPrefix("HTTP/1.1 200"))
    } while answer.hasPrefix("HTTP/1.1 200")
    #expect(answer.hasPrefix("HTTP/1.1 403"))
    #expect(try await socket.read(for: 2).ended)
    await gateway.stop()
  }

  /// Attack: a group is removed from accounts.lua, and cached sessions keep it.
  @Test func removedGroupHasNoEffect() async throws {
    let upstream = try await RecordingUpstream()
    let gateway = try await gateway([.test(ports: [upstream.port])], groups: [try Self.ops])
    #expect(try await gateway.talk(request()).hasPrefix("HTTP/1.1 200"))
    #expect(upstream.all.contains("Remote-Groups: ops,staff\r\n"))
    var next = TestGeneration(gateway: .test(), routes: [.test(ports: [upstream.port])], flows: [], policies: [])
    next.accounts.groups = [try Self.staff: .members]
    gateway.active.activate(next, at: gateway.clock.now())
    #expect(try await gateway.talk(request()).hasPrefix("HTTP/1.1 200"))
    let last = try #require(upstream.all.components(separatedBy: "GET / ").last)
    #expect(!last.contains("Remote-Groups"))
    #expect(try Self.claims(in: last)["groups"] as? [String] == [])
    await gateway.stop()
  }

  @Test func functionsCostNothingPerRequest() async throws {
    let upstream = try await RecordingUpstream()
    let counted = Counted()
    let gateway = try await TestGateway(
      routes: [.test(ports: [upstream.port], groups: ["staff"])],
      change: { generation in
        try Self.rules(&generation)
        generation.conditions[Self.function] = { _ in
          counted.add()
          return true
        }
      })
    for _ in 0..<50 { #expect(try await gateway.talk(request()).hasPrefix("HTTP/1.1 200")) }
    #expect(counted.count <= ProcessInfo.processInfo.activeProcessorCount + 2)
    await gateway.stop()
  }

  @Test(arguments: ForwardAuthTests.dialects) func forwardAuthAlwaysReturnsTheGroups(_ dialect: String) async throws {
    var settings = GatewaySettings.test()
    settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)]
    let gateway = try await TestGateway(
      routes: [
        .test("/open/**", ports: [1], open: true), .test("/ops/**", ports: [1], groups: ["ops"]), .test(ports: [1]),
      ], settings: settings,
      change: Self.rules)
    let cookie = "Cookie: moongate=\(TestGateway.token)\r\n"
    func ask(_ target: String, _ more: String) async throws -> String {
      try await gateway.talk(ForwardAuthTests.text(ForwardAuthTests.question(dialect, "GET", target), more))
    }
    #expect(try await ask("/open/x", "").contains("\r\nRemote-Groups: \r\n"))
    #expect(try await ask("/x", cookie + "Remote-Groups: ops\r\n").contains("\r\nRemote-Groups: staff\r\n"))
    let refused = try await ask("/ops/x", cookie)
    #expect(refused.hasPrefix("HTTP/1.1 403") && refused.contains("\"group\":\"ops\"") && !refused.contains("Remote-"))
    await gateway.stop()
  }

  /// The claims of the first assertion in the text.
  private static func claims(in text: String) throws -> [String: Any] {
    let token = try #require(
      text.components(separatedBy: "X-Moongate-Assertion: ").dropFirst().first?.components(separatedBy: "\r\n").first)
    let body = Data(Base64URL.decode(String(token.split(separator: ".")[1])) ?? [])
    return try #require(try JSONSerialization.jsonObject(with: body) as? [String: Any])
  }
}

/// The arguments of a page.
private final class Seen: Sendable {
  let visitor = Mutex<RefusedVisitor?>(nil)
}

/// A thread-safe counter.
private final class Counted: Sendable {
  private let calls = Mutex(0)

  var count: Int { calls.withLock { $0 } }

  func add() { calls.withLock { $0 += 1 } }
}
