import Foundation
import HTTPTypes
import Logging
import MoongateCore
import MoongateSDK
import MoongateTesting
import NIOCore
import NIOHTTPTypes
import NIOPosix

@testable import MoongateProxy

/// A complete data path on a loopback port, with a controllable store and a small inner handler.
final class TestGateway: Sendable {
  static let token = String(repeating: "T", count: 43)
  static let account = "ac_alice"

  let port: Int
  let proxy: Proxy
  let sessions: FakeSessions
  let clock: ManualClock
  let keys: KeyRing
  let active: ActiveGeneration
  let audit: AuditTrail
  /// The store of access tokens.
  let store: any Store
  /// The apps of the generation; nil if it has none.
  let apps: Apps?
  let log = CapturedLog()
  private let channel: any Channel
  private let watching: Task<Void, Never>

  init(
    routes: [Route], settings: GatewaySettings = .test(), verdicts: [FunctionName: @Sendable (Facts) -> Verdict] = [:],
    page: RefusalPage? = nil, errorPage: ErrorPage? = nil, change: (inout TestGeneration) throws -> Void = { _ in }
  ) async throws {
    var generation = TestGeneration(gateway: settings, routes: routes, flows: [], policies: [])
    generation.verdicts = verdicts
    try change(&generation)
    let logger = log.logger
    let clock = ManualClock()
    let sessions = FakeSessions()
    let active = ActiveGeneration(generation, at: clock.now())
    let watch = SessionWatch(store: sessions, logger: logger)
    keys = try KeyRing(master: Array(repeating: 7, count: 32))
    audit = AuditTrail(store: FakeAudit(), logger: logger)
    store = try MemoryStore.make()
    apps =
      generation.apps.apps.isEmpty
      ? nil
      : Apps(
        store: store, generations: active, providers: try ProviderRegistry([StubPad(), StubMail()]), keys: keys,
        clock: clock, random: SystemRandom(), signing: SigningKeys(keys, store: store, at: clock.now()), audit: audit)
    proxy = Proxy(
      ProxyDependencies(
        generation: active, sessions: SessionDirectory(store: sessions, clock: clock), watch: watch, activity: sessions,
        keys: keys, clock: clock,
        random: SeededRandom(), audit: audit, logger: logger, providers: try ProviderRegistry([StubPad(), StubMail()]),
        tokens: AccessTokenDirectory(
          store: store, generations: active, keys: keys, clock: clock, random: SystemRandom(), logger: logger),
        apps: apps),
      page: page, errorPage: errorPage)
    self.active = active
    self.clock = clock
    self.sessions = sessions
    watching = Task { await watch.run() }
    let proxy = proxy
    channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try proxy.serve(channel, tls: nil) { channel, _ in
            try channel.pipeline.syncOperations.addHandler(InnerHandler())
          }
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    port = channel.localAddress?.port ?? 0
    sessions.put(Self.token, Self.snapshot(clock: clock))
    while !watch.isFresh { try await Task.sleep(for: .milliseconds(2)) }
  }

  deinit { watching.cancel() }

  /// The operator's management of tokens.
  var tokens: ServiceTokens { ServiceTokens(store: store, keys: keys, clock: clock, random: SystemRandom()) }

  /// A new service token in the form that a program sends.
  func token(
    _ name: String = "ci", groups: [String] = [], expires: String? = nil, networks: [String] = []
  ) async throws -> (id: String, text: String) {
    let made = try await tokens.create(
      ServiceTokens.NewToken(
        name: name, groups: groups, expires: expires, networks: networks, rules: active.current.accounts))
    return (made.token.id, made.secret.reveal())
  }

  /// Notifies a change of a token, like the store.
  func announce(_ id: String) async {
    await proxy.forget(
      SessionChanges(latest: 0, tokens: [AccessToken.announcement(of: id)], accounts: [], isIncomplete: false))
  }

  /// Checks the timeouts of all connections as they are after the time.
  func checkTimes(after time: TimeAmount) async throws {
    let proxy = proxy
    for eventLoop in MultiThreadedEventLoopGroup.singleton.makeIterator() {
      try await eventLoop.submit {
        let loop = proxy.loop(for: eventLoop)
        loop.checkTimes(at: loop.now + time)
      }.get()
    }
  }

  func stop() async {
    watching.cancel()
    try? await channel.close()
  }

