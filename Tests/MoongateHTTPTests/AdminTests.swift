import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import MoongateCore
import MoongateDelivery
import MoongateHTTP
import MoongateSDK
import MoongateStore
import MoongateTesting
import NIOCore
import NIOPosix
import PhoneOTP
import Synchronization
import Testing

/// The admin listener.
@Suite struct AdminTests {
  /// The problems that the next reload reports, and the number of reloads.
  final class Reloads: Sendable {
    let problems = Mutex<[ConfigurationProblem]>([])
    let count = Mutex(0)
  }

  static func run(
    _ gateway: TestGateway, reloads: Reloads = Reloads(), isEnding: @escaping @Sendable () -> Bool = { false },
    _ body: @escaping @Sendable (Client) async throws -> Void
  ) async throws {
    let application = AdminApplication(
      store: gateway.store, accounts: gateway.administration, tokens: gateway.serviceTokens,
      generations: gateway.generations,
      audit: gateway.audit,
      clock: gateway.clock,
      random: gateway.random,
      pages: try PageRenderer(logger: gateway.log.logger),
      eventLoops: MultiThreadedEventLoopGroup.singleton, logger: gateway.log.logger,
      reload: { _ in
        reloads.count.withLock { $0 += 1 }
        return reloads.problems.withLock { $0 }
      },
      outbox: {
        gateway.outbox.entries.map {
          OutboxEntry(
            id: "\($0.id)", at: $0.at, channel: $0.message.channel.rawValue, to: $0.message.to,
            subject: $0.message.subject, text: $0.message.text,
            code: $0.message.code)
        }
      },
      resetFactor: { provider, account, identity, client throws(StoreFault) in
        try await gateway.engine.resetFactor(provider, of: account, by: identity, client: client)
      },
      sendInvitation: { wanted, language, administration, client throws(StoreFault) in
        try await gateway.engine.sendInvitation(wanted, in: language, by: administration, client: client)
      }, isEnding: isEnding
    ).application
    try await application.test(.router) { client in
      let description = try await client.execute(uri: "/openapi.json", method: .get)
      try await body(
        Client(client: client, gateway: gateway, description: try APIDescription(String(buffer: description.body))))
    }
  }

  static func gateway(store: (any Store)? = nil) throws -> TestGateway {
    try TestGateway(providers: [PhoneOTP()], generation: .gateway(for: [PhoneOTP()]), store: store)
  }

  /// For listeners without an engine.
  static let sendsNothing: InvitationSender = { _, _, _, _ in .limited(until: Timestamp(milliseconds: 0)) }

  @Test func metricsReportGenerationsAndRefusals() async throws {
    let gateway = try Self.gateway()
    gateway.generations.refuse(
      ActiveGeneration.RefusedCandidate(
        id: nil, at: gateway.clock.now(),
        problems: [
          ConfigurationProblem(location: SourceLocation(file: "gateway.lua", line: 1), path: "", message: "no")
        ]))
    for code in ["policy_error", "no_route", "policy_error"] {
      gateway.audit.record(
        AuditEvent(id: DecisionID(from: gateway.random), at: gateway.clock.now(), kind: .refused, code: code))
    }
    try await Self.run(gateway) { client in
      let answer = try await client.send(.get, "/metrics")
      #expect(answer.status == 200)
      let lines = answer.text.split(separator: "\n")
      for line in [
        "moongate_generation_info{generation=\"test\"} 1", "moongate_candidates_refused_total 1",
        "moongate_candidate_problems 1",
        "# TYPE moongate_refusals_total counter", "moongate_refusals_total{code=\"no_route\"} 1",
        "moongate_refusals_total{code=\"policy_error\"} 2",
      ] { #expect(lines.contains(Substring(line)), "\(line)") }
    }
  }

  @Test func healthAndReadiness() async throws {
    let store = try SQLiteStore.memory()
    try await Self.run(try Self.gateway(store: store)) { client in
      let alive = try await client.send(.get, "/healthz")
      #expect(alive.status == 200)
      let ready = try await client.send(.get, "/readyz")
      #expect(ready.status == 200)
      #expect(ready["generation"] as? String == "test")
      try store.close()
      #expect(try await client.send(.get, "/healthz").status == 200)
      let down = try await client.send(.get, "/readyz")
      #expect(down.status == 503)
      #expect((down["reasons"] as? [String])?.count == 1)
    }
  }

  @Test func aGatewayThatStopsIsNotReady() async throws {
    let isEnding = Atomic<Bool>(false)
    try await Self.run(try Self.gateway(), isEnding: { isEnding.load(ordering: .relaxed) }) { client in
      #expect(try await client.send(.get, "/readyz").status == 200)
      isEnding.store(true, ordering: .relaxed)
      let answer = try await client.send(.get, "/readyz")
      #expect(answer.status == 503 && answer["reasons"] as? [String] == ["The gateway is stopping."])
      #expect(try await client.send(.get, "/healthz").status == 200)
    }
  }

  @Test func valuesOfTheActivePolicies() async throws {
    try await Self.run(try Self.gateway()) { client in
      let answer = try await client.send(.get, "/policy/values")
      #expect(
        answer["generation"] as? String == "test" && (answer["policies"] as? [Any])?.isEmpty == true, "\(answer.text)")
      #expect(try await client.send(.post, "/policy/values").status == 405)
    }
  }

