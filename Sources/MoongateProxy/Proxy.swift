import Crypto
import Logging
import MoongateCore
import NIOCore
import NIOSSL
import Synchronization

/// The dependencies of the data path.
package struct ProxyDependencies: Sendable {
  package let generation: ActiveGeneration
  package let sessions: SessionDirectory
  /// nil if all access tokens are invalid.
  let tokens: AccessTokenDirectory?
  package let watch: SessionWatch
  /// Stores the last activity of sessions.
  package let activity: any SessionStore
  package let keys: KeyRing
  package let clock: any GatewayClock
  package let random: any RandomSource
  package let audit: AuditTrail
  package let logger: Logger
  let policyFaults: PolicyFaultLog
  /// The providers of the program, for the pages that users are redirected to.
  let providers: ProviderRegistry
  /// Receives the spans of requests.
  let spans: SpanQueue
  /// Evaluates requests in shadow mode while there is a candidate.
  let shadow: PolicyShadow?

  /// More than five parameters: one for each service.
  /// - Parameter policyFaults: receives errors of `decide`; nil to log them individually.
  package init(
    generation: ActiveGeneration, sessions: SessionDirectory, watch: SessionWatch, activity: any SessionStore,
    keys: KeyRing,
    clock: any GatewayClock, random: any RandomSource, audit: AuditTrail, logger: Logger,
    policyFaults: PolicyFaultLog? = nil,
    providers: ProviderRegistry = .none, tokens: AccessTokenDirectory? = nil, spans: SpanQueue = SpanQueue(),
    shadow: PolicyShadow? = nil
  ) {
    self.spans = spans
    self.shadow = shadow
    self.tokens = tokens
    self.providers = providers
    self.generation = generation
    self.sessions = sessions
    self.watch = watch
    self.activity = activity
    self.keys = keys
    self.clock = clock
    self.random = random
    self.audit = audit
    self.logger = logger
    self.policyFaults = policyFaults ?? PolicyFaultLog(logger: logger, clock: clock)
  }
}

