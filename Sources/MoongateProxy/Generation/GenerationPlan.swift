import MoongateCore
import MoongateSDK
import NIOCore

/// A generation as used by one event loop.
final class GenerationPlan {
  let version: UInt64
  let generation: any PolicyGeneration
  let matcher: RouteMatcher
  let routes: [RoutePlan]
  let cookieName: StaticString
  /// The name of the session cookie of frames; nil if no route may be shown in one.
  let framedCookieName: StaticString?
  let issuer: String
  /// The host of public_url, where the sign-in pages are.
  let signInHost: String
  /// The host of public_url, for requests that name none.
  let home: RequestHost?
  /// Whether there are additional root domains (`domains`), whose sessions have separate tokens.
  let hasFurtherDomains: Bool
  /// The challenges of a 401 on routes that accept tokens, in one field line (RFC 9110 section 11.6.1). nginx passes on
  /// only one line, and git needs Basic (RFC 7617).
  let challenges: String
  let trustedProxies: [AddressBlock]
  /// The web origins that may read answers of the API.
  let corsOrigins: [String]
  /// The HSTS header line of the gateway's own responses (RFC 6797 section 6.1); empty if it is disabled.
  let securityLine: [UInt8]
  /// The names of the identity headers of all routes.
  let identityHeaderNames: [String]
  /// The forward-auth "allow" response for an anonymous request.
  private(set) lazy var anonymousForwardAnswer = IdentityHeaders().forwardAnswer(
    identityHeaderNames, assertion: Array("X-Moongate-Assertion: \r\n".utf8), securityLine)
  /// The share of requests whose spans are recorded, out of `UInt64.max`; nil if `tracing` is off.
  let tracedShare: UInt64?
  /// The limit of `limits.per_ip`; nil for no limit.
  let requestsPerSecondPerAddress: Int?
  private var evaluator: (any PolicyEvaluator)?

  /// The paths of the documents that providers publish.
  let wellKnown: [[UInt8]]
  /// The paths of the documents that describe this gateway as an OpenID provider, at `signInHost`; empty without apps.
  let discovery: [[UInt8]]
  /// The page where a browser gets a session token for another root domain.
  static let handoff: StaticString = "/auth/handoff"
  /// The providers of the program and of the generation.
  let providers: ProviderRegistry
  /// The page where a user verifies the email address of the account.
  private(set) lazy var verificationPage = providers.verificationPage(in: generation)

  init(
    version: UInt64, generation: any PolicyGeneration, providers: ProviderRegistry, metricsIndex: (Route) -> Int,
    target: (Upstream) -> UpstreamTarget
  ) {
    self.version = version
    self.generation = generation
    let registry = generation.registry ?? providers
    self.providers = registry
    wellKnown = registry.wellKnown(in: generation).map { Array("/.well-known/\($0)".utf8) }
    discovery = generation.apps.apps.isEmpty ? [] : OwnPaths.discovery.map { Array($0.utf8) }
    matcher = RouteMatcher(generation.routes)
    let names = generation.routes.identityHeaderNames
    identityHeaderNames = names
    // The others are removed on every route of every configuration.
    let removed = names.filter { !ReservedHeaders.contains($0) }.map { ByteClass.folded($0) }
    routes = generation.routes.routes.enumerated().map { index, route in
      RoutePlan(
        route, metricsIndex: metricsIndex(route), targets: route.upstreams.map(target),
        identity: RouteIdentity(
          route.identity, bearer: route.bearer.flatMap { generation.apps[$0] }, index: index + 1),
        removed: removed)
    }
    cookieName = GatewayCookies.sessionName(generation.gateway)
    framedCookieName = generation.routes.hasFrames ? GatewayCookies.framedSessionName(generation.gateway) : nil
    let settings = generation.gateway
    issuer = settings.publicURL.description
    signInHost = settings.publicURL.host
    home = RequestHost(settings.publicURL.authority)
    hasFurtherDomains = settings.domains.count > 1
    challenges = "Basic realm=\"\(settings.publicURL.host)\", charset=\"UTF-8\", Bearer"
    trustedProxies = settings.trustedProxies
    corsOrigins = settings.corsOrigins
    securityLine = settings.strictTransportSecurity.map { Array("Strict-Transport-Security: \($0)\r\n".utf8) } ?? []
    requestsPerSecondPerAddress = settings.connectionLimits.requestsPerSecondPerAddress
    tracedShare = settings.tracing.map { $0.sample >= 1 ? .max : UInt64($0.sample * Double(UInt64.max)) }
  }

  var settings: GatewaySettings { generation.gateway }

  /// Whether the session token is valid for requests to the host.
  /// - Parameter domain: the session's `domain`, because a request does not need the rest of the session.
  func accepts(_ domain: SessionDomain?, at host: HostName) -> Bool {
    hasFurtherDomains ? settings.accepts(domain, at: host.name) : domain == nil
  }

  /// Whether a service of the route may not install a service worker over the whole host, because the sign-in pages are
  /// there.
  func keepsWorkerScope(of route: Route, at host: HostName) -> Bool {
    !route.allowsServiceWorker && host.name == signInHost
  }

  /// The evaluator of this event loop, created on first use.
  func evaluatorOfLoop() throws(PolicyFault) -> any PolicyEvaluator {
    if let evaluator { return evaluator }
    let made = try generation.makeEvaluator()
    evaluator = made
    return made
  }
}