  @Test func policyAndReload() async throws {
    let reloads = Reloads()
    let gateway = try Self.gateway()
    try await Self.run(gateway, reloads: reloads) { client in
      let policy = try await client.send(.get, "/policy")
      #expect(
        policy.text
          == #"{"active":"test","since":"2026-11-20T12:00:00Z","candidate_refused":null,"warnings":[],"restart_needed":[],"nodes":[],"shadow":null}"#
          + "\n")
      #expect(try await client.send(.post, "/policy/reload").status == 200)
      let problem = ConfigurationProblem(
        location: MoongateCore.SourceLocation(file: "policies/phone_otp.lua", line: 9), path: "limits.send.windw",
        message: "unknown field")
      reloads.problems.withLock { $0 = [problem] }
      gateway.generations.refuse(
        ActiveGeneration.RefusedCandidate(id: "9f3c", at: gateway.clock.now(), problems: [problem]))
      let refused = try await client.send(.post, "/policy/reload")
      #expect(refused.status == 422)
      let listed = #"[{"file":"policies/phone_otp.lua","line":9,"path":"limits.send.windw","message":"unknown field"}]"#
      #expect(refused.text.contains(listed))
      #expect(
        try await client.send(.get, "/policy").text.contains(
          #""candidate_refused":{"id":"9f3c","at":"2026-11-20T12:00:00Z","problems":\#(listed)}"#))
      #expect(reloads.count.withLock { $0 } == 2)
      #expect(try await client.send(.get, "/policy/reload").header("Allow") == "POST")
    }
  }

