import Crypto
import Logging
import MoongateCore
import NIOCore
import NIOSSL
import Synchronization

/// What the data path works with.
package struct ProxyDependencies: Sendable {
  package let generation: ActiveGeneration
  package let sessions: SessionDirectory
  /// nil: no token is right.
  let tokens: AccessTokenDirectory?
  package let watch: SessionWatch
  /// Where the last activity of sessions is written to.
  package let activity: any SessionStore
  package let keys: KeyRing
  package let clock: any GatewayClock
  package let random: any RandomSource
  package let audit: AuditTrail
  package let logger: Logger
  let policyFaults: PolicyFaultLog
  /// Those of the program, for the pages that people are led to.
  let providers: ProviderRegistry
  /// Where spans of requests go.
  let spans: SpanQueue
  /// What looks on where an operator lets a candidate do so.
  let shadow: PolicyShadow?

  /// - Parameter policyFaults: where errors of `decide` go; nil: into the log by themselves.
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
/// It owns what happens between a client's bytes and an upstream's: decoding, judging, the sessions that it remembers,
/// identity headers, upstream connections. It owns no listener and no page: requests for the gateway's own paths are
/// handed on as `HTTPRequestPart`s.
package final class Proxy: Sendable {
  /// A refusal as a page, for browsers; nil where there is none for it.
  /// - Parameters:
  ///   - visitor: who is signed in, where the refusal is about that.
  ///   - languages: the request's `Accept-Language`.
  package typealias RefusalPage =
    @Sendable (_ refusal: Refusal, _ visitor: RefusedVisitor?, _ languages: String?) -> String?

  let dependencies: ProxyDependencies
  let assertions: AssertionKeys
  let addresses = AddressTable()
  let returns = RedirectLoopDetector()
  let page: RefusalPage?
  let ownPrefixes: [String]
  let accessLog: AccessLog?
  let upstreamFailures: UpstreamFailureLog
  let trust = CacheTrust()
  private let connections = Atomic<Int>(0)
  private let idleNanoseconds = Atomic<Int64>(250_000_000)
  private let loops = Mutex<[ObjectIdentifier: NIOLoopBound<ProxyLoop>]>([:])

  /// - Parameters:
  ///   - ownPrefixes: path prefixes, besides the gateway's usual ones, that go inward, such as `/mock-google`.
  ///   - accessLog: where a line for each request goes; nil: nowhere.
  ///   - page: makes the page for browsers that are refused.
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

  /// The keys that verify `X-Moongate-Assertion` now, as a JWK set (RFC 7517): for `/.well-known/moongate/jwks.json`.
  package var keySet: String { assertions.keySet(at: dependencies.clock.now()) }

  /// Makes the handler of one connection of a client. Must be called on the channel's event loop.
  /// - Parameters:
  ///   - isSecure: whether the connection is TLS.
  ///   - inner: called on the event loop before the connection's first request for the gateway itself; puts in place,
  ///     behind the handler, what reads `HTTPRequestPart` and writes `HTTPResponsePart`.
  package func makeConnectionHandler(for channel: any Channel, isSecure: Bool, inner: @escaping () throws -> Void)
    -> ClientConnection
  {
    ClientConnection(loop: loop(for: channel.eventLoop), isSecure: isSecure, inner: inner)
  }

  /// Puts in place what serves a connection that begins with TLS: HTTP/2 or HTTP/1.1, as its handshake agrees. Must be
  /// called on the channel's event loop.
  /// - Parameter inner: as of `makeConnectionHandler`; is given the channel of the connection or, for HTTP/2, of the
  ///   stream.
  package func addTLS(
    _ tls: ServerTLS, to channel: any Channel, inner: @escaping @Sendable (any Channel) throws -> Void
  ) throws {
    let loop = loop(for: channel.eventLoop)
    let handlers: [any ChannelHandler] = [
      ApplicationProtocolNegotiation(loop: loop), NIOSSLServerHandler(context: tls.context),
      TLSEntrance(loop: loop, inner: inner),
    ]
    try channel.pipeline.syncOperations.addHandlers(handlers)
  }

  /// What all event loops have counted since the start.
  package func metrics() async -> [MetricFamily] {
    var numbers = EventLoopMetrics()
    for bound in loops.withLock({ Array($0.values) }) {
      if let more = try? await bound.eventLoop.submit({ bound.value.currentNumbers() }).get() { numbers.merge(more) }
    }
    var families = numbers.families
    if let counts = accessLog?.counts {
      families += [
        MetricFamily(.accessLogLinesTotal, counts.taken),
        MetricFamily(.accessLogDroppedTotal, counts.dropped),
      ]
    }
    return families
  }

  /// Tells how often upstreams failed whose minute is over, and forgets them.
  package func tellSuppressedFailures() { upstreamFailures.tellSuppressed() }

  /// Gives the access log all that is written and ends it; to be called at shutdown.
  package func endAccessLog() async {
    for bound in loops.withLock({ Array($0.values) }) {
      try? await bound.eventLoop.submit { bound.value.handOverLines() }.get()
    }
    accessLog?.end()
  }

  /// Counts a connection in, until `connectionClosed`.
  /// - Returns: whether it is within the limit; counted either way.
  func connectionOpened(limit: Int) -> Bool { connections.add(1, ordering: .relaxed).newValue <= limit }

  func connectionClosed() { connections.subtract(1, ordering: .relaxed) }

  /// Everything of one event loop.
  func loop(for eventLoop: any EventLoop) -> ProxyLoop {
    let id = ObjectIdentifier(eventLoop)
    if let known = loops.withLock({ $0[id] }) { return known.value }
    let made = ProxyLoop(proxy: self, eventLoop: eventLoop)
    let bound = NIOLoopBound(made, eventLoop: eventLoop)
    loops.withLock { $0[id] = bound }
    return made
  }

  /// How long a connection of HTTP/1.1 without a request stays open once the listener shuts down. The next request on
  /// it is answered, and told that it is the last one.
  ///
  /// A connection that is closed in the moment in which its client sends a request loses that request.
  package var idleWhileDraining: Duration {
    get { .nanoseconds(idleNanoseconds.load(ordering: .relaxed)) }
    set { idleNanoseconds.store(newValue.wholeNanoseconds, ordering: .relaxed) }
  }

  /// Whether event loops may answer from memory who is signed in. Where they may not, each request asks the store.
  /// - Parameter isTrusted: false while another process, which this one does not hear of at once, serves from the
  ///   store.
  package func trustCaches(_ isTrusted: Bool) async {
    // What was remembered meanwhile may be out of date.
    if isTrusted { await forget(SessionChanges(latest: 0, tokens: [], accounts: [], isIncomplete: true)) }
    trust.set(isTrusted)
    // A request that an event loop is at has looked already.
    if !isTrusted { await forget(SessionChanges(latest: 0, tokens: [], accounts: [], isIncomplete: true)) }
  }

  /// Forgets sessions that this process has ended or changed. Returns when every event loop has: a request that is
  /// decoded after that asks the store, and is not answered by what the store said before.
  package func forget(_ changes: SessionChanges) async {
    let forgotten = loops.withLock { Array($0.values) }.map { bound in
      bound.eventLoop.submit { bound.value.apply(changes) }
    }
    // An event loop that has ended serves nobody.
    for loop in forgotten { try? await loop.get() }
  }

  private func apply(_ changes: SessionChanges) {
    for bound in loops.withLock({ Array($0.values) }) {
      bound.eventLoop.execute { bound.value.apply(changes) }
    }
  }

  /// Writes down which sessions were used since the last time; done every second anyway, and to be called at shutdown.
  package func flushActivity() async {
    for bound in loops.withLock({ Array($0.values) }) {
      let seen = try? await bound.eventLoop.submit { bound.value.takeActivity() }.get()
      if let seen, !seen.isEmpty { try? await dependencies.activity.touch(seen) }
      let used = try? await bound.eventLoop.submit { bound.value.takeUses() }.get()
      if let used, !used.isEmpty { try? await dependencies.tokens?.record(used) }
    }
  }
}