/// The data path of the public listener.
///
/// It covers everything between the bytes of a client and of an upstream: decoding, judging, the session cache,
/// identity headers, and upstream connections. It contains no listener and no page: requests to the gateway's own paths
/// are passed on as `HTTPRequestPart`s.
package final class Proxy: Sendable {
  /// Creates the page of a refusal for browsers; nil if there is no page for it.
  /// - Parameters:
  ///   - visitor: the signed-in user, if the refusal depends on the user.
  ///   - languages: the request's `Accept-Language`.
  package typealias RefusalPage =
    @Sendable (_ refusal: Refusal, _ visitor: RefusedVisitor?, _ languages: String?) -> String?

  let dependencies: ProxyDependencies
  let assertions: AssertionKeys
  let addresses = AddressTable()
  let redirectLoops = RedirectLoopDetector()
  let page: RefusalPage?
  let ownPrefixes: [String]
  let accessLog: AccessLog?
  let upstreamFailures: UpstreamFailureLog
  let trust = CacheTrust()
  private let connections = Atomic<Int>(0)
  private let idleNanoseconds = Atomic<Int64>(250_000_000)
  private let loops = Mutex<[ObjectIdentifier: NIOLoopBound<ProxyLoop>]>([:])

  /// - Parameters:
  ///   - ownPrefixes: additional path prefixes that the gateway itself serves, for example `/mock-google`.
  ///   - accessLog: receives a line for each request; nil for no log.
  ///   - page: creates the page for refused browsers.
  package init(
    _ dependencies: ProxyDependencies, ownPrefixes: [String] = [], accessLog: AccessLog? = nil, page: RefusalPage? = nil
  ) {
    self.accessLog = accessLog
    self.dependencies = dependencies
    upstreamFailures = UpstreamFailureLog(logger: dependencies.logger, clock: dependencies.clock)
    self.ownPrefixes = ownPrefixes
    self.page = page
    assertions = AssertionKeys(dependencies.keys, now: dependencies.clock.now())
    dependencies.watch.subscribe { [weak self] changes in self?.apply(changes) }
  }

  /// The current public keys of `X-Moongate-Assertion` as a JWK set (RFC 7517), for `/.well-known/moongate/jwks.json`.
  package var keySet: String { assertions.keySet(at: dependencies.clock.now()) }

  /// Creates the handler of one client connection. Call on the channel's event loop.
  /// - Parameters:
  ///   - isSecure: whether the connection uses TLS.
  ///   - inner: called on the event loop before the connection's first request to the gateway itself. It adds handlers
  ///     that read `HTTPRequestPart` and write `HTTPResponsePart`.
  package func makeConnectionHandler(for channel: any Channel, isSecure: Bool, inner: @escaping () throws -> Void)
    -> ClientConnection
  {
    ClientConnection(loop: loop(for: channel.eventLoop), isSecure: isSecure, inner: inner)
  }

  /// Adds the handlers for a TLS connection, which serve HTTP/2 or HTTP/1.1 as negotiated. Call on the channel's event
  /// loop.
  /// - Parameter inner: like in `makeConnectionHandler`. It receives the channel of the connection or, for HTTP/2, of
  ///   the stream.
  package func addTLS(
    _ tls: ServerTLS, to channel: any Channel, inner: @escaping @Sendable (any Channel) throws -> Void
  ) throws {
    let loop = loop(for: channel.eventLoop)
    let handlers: [any ChannelHandler] = [
      ApplicationProtocolNegotiation(loop: loop), NIOSSLServerHandler(context: tls.context),
      TLSHandshakeHandler(loop: loop, inner: inner),
    ]
    try channel.pipeline.syncOperations.addHandlers(handlers)
  }

  /// The metrics of all event loops since the start.
  package func metrics() async -> [MetricFamily] {
    var metrics = EventLoopMetrics()
    for bound in loops.withLock({ Array($0.values) }) {
      if let more = try? await bound.eventLoop.submit({ bound.value.currentMetrics() }).get() { metrics.merge(more) }
    }
    var families = metrics.families
    if let counts = accessLog?.counts {
      families += [
        MetricFamily(.accessLogLinesTotal, counts.taken),
        MetricFamily(.accessLogDroppedTotal, counts.dropped),
      ]
    }
    return families
  }

  /// Logs and resets the suppressed upstream failures of past minutes.
  package func logSuppressedFailures() { upstreamFailures.logSuppressed() }

  /// Writes all waiting lines to the access log and closes it, at shutdown.
  package func endAccessLog() async {
    for bound in loops.withLock({ Array($0.values) }) {
      try? await bound.eventLoop.submit { bound.value.handOverLines() }.get()
    }
    accessLog?.end()
  }

  /// Counts a new connection until `connectionClosed`, even above the limit.
  /// - Returns: whether it is within the limit.
  func connectionOpened(limit: Int) -> Bool { connections.add(1, ordering: .relaxed).newValue <= limit }

  func connectionClosed() { connections.subtract(1, ordering: .relaxed) }

  /// The state of one event loop.
  func loop(for eventLoop: any EventLoop) -> ProxyLoop {
    let id = ObjectIdentifier(eventLoop)
    if let known = loops.withLock({ $0[id] }) { return known.value }
    let made = ProxyLoop(proxy: self, eventLoop: eventLoop)
    let bound = NIOLoopBound(made, eventLoop: eventLoop)
    loops.withLock { $0[id] = bound }
    return made
  }

  /// How long an idle HTTP/1.1 connection stays open after the listener has shut down. The next request on it is
  /// answered and is the last one.
  ///
  /// If a connection is closed at the moment when its client sends a request, that request is lost.
  package var idleWhileDraining: Duration {
    get { .nanoseconds(idleNanoseconds.load(ordering: .relaxed)) }
    set { idleNanoseconds.store(newValue.wholeNanoseconds, ordering: .relaxed) }
  }

  /// Sets whether event loops may use cached sessions. Otherwise every request reads the store.
  /// - Parameter isTrusted: false while another process, whose changes are not seen at once, uses the store.
  package func trustCaches(_ isTrusted: Bool) async {
    // The cache may be outdated.
    if isTrusted { await forget(SessionChanges(latest: 0, tokens: [], accounts: [], isIncomplete: true)) }
    trust.set(isTrusted)
    // A request in progress may have already used the cache.
    if !isTrusted { await forget(SessionChanges(latest: 0, tokens: [], accounts: [], isIncomplete: true)) }
  }

  /// Removes sessions that this process has ended or changed from all caches. After it returns, new requests read the
  /// store and do not use earlier answers.
  package func forget(_ changes: SessionChanges) async {
    let forgotten = loops.withLock { Array($0.values) }.map { bound in
      bound.eventLoop.submit { bound.value.apply(changes) }
    }
    // An event loop that has shut down serves no requests.
    for loop in forgotten { try? await loop.get() }
  }

  private func apply(_ changes: SessionChanges) {
    for bound in loops.withLock({ Array($0.values) }) {
      bound.eventLoop.execute { bound.value.apply(changes) }
    }
  }

  /// Stores the last use of sessions and tokens, as each event loop does every second. Must be called at shutdown.
  package func flushActivity() async {
    for bound in loops.withLock({ Array($0.values) }) {
      let uses = try? await bound.eventLoop.submit { bound.value.takeUses() }.get()
      await uses?.store(in: dependencies, logger: nil)
    }
  }
}
