import HTTPTypes
import Hummingbird
import HummingbirdTesting
import MoongateCore
import MoongateHTTP
import MoongateSDK
import MoongateStore
import MoongateTesting
import NIOCore
import NIOPosix
import PhoneOTP
import Synchronization
import Testing

/// An admin listener that other machines can reach requires its token.
@Suite struct AdminTokenTests {
  private static let token = "0123456789abcdef-the-operators-token"
  private static let open = ListenAddress(host: "0.0.0.0", port: 9901)

  private func gateway(token: String? = Self.token, store: (any Store)? = nil) throws -> TestGateway {
    var generation = TestGeneration.gateway(for: [PhoneOTP()])
    generation.gateway.adminToken = token.map { SecretText($0) }
    return try TestGateway(providers: [PhoneOTP()], generation: generation, store: store)
  }

  private func application(_ gateway: TestGateway, listen: ListenAddress = Self.open) throws -> AdminApplication {
    AdminApplication(
      store: gateway.store, accounts: gateway.administration, tokens: gateway.serviceTokens,
      generations: gateway.generations,
      audit: gateway.audit,
      clock: gateway.clock,
      random: gateway.random, pages: try PageRenderer(logger: gateway.log.logger), address: listen,
      eventLoops: MultiThreadedEventLoopGroup.singleton, logger: gateway.log.logger, reload: { _ in [] },
      outbox: { [] },
      resetFactor: { _, _, _, _ in .unknown }, sendInvitation: AdminTests.sendsNothing)
  }

  private func ask(
    _ gateway: TestGateway, _ application: AdminApplication, _ path: String, _ method: HTTPRequest.Method = .get,
    host: String = "gateway.internal:9901",
    authorization: [String] = []
  ) async throws -> Response {
    var head = HTTPRequest(method: method, scheme: "http", authority: host, path: path)
    for value in authorization { head.headerFields.append(HTTPField(name: .authorization, value: value)) }
    return try await application.responder.respond(
      to: Request(head: head, body: .init(buffer: .init())), context: ConnectionContext(source: .testing(gateway)))
  }

  static let calls: [(HTTPRequest.Method, String)] = [
    (.get, "/policy"), (.post, "/policy/reload"), (.post, "/upgrade"), (.get, "/metrics"), (.get, "/locks"),
    (.delete, "/locks/x"), (.get, "/events"),
    (.get, "/decisions/dc_x"),
    (.get, "/outbox"), (.get, "/accounts"), (.delete, "/accounts/ac_x"), (.post, "/accounts/ac_x/lock"),
    (.get, "/invitations"), (.post, "/invitations"), (.delete, "/invitations/in_x"),
  ]

  /// Attack: anyone who can reach the port deletes accounts and reads codes.
  @Test(arguments: calls) func nothingIsDoneWithoutTheToken(_ method: HTTPRequest.Method, _ path: String) async throws {
    let gateway = try gateway()
    let application = try application(gateway)
    let wrong: [[String]] = [
      [], ["Bearer"], ["Bearer "], ["Bearer \(Self.token)x"], ["Bearer \(Self.token.dropLast())"],
      ["Basic \(Self.token)"], [Self.token],
      ["Bearer  \(Self.token)"], ["Bearer \(Self.token.uppercased())"],
    ]
    for authorization in wrong {
      let answer = try await ask(gateway, application, path, method, authorization: authorization)
      #expect(answer.status == .unauthorized, "\(authorization)")
      #expect(answer.headers[.wwwAuthenticate] == "Bearer")
    }
    let twice = try await ask(
      gateway, application, path, method, authorization: ["Bearer \(Self.token)", "Bearer \(Self.token)"])
    #expect(twice.status == .badRequest, "Authorization may appear only once")
    let right = try await ask(gateway, application, path, method, authorization: ["bearer \(Self.token)"])
    #expect(right.status != .unauthorized && right.status != .forbidden, "\(right.status)")
    #expect(!gateway.log.lines.contains { $0.contains(Self.token) })
  }

