import MoongateCore
import NIOCore
import NIOSSL
import Synchronization

/// The data path of the public listener.
///
/// It covers everything between the bytes of a client and of an upstream: decoding, judging, the session cache,
/// identity headers, and upstream connections. It contains no listener and no page: requests to the gateway's own paths
/// are passed on as `HTTPRequestPart`s.
package final class Proxy: Sendable {
  let shared: SharedState
  private let loops = Mutex<[ObjectIdentifier: NIOLoopBound<ProxyLoop>]>([:])

  /// - Parameters:
  ///   - accessLog: receives a line for each request; nil for no log.
  ///   - page: creates the page for refused browsers.
  ///   - errorPage: the same on routes with `error_pages`.
  package init(
    _ dependencies: ProxyDependencies, accessLog: AccessLog? = nil, page: RefusalPage? = nil,
    errorPage: ErrorPage? = nil
  ) {
    shared = SharedState(dependencies, accessLog: accessLog, page: page, errorPage: errorPage)
    dependencies.watch.subscribe { [weak self] changes in self?.apply(changes) }
  }

  /// The current public keys of `X-Moongate-Assertion` as a JWK set (RFC 7517), for `/.well-known/moongate/jwks.json`.
  package var keySet: String { shared.assertions.keySet(at: shared.dependencies.clock.now()) }

  /// Adds handlers for the gateway's own requests, which read `HTTPRequestPart` and write `HTTPResponsePart`. It is
  /// called on the event loop before the first such request.
  /// - Parameters:
  ///   - channel: the channel of the connection or, for HTTP/2, of the stream.
  ///   - client: the client of the connection.
  package typealias InnerHandlers = @Sendable (_ channel: any Channel, _ client: ConnectionPeer) throws -> Void

  /// Adds the handlers that serve a connection of the public listener. Call on the channel's event loop.
  /// - Parameter tls: the certificate of an HTTP/2 or HTTP/1.1 connection; nil for HTTP/1.1 without TLS.
  package func serve(_ channel: any Channel, tls: ServerTLS?, inner: @escaping InnerHandlers) throws {
    let loop = loop(for: channel.eventLoop)
    guard loop.currentPlan().settings.takesProxyProtocol else {
      return try Self.addHandlers(to: channel, loop, permit: nil, tls: tls, inner: inner)
    }
    try channel.pipeline.syncOperations.addHandler(
      ProxyProtocolHandler(loop: loop) { permit in
        try Self.addHandlers(to: channel, loop, permit: permit, tls: tls, inner: inner)
      })
  }

  /// - Parameter permit: the permit of a connection whose client a PROXY protocol header states; nil if the handlers
  ///   acquire it.
  private static func addHandlers(
    to channel: any Channel, _ loop: ProxyLoop, permit: ConnectionPermit?, tls: ServerTLS?,
    inner: @escaping InnerHandlers
  ) throws {
    let stated = permit?.peer
    let inner: @Sendable (any Channel) throws -> Void = { try inner($0, stated ?? ConnectionPeer($0)) }
    let pipeline = channel.pipeline.syncOperations
    guard let tls else {
      return try pipeline.addHandler(
        ClientConnection(loop: loop, isSecure: false, permit: permit) { try inner(channel) })
    }
    let handlers: [any ChannelHandler] = [
      ApplicationProtocolNegotiation(loop: loop), NIOSSLServerHandler(context: tls.context),
      TLSHandshakeHandler(loop: loop, permit: permit, inner: inner),
    ]
    try pipeline.addHandlers(handlers)
  }

  /// The metrics of all event loops since the start.
  package func metrics() async -> [MetricFamily] {
    var metrics = EventLoopMetrics()
    for bound in loops.withLock({ Array($0.values) }) {
      if let more = try? await bound.eventLoop.submit({ bound.value.currentMetrics() }).get() { metrics.merge(more) }
    }
    var families = metrics.families + shared.healthChecks.families
    if let counts = shared.accessLog?.counts {
      families += [
        MetricFamily(.accessLogLinesTotal, counts.taken),
        MetricFamily(.accessLogDroppedTotal, counts.dropped),
      ]
    }
    return families
  }

  /// The log of forwarding headers that cannot be read.
  package var forwardingFaults: FoldedLog<LoggedForwardingFault> { shared.forwardingFaults }

  /// Logs and resets the suppressed lines of past minutes about upstreams, forwarding headers, limits of HTTP/2, PROXY
  /// headers, addresses in responses, and tokens that services do not get.
  package func logSuppressedFailures() {
    shared.upstreamFailures.logSuppressed()
    shared.upstreamHealth.logSuppressed()
    shared.forwardingFaults.logSuppressed()
    shared.http2Limits.logSuppressed()
    shared.proxyHeaders.logSuppressed()
    shared.missingTokens.logSuppressed()
    shared.outsideAddresses.logSuppressed()
  }

  /// Writes all waiting lines to the access log and closes it, at shutdown.
  package func endAccessLog() async {
    for bound in loops.withLock({ Array($0.values) }) {
      try? await bound.eventLoop.submit { bound.value.handOverLines() }.get()
    }
    shared.accessLog?.end()
  }

  /// The state of one event loop.
  func loop(for eventLoop: any EventLoop) -> ProxyLoop {
    let id = ObjectIdentifier(eventLoop)
    if let known = loops.withLock({ $0[id] }) { return known.value }
    let made = ProxyLoop(shared, eventLoop: eventLoop)
    let bound = NIOLoopBound(made, eventLoop: eventLoop)
    loops.withLock { $0[id] = bound }
    return made
  }

  /// How long an idle HTTP/1.1 connection stays open after the listener has shut down. The next request on it is
  /// answered and is the last one.
  ///
  /// If a connection is closed at the moment when its client sends a request, that request is lost.
  package var idleWhileDraining: Duration {
    get { shared.idleWhileDraining }
    set { shared.idleWhileDraining = newValue }
  }

  /// Sets whether event loops may use cached sessions. Otherwise every request reads the store.
  /// - Parameter isTrusted: false while another process, whose changes are not seen at once, uses the store.
  package func trustCaches(_ isTrusted: Bool) async {
    // The cache may be outdated.
    if isTrusted { await forget(SessionChanges(latest: 0, tokens: [], accounts: [], isIncomplete: true)) }
    shared.trust.set(isTrusted)
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
    let dependencies = shared.dependencies
    for bound in loops.withLock({ Array($0.values) }) {
      let uses = try? await bound.eventLoop.submit { bound.value.takeUses() }.get()
      await uses?.store(in: dependencies.activity, dependencies.tokens, logger: nil)
    }
  }
}