  @Test func aFactorIsReset() async throws {
    let http = try HTTPGateway()
    let gateway = http.gateway
    try await http.run { client in
      _ = try await client.register()
      let account = try #require(try await gateway.store.accounts(after: nil, limit: 1).first)
      let sealed = try ProviderRecord(bytes: [1], version: 1).sealed(for: "pin \(account.id)", by: gateway.keys)
      _ = try await gateway.store.apply(
        [.putProviderRecord(account: account.id, ProviderName(test: "pin"), sealed: sealed)], at: gateway.clock.now())
      try await Self.run(gateway) { admin in
        #expect(try await admin.send(.delete, "/accounts/\(account.id)/factors/pin").status == 204)
        #expect(try await gateway.store.account(account.id)?.credentials == [])
        #expect(try await gateway.store.sessions(of: account.id).isEmpty)
        let again = try await admin.send(.delete, "/accounts/\(account.id)/factors/pin")
        #expect(again.status == 404 && again.text.contains("The account has no factor of this provider."))
        #expect(try await admin.send(.delete, "/accounts/\(account.id)/factors/No!").status == 404)
        #expect(
          try await admin.send(.delete, "/accounts/ac_nobody/factors/pin").text.contains("There is no such account."))
      }
    }
  }

  @Test func locksAreListedAndLifted() async throws {
    let http = try HTTPGateway()
    let gateway = http.gateway
    try await http.run { client in
      _ = try await client.register()
      gateway.clock.advance(by: .seconds(900))
      let id = try await client.begin()
      let right = try #require(gateway.code(for: "+919999999999"))
      for _ in 1...5 {
        _ = try await client.call(
          .post, "/api/auth/flows/\(id)/submit", #"{"code":"\#(right == "000000" ? "000001" : "000000")"}"#)
      }
      #expect(try await client.call(.post, "/api/auth/flows/\(id)/submit", #"{"code":"\#(right)"}"#).status == 429)
      try await Self.run(gateway) { admin in
        let list = try await admin.send(.get, "/locks")
        #expect(list.status == 200)
        let lock = try #require(try JSONSerialization.jsonObject(with: Data(list.text.utf8)) as? [[String: Any]]).first
        #expect(lock.map { Set($0.keys).isSuperset(of: ["id", "limit", "provider", "since", "until"]) } == true)
        #expect(lock?["provider"] as? String == "phone_otp")
        #expect(lock?["limit"] as? String == "verify")
        #expect(lock?["until"] as? String == "2026-11-20T12:30:01Z")
        let name = try #require(lock?["id"] as? String)
        #expect(try await admin.send(.delete, "/locks/\(name)").status == 204)
        #expect(try await admin.send(.delete, "/locks/\(name)").problem() == "not_found")
        #expect(try await admin.send(.get, "/locks").text == "[]\n")
      }
      #expect(try await client.call(.post, "/api/auth/flows/\(id)/submit", #"{"code":"\#(right)"}"#).status == 200)
    }
  }

  @Test func eventsAndDecisions() async throws {
    let http = try HTTPGateway()
    try await http.run { client in
      _ = try await client.register()
      let refused = try await client.call(.get, "/api/auth/session")
      let id = try #require(refused["decision_id"] as? String)
      try await Self.run(http.gateway) { admin in
        let events = try await admin.send(.get, "/events")
        #expect(events.status == 200)
        #expect(events.text.hasPrefix(#"[{"id":"\#(id)""#))
        #expect(events.text.contains(#""kind":"session_started""#))
        #expect(!events.text.contains("9999999999"))
        let decision = try await admin.send(.get, "/decisions/\(id)")
        #expect(decision.status == 200)
        #expect(decision["code"] as? String == "unauthenticated")
        #expect(try await admin.send(.get, "/decisions/dc_none").problem() == "not_found")
      }
    }
  }

  @Test func theOutboxAsJSONAndAsAPage() async throws {
    let http = try HTTPGateway()
    try await http.run { client in
      _ = try await client.register()
      let code = try #require(http.gateway.code(for: "+919999999999"))
      try await Self.run(http.gateway) { admin in
        let list = try await admin.send(.get, "/outbox")
        let entry = try #require(try JSONSerialization.jsonObject(with: Data(list.text.utf8)) as? [[String: Any]]).first
        #expect(entry?.keys.sorted() == ["at", "channel", "code", "id", "subject", "text", "to"])
        #expect(entry?["code"] as? String == code)
        #expect(entry?["channel"] as? String == "sms")
        #expect(entry?["to"] as? String == "+919999999999")
        #expect((entry?["text"] as? String)?.hasSuffix("\n@localhost #\(code)") == true)
        let page = try await admin.send(.get, "/outbox", headers: [("Accept", "text/html")])
        #expect(page.header("Content-Type") == "text/html; charset=utf-8")
        #expect(page.text.contains("<p class=\"sent\">\(code)</p>"))
      }
    }
    var generation = TestGeneration.gateway(for: [PhoneOTP()])
    generation.gateway.providers = [:]
    try await Self.run(try TestGateway(providers: [PhoneOTP()], generation: generation)) { admin in
      let none = try await admin.send(.get, "/outbox")
      #expect(none.problem() == "not_found")
    }
  }

  @Test(arguments: [
    ("localhost", true), ("localhost:9901", true), ("127.0.0.1:9901", true), ("[::1]:9901", true), ("10.1.2.3", true),
    ("LOCALHOST.", true),
    ("evil.example", false), ("evil.example:9901", false), ("localhost.evil.example", false),
    ("127.0.0.1.evil.example", false), ("127.1", false),
    ("", false),
    ("localhost@evil", false),
  ])
  func adminAcceptsOnlyNamesThatCannotBeRebound(_ host: String, _ isOurs: Bool) async throws {
    let gateway = try Self.gateway()
    let application = AdminApplication(
      store: gateway.store, accounts: gateway.administration, tokens: gateway.serviceTokens,
      generations: gateway.generations,
      audit: gateway.audit,
      clock: gateway.clock,
      random: gateway.random,
      pages: try PageRenderer(logger: gateway.log.logger),
      eventLoops: MultiThreadedEventLoopGroup.singleton, logger: gateway.log.logger, reload: { _ in [] },
      outbox: { [] },
      resetFactor: { _, _, _, _ in .unknown }, sendInvitation: AdminTests.sendsNothing)
    for path in ["/outbox", "/policy", "/healthz", "/events"] {
      let request = Request(
        head: HTTPRequest(method: .get, scheme: "http", authority: host, path: path), body: .init(buffer: .init()))
      let response = try await application.responder.respond(
        to: request, context: ConnectionContext(source: .testing(gateway)))
      #expect(response.status.code == (isOurs ? 200 : 403), "\(path)")
    }
  }

  @Test func otherSitesChangeNothing() async throws {
    let reloads = Reloads()
    try await Self.run(try Self.gateway(), reloads: reloads) { client in
      for origin in ["https://evil.example", "null", "http://localhost:8080", "http://localhost.evil.example"] {
        for answer in [
          try await client.send(.post, "/policy/reload", headers: [("Origin", origin)]),
          try await client.send(.delete, "/locks/x", headers: [("Origin", origin)]),
        ] { #expect(answer.problem() == "origin_refused") }
      }
      #expect(reloads.count.withLock { $0 } == 0)
      #expect(try await client.send(.post, "/policy/reload", headers: [("Origin", "http://localhost")]).status == 200)
    }
  }
}