  @Test func healthNeedsNoTokenAndRevealsLittle() async throws {
    let store = try SQLiteStore.memory()
    let gateway = try gateway(store: store)
    let application = try application(gateway)
    for host in ["gateway.internal:9901", "10.0.0.5:9901"] {
      for path in ["/healthz", "/readyz"] {
        #expect(try await ask(gateway, application, path, host: host).status == .ok)
      }
    }
    // Paths that only begin like the health checks need the token.
    #expect(try await ask(gateway, application, "/healthz/").status != .ok)
    #expect(try await ask(gateway, application, "/policy?/healthz").status == .unauthorized)
    try store.close()
    // Attack: the fault reveals the database's host and user to a caller without the token.
    #expect(try await body(try await ask(gateway, application, "/readyz")).contains(#"["The store does not answer."]"#))
    let told = try await body(try await ask(gateway, application, "/readyz", authorization: ["Bearer \(Self.token)"]))
    #expect(told.contains("The store does not answer: "))
  }

  private struct Collector: ResponseBodyWriter {
    let take: @Sendable (ByteBuffer) -> Void

    mutating func write(_ buffer: ByteBuffer) async throws { take(buffer) }
    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
  }

  private func body(_ response: Response) async throws -> String {
    let text = Mutex("")
    try await response.body.write(Collector { part in text.withLock { $0 += String(buffer: part) } })
    return text.withLock { $0 }
  }

