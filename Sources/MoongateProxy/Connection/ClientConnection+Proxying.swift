import MoongateCore
import NIOCore

/// The upstream of an allowed request: choosing a target, sending the request, and failures.
extension ClientConnection {
  func beginExchange() {
    state.beginExchange(at: loop.now)
    recordDecisionTime()
    guard let route = state.exchange.route else { return }
    if route.targets.count > 1 {
      let first = route.next
      route.next = (first + 1) % route.targets.count
      let all = route.targets.indices.map { (first + $0) % route.targets.count }
      // Targets that failed recently come last.
      state.exchange.order =
        all.filter { !route.targets[$0].isDown(at: state.lastActivity) }
        + all.filter { route.targets[$0].isDown(at: state.lastActivity) }
    }
    attempt()
  }

  /// Tries the next target of the route.
  private func attempt() {
    guard case .exchanging = state.phase, let route = state.exchange.route else { return }
    guard state.exchange.tried < route.targets.count else {
      return refuse(route, state.exchange.failure)
    }
    let target = route.targets[state.exchange.order.isEmpty ? 0 : state.exchange.order[state.exchange.tried]]
    let now = loop.now
    state.lastActivity = now
    if !state.exchange.needsFreshConnection,
      let idle = target.takeIdle(canRepeat: state.exchange.isRepeatable, now: now)
    {
      state.exchange.isReused = true
      return send(on: idle)
    }
    state.exchange.isReused = false
    let asked = state.serial
    target.connect(timeout: route.timeout) { [weak self] result in
      guard let self, self.state.serial == asked, case .exchanging = self.state.phase else {
        if case .success(let connection) = result { connection.end(reusable: true) }
        return
      }
      switch result {
      case .success(let connection):
        self.send(on: connection)
        self.process()
      case .failure(let error):
        target.failed(at: self.loop.now)
        let isSlow = if case .connectTimeout? = error as? ChannelError { true } else { false }
        self.passOver(target, isSlow ? .timeout : .unreachable, route)
        self.attempt()
      }
    }
  }

  private func send(on connection: UpstreamConnection) {
    state.connected(to: connection, at: loop.now)
    connection.begin(for: self, toHead: state.exchange.isHead, wantsUpgrade: state.exchange.wantsUpgrade)
    connection.write(state.exchange.upstreamHead)
    // Otherwise `process` or the end of the read does.
    if !isProcessing { connection.flush() }
    resumeReading()
  }

  /// The upstream accepts no more bytes, or accepts them again.
  func upstreamWritabilityChanged() {
    state.upstreamWritabilityChanged(at: loop.now)
    resumeReading()
  }

  // MARK: failures

  /// The connection to the upstream ended before the response was complete.
  func upstreamFailed(_ failure: UpstreamFailure, _ connection: UpstreamConnection) {
    guard connection === upstream, let route = state.exchange.route else { return }
    perform(state.dropUpstream())
    if state.exchange.answerHasBegun {
      // Attack, or accident: a truncated response that looks complete. The client must see that it is not.
      let cause = UpstreamFailureLog.Cause.cut
      let decision = record(.upstreamUnavailable, detail: ["upstream": upstreamNames(route), "reason": cause.words])
      state.exchange.decision = decision
      report(cause, cause.words, route, decision)
      return abort()
    }
    // A reused connection may end because it was idle. Every other failure is one of the upstream.
    if case .closed = failure, state.exchange.isReused {} else { connection.target.failed(at: loop.now) }
    switch failure {
    case .silent: refuse(route, .timeout)
    case .unreadable(let reason): refuse(route, .unreadable, reason: reason)
    case .closed:
      guard state.exchange.isRepeatable else { return refuse(route, .closed) }
      if state.exchange.isReused {
        // The upstream may have closed the connection before the request arrived. Retry on a new connection.
        state.exchange.needsFreshConnection = true
      } else {
        passOver(connection.target, .closed, route)
      }
      attempt()
    }
  }

  /// Continues with the next target. This is logged, because a failing target is otherwise not noticed.
  private func passOver(_ target: UpstreamTarget, _ cause: UpstreamFailureLog.Cause, _ route: RoutePlan) {
    state.exchange.tried += 1
    if state.exchange.failure != .timeout { state.exchange.failure = cause }
    guard state.exchange.tried < route.targets.count else { return }
    loop.proxy.upstreamFailures.logRetry(
      cause, upstream: target.upstream.description, route: loop.metrics.label(route.metricsIndex))
  }

  /// Refuses a request to which no upstream responded. This is counted and logged.
  private func refuse(_ route: RoutePlan, _ cause: UpstreamFailureLog.Cause, reason: String? = nil) {
    let reason = reason ?? cause.words
    var refusal = RequestRefusal(
      cause == .timeout ? .upstreamTimeout : .upstreamUnavailable,
      detail: ["upstream": upstreamNames(route), "reason": reason])
    refusal.failure = (cause, reason, route)
    refuse(refusal)
  }

  func report(_ cause: UpstreamFailureLog.Cause, _ reason: String, _ route: RoutePlan, _ decision: DecisionID) {
    loop.metrics.count(route.metricsIndex, cause)
    loop.proxy.upstreamFailures.report(
      cause, upstream: upstreamNames(route), route: loop.metrics.label(route.metricsIndex), reason: reason,
      decision: decision)
  }

  private func upstreamNames(_ route: RoutePlan) -> String {
    route.rule.upstreams.map(\.description).joined(separator: " ")
  }
}