  static func snapshot(
    token: String = TestGateway.token, account: String = TestGateway.account, clock: ManualClock,
    lifetime: Duration = .seconds(3600),
    idle: Duration = .seconds(600), passed: [PassedStep]? = nil, name: String? = "Alice", emailVerified: Bool = true,
    groups: Set<GroupName> = []
  ) -> SessionSnapshot {
    let now = clock.now()
    let phone = Identifier(kind: .phone, value: "+919999999999", display: "+91 99999 99999")
    let email = Identifier(kind: .email, value: "alice@example.com", display: "alice@example.com")
    return SessionSnapshot(
      session: Session(
        id: "se_1", token: TokenHash(of: token.utf8), account: account, createdAt: now, expiresAt: now + lifetime,
        idle: idle, lastSeenAt: now,
        passed: passed ?? [PassedStep(provider: ProviderName(test: "phone_otp"), at: now)], userAgent: nil),
      account: Account(
        id: account, firstName: name, lastName: nil, createdAt: now, lastSeenAt: now,
        identifiers: [
          HeldIdentifier(identifier: phone, verifiedAt: now),
          HeldIdentifier(identifier: email, verifiedAt: emailVerified ? now : nil),
        ], groups: groups))
  }

  /// Sends the bytes on a new connection and reads until the number of responses is complete or the connection ends.
  func talk(_ text: String, answers: Int = 1, for seconds: Double = 5) async throws -> String {
    let client = try await RawClient(port: port)
    try await client.send(text)
    // The response to HEAD ends with its head.
    if text.hasPrefix("HEAD ") { return try await client.read(for: seconds) { $0.contains("\r\n\r\n") }.text }
    return try await client.answers(answers, for: seconds)
  }

  /// The same until the gateway closes the connection.
  func talkToEnd(_ text: String, for seconds: Double = 5) async throws -> (text: String, ended: Bool) {
    let client = try await RawClient(port: port)
    try await client.send(text)
    return try await client.read(for: seconds)
  }
}

extension Route {
  static func test(
    _ path: String = "/**", host: String? = nil, methods: Set<String>? = nil, ports: [Int], open: Bool = false,
    requirement: Requirement? = nil,
    flow: String = "login", decide: FunctionName? = nil, timeout: Duration = .seconds(30), upgrade: Bool = false,
    headers: [(name: String, value: String)] = [], bodyLimit: Int? = nil,
    bodyRate: BodyRate? = nil, groups: [String] = [], tokens: RouteTokens? = nil, serviceWorker: Bool = false,
    http2: Bool = false
  ) -> Route {
    let parts = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    let upstreams = ports.map { port in
      var upstream = Upstream(isSecure: false, host: "127.0.0.1", port: port)
      upstream.usesHTTP2 = http2
      return upstream
    }
    return Route(
      host: host,
      path: PathPattern(text: path, segments: parts.map { $0 == "**" ? .anySegments : .glob(Array($0.utf8)) }),
      methods: methods,
      upstreams: upstreams, isOpen: open, flow: flow,
      requirement: requirement,
      decide: decide, timeout: timeout, allowsUpgrade: upgrade, headers: headers, bodyLimit: bodyLimit,
      bodyRate: bodyRate,
      groups: groups.isEmpty ? nil : GroupRequirement(anyOf: groups.compactMap(GroupName.init(rawValue:))),
      tokens: tokens, allowsServiceWorker: serviceWorker, location: SourceLocation(file: "routes.lua", line: 1))
  }
}

/// Answers requests to the gateway itself with a description of the request; `?lead=…` with a redirect.
private final class InnerHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPRequestPart
  typealias OutboundOut = HTTPResponsePart

  private var head: HTTPRequest?
  private var body = ""

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): self.head = head
    case .body(let bytes): body += String(buffer: bytes)
    case .end:
      guard let head else { return }
      let text = "own \(head.method) \(head.path ?? "") \(head.authority ?? "") \(body)"
      let isChunked = head.path?.contains("chunked") ?? false
      var response = HTTPResponse(status: .ok)
      if let lead = head.path?.components(separatedBy: "lead="), lead.count == 2 {
        response.status = .seeOther
        response.headerFields[.location] = lead[1]
      }
      if !isChunked { response.headerFields[.contentLength] = String(text.utf8.count) }
      context.write(wrapOutboundOut(.head(response)), promise: nil)
      context.write(wrapOutboundOut(.body(ByteBuffer(string: text))), promise: nil)
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
      body = ""
    }
  }
}