  /// Attack: the token is removed from gateway.lua, and the listener stays open to everyone until the next start.
  @Test func openListenerStillRequiresARemovedToken() async throws {
    let gateway = try gateway()
    let application = try application(gateway)
    var next = TestGeneration.gateway(for: [PhoneOTP()])
    next.id = "without"
    gateway.generations.activate(next, at: gateway.clock.now())
    #expect(try await ask(gateway, application, "/policy").status == .unauthorized)
    #expect(try await ask(gateway, application, "/policy", authorization: ["Bearer \(Self.token)"]).status == .ok)
    next.id = "other"
    next.gateway.adminToken = SecretText("another-token-of-some-length")
    gateway.generations.activate(next, at: gateway.clock.now())
    #expect(
      try await ask(gateway, application, "/policy", authorization: ["Bearer \(Self.token)"]).status == .unauthorized)
    #expect(
      try await ask(gateway, application, "/policy", authorization: ["Bearer another-token-of-some-length"]).status
        == .ok)
  }

  @Test func openListenerWithoutATokenRefusesEveryRequest() async throws {
    let gateway = try gateway(token: nil)
    let application = try application(gateway)
    for host in ["10.0.0.5:9901", "localhost:9901", "127.0.0.1:9901"] {
      #expect(try await ask(gateway, application, "/policy", host: host).status == .unauthorized)
    }
    #expect(try await ask(gateway, application, "/healthz", host: "10.0.0.5:9901").status == .ok)
  }

  @Test func onLoopbackTheTokenIsAskedForToo() async throws {
    let gateway = try gateway()
    let application = try application(gateway, listen: ListenAddress(host: "127.0.0.1", port: 9901))
    #expect(try await ask(gateway, application, "/policy", host: "127.0.0.1:9901").status == .unauthorized)
    #expect(
      try await ask(gateway, application, "/policy", host: "127.0.0.1:9901", authorization: ["Bearer \(Self.token)"])
        .status == .ok)
  }

  private static let reading = "reading-0123456789abcdef"
  private static let acting = "acting-0123456789abcdef"

  private func named() throws -> TestGateway {
    var generation = TestGeneration.gateway(for: [PhoneOTP()])
    generation.gateway.adminTokens = [
      AdminToken(name: "grafana", role: .read, secret: SecretText(Self.reading)),
      AdminToken(name: "ravi", role: .act, secret: SecretText(Self.acting)),
    ]
    return try TestGateway(providers: [PhoneOTP()], generation: generation)
  }

  /// Attack: a read-only token, as a dashboard has, unlocks an account, reads a code from the outbox or exports an
  /// account's data.
  @Test(arguments: [
    (HTTPRequest.Method.post, "/policy/reload"), (.delete, "/locks/x"), (.delete, "/accounts/ac_x"),
    (.post, "/accounts/ac_x/lock"),
    (.post, "/accounts/ac_x/unlock"), (.post, "/accounts/ac_x/disable"), (.delete, "/accounts/ac_x/sessions"),
    (.delete, "/accounts/ac_x/factors/pin"), (.get, "/outbox"), (.get, "/outbox?x=1"), (.head, "/outbox"),
    (.get, "/accounts/ac_x/export"),
  ]) func readingTokenMayNotAct(_ method: HTTPRequest.Method, _ path: String) async throws {
    let gateway = try named()
    let application = try application(gateway)
    let reading = try await ask(gateway, application, path, method, authorization: ["Bearer \(Self.reading)"])
    #expect(reading.status == .forbidden)
    let acting = try await ask(gateway, application, path, method, authorization: ["Bearer \(Self.acting)"])
    #expect(acting.status != .forbidden && acting.status != .unauthorized, "\(acting.status)")
  }

  @Test func readingTokenMayRead() async throws {
    let gateway = try named()
    let application = try application(gateway)
    for path in ["/policy", "/metrics", "/locks", "/events", "/accounts", "/openapi.json"] {
      #expect(
        try await ask(gateway, application, path, authorization: ["Bearer \(Self.reading)"]).status == .ok, "\(path)")
      #expect(try await ask(gateway, application, path).status == .unauthorized, "\(path)")
    }
  }

  @Test func everyOperationIsAuditedWithTheTokensName() async throws {
    let gateway = try named()
    let application = try application(gateway)
    let now = gateway.clock.now()
    _ = try await gateway.store.apply([.createAccount(Account(id: "ac_1", createdAt: now, lastSeenAt: now))], at: now)
    let acts: [(HTTPRequest.Method, String, AuditEvent.Kind)] = [
      (.post, "/policy/reload", .reloadRequested), (.post, "/upgrade", .upgradeRequested),
      (.post, "/accounts/ac_1/lock", .accountLocked),
      (.post, "/accounts/ac_1/unlock", .accountUnlocked),
      (.post, "/accounts/ac_1/disable", .accountDisabled), (.delete, "/accounts/ac_1/sessions", .sessionEnded),
      (.get, "/accounts/ac_1/export", .accountExported), (.delete, "/accounts/ac_1", .accountDeleted),
    ]
    for (method, path, kind) in acts {
      _ = try await ask(gateway, application, path, method, authorization: ["Bearer \(Self.acting)"])
      let event = try #require(try await gateway.audit.events(limit: 1).first)
      #expect(
        event.kind == kind && event.detail["operator"] == "ravi" && event.detail["by"] == "admin listener",
        "\(path): \(event)")
    }
  }

  /// Attack: a program guesses tokens. After too many wrong ones its address is refused even with the right token;
  /// other addresses are not affected.
  @Test func wrongTokensAreBounded() async throws {
    let gateway = try named()
    let application = try application(gateway)
    for _ in 0..<1_000 {
      #expect(
        try await ask(gateway, application, "/policy", authorization: ["Bearer wrong-0123456789abcdef"]).status
          == .unauthorized)
    }
    let right = ["Bearer \(Self.acting)"]
    let refused = try await ask(gateway, application, "/policy", authorization: right)
    #expect(refused.status == .tooManyRequests && refused.headers[.retryAfter] == "60")
    #expect(try await ask(gateway, application, "/healthz").status == .ok)
    let metrics = AdminTokenFailuresProbe.names
    gateway.clock.advance(by: .seconds(60))
    let text = try await body(try await ask(gateway, application, "/metrics", authorization: right))
    #expect(metrics.allSatisfy { text.contains($0) }, "counted")
  }

  /// Metrics and their values after the test above.
  private enum AdminTokenFailuresProbe {
    static let names = ["moongate_admin_wrong_tokens_total 1000", "moongate_admin_turned_away_total 1"]
  }
}
