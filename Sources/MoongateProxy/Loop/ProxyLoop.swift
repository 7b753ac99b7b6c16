import Logging
import MoongateCore
import NIOCore

/// The state of one event loop, which its connections share without locks and thread hops.
final class ProxyLoop {
  private static let tick: TimeAmount = .milliseconds(100)
  /// How long a reading of the gateway's clock is reused.
  private static let clockLife: TimeAmount = .milliseconds(5)
  private static let maxHosts = 1024

  let shared: SharedState
  let eventLoop: any EventLoop
  let sessions: SessionCache
  let tokens: TokenCache
  let bearers: BearerTokens
  let spare = SpareFields()
  var metrics = EventLoopMetrics()
  var traceIDs: TraceIDs
  /// Lines waiting for the access log.
  var lines = AccessLines()
  private var plan: GenerationPlan?
  /// The authorizer of `plan`.
  private var authorizer: Authorizer?
  private var targets: [Upstream: UpstreamTarget] = [:]
  private var hosts: [[UInt8]: RequestHost] = [:]
  private var connections: [any LoopConnection] = []
  private var clockReadAt = NIODeadline.uptimeNanoseconds(0)
  private var clockTime = Timestamp(milliseconds: 0)
  private var storeIsFresh = false
  private var dateField = DateField()
  private var ticks: UInt64 = 0
  private var ticker: RepeatedTask?
  private let upstreamTLS = UpstreamTLS()
  /// The health checks that this event loop makes for the process.
  private var healthCheckers: [HealthChecker] = []

  init(_ shared: SharedState, eventLoop: any EventLoop) {
    self.shared = shared
    self.eventLoop = eventLoop
    traceIDs = TraceIDs(from: shared.dependencies.random)
    sessions = SessionCache(eventLoop: eventLoop, remembersDead: true, trust: shared.trust)
    tokens = TokenCache(shared.dependencies.tokens, eventLoop: eventLoop, trust: shared.trust)
    bearers = BearerTokens(shared, eventLoop: eventLoop)
    let bound = NIOLoopBound(WeakReference(self), eventLoop: eventLoop)
    ticker = eventLoop.scheduleRepeatedTask(initialDelay: Self.tick, delay: Self.tick) { task in
      guard let loop = bound.value.loop else { return task.cancel() }
      loop.onTick()
    }
  }

  /// The monotonic clock.
  var now: NIODeadline { eventLoop.now }

  /// The active generation, prepared for this loop.
  func currentPlan() -> GenerationPlan {
    let active = shared.dependencies.generation
    let version = active.version
    if let plan, plan.version == version { return plan }
    authorizer = nil
    let made = GenerationPlan(
      version: version, generation: active.current, providers: shared.dependencies.providers,
      metricsIndex: { self.metrics.index(of: ($0.host ?? "") + $0.path.text) }, target: { self.target($0) })
    for (route, counter) in zip(made.routes, shared.rates.counters(of: made.generation.routes.routes)) {
      route.rate = counter
    }
    plan = made
    for route in made.routes {
      route.setOrder(health: shared.healthChecks.health(of: route.rule), keys: shared.dependencies.keys)
    }
    let used = Set(made.generation.routes.routes.flatMap(\.upstreams))
    for (upstream, target) in targets where !used.contains(upstream) {
      target.retire()
      targets[upstream] = nil
    }
    upstreamTLS.keep(only: used)
    return made
  }

  /// Decides about requests with the active generation.
  func currentAuthorizer() -> Authorizer {
    let plan = currentPlan()
    if let authorizer { return authorizer }
    let made = Authorizer(
      plan, sessions: sessions, tokens: tokens, redirectLoops: shared.redirectLoops,
      dependencies: (shared.dependencies.clock, shared.dependencies.keys))
    authorizer = made
    return made
  }

  private func target(_ upstream: Upstream) -> UpstreamTarget {
    if let known = targets[upstream] { return known }
    let made = UpstreamTarget(upstream, eventLoop: eventLoop, tls: upstreamTLS, spare: spare)
    let failures = shared.upstreamFailures
    made.report = { reason in
      failures.report(
        LoggedUpstreamFailure(
          upstream: upstream.description, cause: .unreadable, reason: reason, isRetried: false), [:])
    }
    targets[upstream] = made
    return made
  }

  /// The gateway's time, and whether store changes are being received. At most a few milliseconds old.
  func time(at monotonic: NIODeadline) -> (now: Timestamp, storeIsFresh: Bool) {
    if monotonic - clockReadAt >= Self.clockLife || clockTime.milliseconds == 0 {
      clockReadAt = monotonic
      clockTime = shared.dependencies.clock.now()
      storeIsFresh = shared.dependencies.watch.isFresh
    }
    return (clockTime, storeIsFresh)
  }

  /// The time for a decision that is made now.
  func accessTime() -> AccessTime {
    let monotonic = now
    let (now, storeIsFresh) = time(at: monotonic)
    return AccessTime(now: now, storeIsFresh: storeIsFresh, monotonic: monotonic)
  }

