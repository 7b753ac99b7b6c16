import Logging
import MoongateCore
import MoongateSDK
import MoongateTesting
import NIOCore
import NIOEmbedded
import Testing

@testable import MoongateProxy

/// An authorizer without sockets, and the requests that it decides about.
///
/// Use without an `await`, which could change the thread: an embedded event loop is bound to its thread.
struct AccessFixture {
  static let token = TestGateway.token
  static let cookie = "Cookie: moongate=\(token)\r\n"
  private static let accept = "Accept: text/html\r\n"
  static let peer = ClientAddress(bytes: [192, 0, 2, 7]) ?? .unspecified
  static let decide = FunctionName("routes[1].decide")
  static let membership = FunctionName("accounts.groups.staff")

  let clock = ManualClock()
  let authorizer: Authorizer
  let proxy: Proxy
  private let loop: ProxyLoop

  /// - Parameter change: changes the generation, which otherwise has only the routes.
  init(_ routes: [Route], settings: GatewaySettings = .test(), change: (inout TestGeneration) -> Void = { _ in }) throws
  {
    var generation = TestGeneration(gateway: settings, routes: routes, flows: [], policies: [])
    change(&generation)
    let logger = CapturedLog().logger
    let sessions = FakeSessions()
    let active = ActiveGeneration(generation, at: clock.now())
    let keys = try KeyRing(master: Array(repeating: 7, count: 32))
    proxy = Proxy(
      ProxyDependencies(
        generation: active,
        sessions: SessionDirectory(store: sessions, clock: clock), watch: SessionWatch(store: sessions, logger: logger),
        activity: sessions, keys: keys, clock: clock,
        random: SeededRandom(), audit: AuditTrail(store: FakeAudit(), logger: logger), logger: logger,
        providers: try ProviderRegistry([StubPad(), StubMail()]),
        tokens: AccessTokenDirectory(
          store: try MemoryStore.make(), generations: active, keys: keys, clock: clock, random: SeededRandom(),
          logger: logger)))
    loop = proxy.loop(for: EmbeddedEventLoop())
    authorizer = loop.currentAuthorizer()
  }

  // MARK: requests

  /// A proxied request.
  func proxied(
    _ target: String = "/x", _ fields: String = "", method: String = "GET", host: String = "app.example.com",
    browser: Bool = true
  ) throws -> AccessRequest {
    let accept = browser ? Self.accept : ""
    let head = try Self.head("\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\n\(accept)\(fields)\r\n")
    let name = try #require(HostName(host))
    return AccessRequest(
      head, normalPath: try Self.normal(head, head.path),
      origin: RequestOrigin(address: Self.peer, isSecure: true, host: name))
  }

  /// The same request, about which a proxy asks.
  func asked(
    _ target: String = "/x", _ fields: String = "", method: String = "GET", host: String = "app.example.com",
    browser: Bool = true
  ) throws -> AccessRequest {
    let accept = browser ? Self.accept : ""
    let own = "Host: moongate\r\nX-Forwarded-Method: \(method)\r\nX-Forwarded-Proto: https\r\n"
    let head = try Self.head(
      "GET /auth/forward/caddy HTTP/1.1\r\n\(own)X-Forwarded-Host: \(host)\r\nX-Forwarded-Uri: \(target)\r\n\(accept)\(fields)\r\n"
    )
    let bytes = head.bytes.readableBytesUInt8Span
    let original = try OriginalRequest(.caddy, head, rest: 0..<0) { RequestHost(bytes, $0) }
    return AccessRequest(
      original, in: head, normalPath: try Self.normal(head, original.path), client: Self.peer)
  }

  private static func head(_ text: String) throws -> RequestHead {
    var decoder = RequestDecoder()
    var input = ByteBuffer(string: text)
    var spare: [HeadField] = []
    return try #require(try decoder.next(&input, spare: &spare))
  }

  private static func normal(_ head: RequestHead, _ path: Range<Int>) throws -> RequestPath {
    let path = RequestPath(head.bytes.readableBytesUInt8Span.extracting(path), taking: .all)
    return try #require(path)
  }

  // MARK: sessions

  /// Alice's session. The defaults are those of `TestGateway.snapshot`.
  func session(
    account: String = TestGateway.account, domain: String? = nil, isSuperseded: Bool = false,
    groups: Set<GroupName> = []
  ) -> CachedSession {
    let snapshot = TestGateway.snapshot(account: account, clock: clock, groups: groups)
    var session = snapshot.session
    session.domain = domain.map {
      SessionDomain(name: $0, home: TokenHash(of: "home".utf8), isSuperseded: isSuperseded)
    }
    return cached(SessionSnapshot(session: session, account: snapshot.account))
  }

  /// The service token `ci`.
  func serviceToken(networks: [AddressBlock] = []) -> CachedSession {
    let snapshot = TestGateway.snapshot(clock: clock)
    let token = AccessToken(
      id: "tk_1", name: "ci", owner: nil, networks: networks, createdAt: clock.now(), expiresAt: nil,
      hash: AccessTokenHash(key: "test", bytes: []))
    return cached(SessionSnapshot(session: snapshot.session, account: snapshot.account, token: token))
  }

  private func cached(_ snapshot: SessionSnapshot) -> CachedSession {
    CachedSession(key: SessionKey(hashing: Array(Self.token.utf8)), snapshot: snapshot)
  }

  // MARK: decisions

  /// - Parameter found: what the store answered about the session or token.
  func decide(
    _ request: AccessRequest, _ found: SessionCache.LookupResult? = nil, storeIsFresh: Bool = true
  ) -> AccessDecision {
    authorizer.authorize(
      request,
      at: AccessTime(now: clock.now(), storeIsFresh: storeIsFresh, monotonic: .uptimeNanoseconds(1_000_000_000)),
      found: found)
  }
}

extension AccessDecision {
  var grant: AccessGrant? { if case .pass(let grant) = outcome { grant } else { nil } }
  var refusal: RequestRefusal? { if case .refuse(let refusal) = outcome { refusal } else { nil } }
  var location: String? { if case .redirect(let location) = outcome { location } else { nil } }
  var loop: RedirectLoop? { if case .loops(let loop) = outcome { loop } else { nil } }
  var lookup: CredentialLookup? { if case .needsLookup(let lookup) = outcome { lookup } else { nil } }
  var isNoRoute: Bool { if case .noRoute = outcome { true } else { false } }

  /// The outcome in a form that is the same for the proxy and forward-auth: Location without the address to return to.
  var summary: String {
    switch outcome {
    case .pass(let grant):
      "pass \(grant.session?.snapshot.account.id ?? "-") \(grant.entitlements.groups) \(grant.dropsAuthorization)"
    case .redirect(let location): "redirect \(location.prefix { $0 != "?" })"
    case .noRoute: "no route"
    case .refuse(let refusal):
      "refuse \(refusal.code) \(refusal.detail.sorted { $0.key < $1.key }) \(refusal.sentence ?? "-")"
    case .loops(let loop): "loop \(loop.cause)"
    case .needsLookup(.session): "look up the session"
    case .needsLookup(.token): "look up the token"
    case .needsLookup(.bearer): "make the token for the service"
    }
  }
}
