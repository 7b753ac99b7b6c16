import MoongateCore
import MoongateSDK
import NIOCore

/// A route with what one event loop needs to serve it.
final class RoutePlan {
  let route: Route
  /// Where requests of it are counted.
  let place: Int
  let targets: [UpstreamTarget]
  /// The route's own headers, as lines.
  let headerLines: [UInt8]
  /// Their names as careless services read them: the client's fields of these names are dropped.
  let headerNames: [[UInt8]]
  let timeout: TimeAmount
  /// The least of a request's body in each window; nil: no limit.
  let bodyRate: (bytes: Int, window: TimeAmount)?
  /// Where the next request begins to try.
  var next = 0
  /// How often in a row `decide` ran out of its budget, and until when it is not run.
  var kills = 0
  var pausedUntil = NIODeadline.uptimeNanoseconds(0)

  init(_ route: Route, place: Int, targets: [UpstreamTarget]) {
    self.route = route
    self.place = place
    self.targets = targets
    headerLines = route.headers.flatMap { Array("\($0.name): \($0.value)\r\n".utf8) }
    headerNames = route.headers.map { header in header.name.utf8.map { ByteClass.folded($0) } }
    timeout = .nanoseconds(
      max(1_000_000, route.timeout.wholeMilliseconds.multipliedReportingOverflow(by: 1_000_000).partialValue))
    bodyRate = route.bodyRate.map { ($0.bytes, .milliseconds($0.window.wholeMilliseconds)) }
  }

  /// Whether nothing is left to be judged: the usual case, which makes no facts.
  func admits(_ session: CachedSession?, _ entitlements: Result<Entitlements, PolicyFault>) -> Bool {
    if route.isOpen { return true }
    guard session != nil, route.decide == nil, route.requirement == nil, case .success(let known) = entitlements else {
      return false
    }
    return route.groups?.isMet(by: known) ?? true
  }

  /// Whether the route sets a header of this name itself.
  func replaces(_ bytes: Span<UInt8>, _ name: Range<Int>) -> Bool {
    headerNames.contains { wanted in
      guard wanted.count == name.count else { return false }
      for offset in wanted.indices where wanted[offset] != ByteClass.folded(bytes[name.lowerBound + offset]) {
        return false
      }
      return true
    }
  }
}

/// One generation as one event loop uses it.
final class GenerationPlan {
  let version: UInt64
  let generation: any PolicyGeneration
  let matcher: RouteMatcher
  let routes: [RoutePlan]
  let cookieName: StaticString
  let issuer: String
  /// Whether there are further root domains (`domains`), whose sessions have tokens of their own.
  let hasFurtherDomains: Bool
  /// How a 401 asks programs for a user and a password (RFC 7617), on routes that take tokens.
  let basicChallenge: String
  let trustedProxies: [AddressBlock]
  /// What every answer of the gateway's own says of https, as a line (RFC 6797 section 6.1); empty where it says
  /// nothing.
  let securityLine: [UInt8]
  /// A yes to a proxy that asks about a request of nobody's.
  private(set) lazy var forwardAnswerForNobody = CachedSession.forwardAnswer(
    IdentityHeaders(), assertion: Array("X-Moongate-Assertion: \r\n".utf8), securityLine)
  /// The share of requests whose spans are recorded, out of `UInt64.max`; nil: `tracing` is off.
  let tracedShare: UInt64?
  /// Of `limits.per_ip`; nil: no limit.
  let requestsPerSecondPerAddress: Int?
  private var evaluator: (any PolicyEvaluator)?

  /// The paths of the documents that providers publish.
  let wellKnown: [[UInt8]]
  /// Where a browser gets a token for a further root domain.
  static let handoff: StaticString = "/auth/handoff"
  /// The providers of the program and of the generation.
  let providers: ProviderRegistry
  /// Where a person verifies the email address of the account.
  private(set) lazy var verificationPage: String = {
    let senders = providers.all.filter { $0 is any CodeProvider && $0.descriptor.identifierKinds.contains(.email) }.map(
      \.descriptor.name)
    let verifying = generation.flow(for: .verify(.email))?.steps.first?.choices ?? []
    let ordered = verifying + senders.filter { generation.policies[$0] != nil } + senders
    return ordered.lazy.compactMap { self.providers.ownPage(of: $0) }.first ?? "/auth/account"
  }()

  init(
    version: UInt64, generation: any PolicyGeneration, providers: ProviderRegistry, place: (Route) -> Int,
    target: (Upstream) -> UpstreamTarget
  ) {
    self.version = version
    self.generation = generation
    let registry = generation.registry ?? providers
    self.providers = registry
    wellKnown = registry.wellKnown(in: generation).map { Array("/.well-known/\($0)".utf8) }
    matcher = RouteMatcher(generation.routes)
    routes = generation.routes.routes.map { RoutePlan($0, place: place($0), targets: $0.upstreams.map(target)) }
    cookieName = GatewayCookie.sessionName(generation.gateway)
    let settings = generation.gateway
    issuer = settings.publicURL.description
    hasFurtherDomains = settings.domains.count > 1
    basicChallenge = "Basic realm=\"\(settings.publicURL.host)\", charset=\"UTF-8\""
    trustedProxies = settings.trustedProxies
    securityLine = settings.strictTransportSecurity.map { Array("Strict-Transport-Security: \($0)\r\n".utf8) } ?? []
    requestsPerSecondPerAddress = settings.connectionLimits.requestsPerSecondPerAddress
    tracedShare = settings.tracing.map { $0.sample >= 1 ? .max : UInt64($0.sample * Double(UInt64.max)) }
  }

  var settings: GatewaySettings { generation.gateway }

  /// Whether the session's token is good for requests to the host.
  func accepts(_ session: CachedSession, at host: HostName) -> Bool {
    let session = session.snapshot.session
    return hasFurtherDomains ? settings.accepts(session, at: host.name) : session.domain == nil
  }

  /// This event loop's evaluator, made when it is first needed.
  func evaluatorOfLoop() throws(PolicyFault) -> any PolicyEvaluator {
    if let evaluator { return evaluator }
    let made = try generation.makeEvaluator()
    evaluator = made
    return made
  }
}