  /// The `Date: …` header line of a response.
  func dateLine(at monotonic: NIODeadline) -> [UInt8] { dateField.line(at: time(at: monotonic).now) }

  /// The host in the range, parsed once per spelling.
  func host(_ bytes: Span<UInt8>, _ range: Range<Int>) -> RequestHost? {
    var raw: [UInt8] = []
    for index in range { raw.append(bytes[index]) }
    if let known = hosts[raw] { return known }
    guard let made = RequestHost(bytes, range) else { return nil }
    // Attack: a new Host with every request. The cache is then cleared; hosts in use return to it.
    if hosts.count >= Self.maxHosts { hosts = [:] }
    hosts[raw] = made
    return made
  }

  // MARK: connections

  /// Acquires a permit for a connection.
  /// - Returns: nil if a limit is reached; the connection must then be closed.
  func admit(_ peer: ConnectionPeer) -> ConnectionPermit? {
    let plan = currentPlan()
    let limits = plan.settings.connectionLimits
    let most = min(limits.connections, shared.dependencies.mostConnections)
    let isWithin = shared.connections.opened(limit: most)
    var use: AddressUse?
    var isWithinAddress = true
    let address = peer.address
    if isWithin, address != .unspecified, !ForwardedClient.trusts(address, plan.trustedProxies) {
      (use, isWithinAddress) = shared.addresses.connect(address, limit: limits.connectionsPerAddress, at: now)
    }
    let permit = ConnectionPermit(shared.connections, of: peer, addressUse: use)
    if isWithin, isWithinAddress { return permit }
    permit.end()
    metrics.refusedConnections += 1
    return nil
  }

  func add(_ connection: any LoopConnection) {
    connection.placeInLoop = connections.count
    connections.append(connection)
  }

  func remove(_ connection: any LoopConnection) {
    let place = connection.placeInLoop
    guard place >= 0, place < connections.count, connections[place] === connection, let last = connections.popLast()
    else { return }
    if last !== connection {
      connections[place] = last
      last.placeInLoop = place
    }
    connection.placeInLoop = -1
  }

  private func onTick() {
    let now = now
    ticks &+= 1
    // A loop without requests must not keep an old generation in memory.
    if let plan, plan.version != shared.dependencies.generation.version { (self.plan, authorizer) = (nil, nil) }
    handOverLines()
    checkTimes(at: now)
    checkHealth(at: now)
    if ticks % 10 == 0 {
      for target in targets.values { target.closeIdle(before: now - .seconds(30)) }
      writeActivity()
    }
  }

  /// Checks the timeouts of all connections.
  func checkTimes(at now: NIODeadline) {
    // Iterate from the end: a closing connection is replaced by the last one.
    var index = connections.count - 1
    while index >= 0 {
      if index < connections.count { connections[index].checkTime(now) }
      index -= 1
    }
  }

  /// Makes the health checks that are due.
  private func checkHealth(at now: NIODeadline) {
    let active = shared.dependencies.generation
    let version = active.version
    if shared.healthChecks.isOutdated(version) {
      for health in shared.healthChecks.adopt(active.current.routes, version: version) {
        let target = UpstreamTarget(health.check.upstream, eventLoop: eventLoop, tls: upstreamTLS, spare: spare)
        healthCheckers.append(HealthChecker(health, target: target, log: shared.upstreamHealth))
      }
    }
    if !healthCheckers.isEmpty { healthCheckers.removeAll { !$0.tick(now) } }
  }

  /// Hands the new lines to the access log.
  func handOverLines() {
    guard lines.count > 0 else { return }
    let (bytes, count) = lines.take()
    shared.accessLog?.take(bytes, lines: count)
  }

  /// The counters of this loop.
  func currentMetrics() -> EventLoopMetrics {
    var now = metrics
    now.cache = sessions.metrics
    now.cache.merge(tokens.cache.metrics)
    for (upstream, target) in targets {
      now.upstreams[upstream.description, default: EventLoopMetrics.Upstream()].merge(target.metrics)
    }
    return now
  }

  /// The store lookup for a session.
  func lookup(of key: SessionKey) -> SessionCache.Lookup {
    let directory = shared.dependencies.sessions
    let hash = key.tokenHash
    return {
      guard let snapshot = try await directory.find(hash) else { return .absent }
      return .live(snapshot)
    }
  }

  private func writeActivity() {
    let uses = takeUses()
    guard !uses.isEmpty else { return }
    let dependencies = shared.dependencies
    Task { await uses.store(in: dependencies.activity, dependencies.tokens, logger: dependencies.logger) }
  }

  /// The uses since the last call.
  func takeUses() -> LastUses { LastUses(sessions: sessions.takeActivity(), tokens: tokens.takeUses()) }

  /// Removes changed sessions from the cache and checks sessions with an open stream or socket.
  func apply(_ changes: SessionChanges) {
    sessions.apply(changes)
    tokens.cache.apply(changes)
    for connection in connections { connection.sessionsChanged(changes) }
  }
}

/// Gives the ticker access to the event loop's state without retaining it.
private final class WeakReference {
  weak var loop: ProxyLoop?

  init(_ loop: ProxyLoop) { self.loop = loop }
}
