import Logging
import MoongateCore
import NIOCore

/// The upstream of an allowed request: choosing a target, sending the request, and failures.
extension ClientConnection {
  func beginExchange(_ service: ServiceExchange, at now: NIODeadline) {
    state.beginExchange(service, at: now)
    recordDecision(for: service.route)
    attempt(at: now)
  }

  /// Tries the next target of the route.
  private func attempt(at now: NIODeadline) {
    guard case .exchanging(let service) = state.phase else { return }
    let route = service.route
    guard let target = service.target else {
      return refuse(route, service.failure.cause, reason: service.failure.reason)
    }
    state.triesTarget(at: now)
    if !service.needsFreshConnection,
      let idle = target.takeIdle(
        canRepeat: state.exchange.isRepeatable, forUpgrade: state.exchange.wantsUpgrade, now: now)
    {
      service.isReused = true
      return send(service, on: idle, at: now)
    }
    service.isReused = false
    let asked = state.serial
    target.connect(timeout: route.timeout, forUpgrade: state.exchange.wantsUpgrade) { result in
      guard self.state.serial == asked, case .exchanging(let service) = self.state.phase else {
        if case .success(let connection) = result { connection.end(reusable: true) }
        return
      }
      let now = self.loop.now
      switch result {
      case .success(let connection):
        self.send(service, on: connection, at: now)
        self.process()
      case .failure(let error):
        target.failed(at: now)
        let isSlow = if case .connectTimeout? = error as? ChannelError { true } else { false }
        self.passOver(target, isSlow ? .timeout : .unreachable, service)
        self.attempt(at: now)
      }
    }
  }

  private func send(_ service: ServiceExchange, on connection: UpstreamConnection, at now: NIODeadline) {
    state.connected(service, to: connection, at: now)
    connection.begin(
      for: self, toHead: state.exchange.isHead, wantsUpgrade: state.exchange.wantsUpgrade,
      hasBody: state.exchange.hasBody)
    connection.write(service.head)
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
    guard connection === upstream, case .exchanging(let service) = state.phase else { return }
    let route = service.route
    perform(state.dropUpstream())
    if state.exchange.answerHasBegun {
      guard state.retractAnswer() else { return cut(failure, route) }
      connection.target.failed(at: loop.now)
      return refuse(route, failure.causeWithinAnswer, reason: failure.reason)
    }
    // A reused connection may end because it was idle. Every other failure is one of the upstream.
    if case .closed = failure, service.isReused {} else { connection.target.failed(at: loop.now) }
    switch failure {
    case .silent: refuse(route, .timeout)
    case .unreadable(let reason): refuse(route, .unreadable, reason: reason)
    case .closed(let fault):
      guard state.exchange.isRepeatable || connection.isUnhandled else { return refuse(route, .closed, reason: fault) }
      if service.isReused {
        // The upstream may have closed the connection before the request arrived. Retry on a new connection.
        service.needsFreshConnection = true
      } else {
        passOver(connection.target, .closed, service, reason: fault)
      }
      attempt(at: loop.now)
    }
  }

  /// Ends a response of which the client has a part. What the service sent before goes out.
  ///
  /// Attack, or accident: a truncated response that looks complete. The client must see that it is not, so the last
  /// chunk or bytes of the announced length are missing.
  private func cut(_ failure: UpstreamFailure, _ route: RoutePlan) {
    let cause = failure.causeWithinAnswer
    let reason = failure.reason ?? cause.words
    let code: RefusalCode = if case .silent = failure { .upstreamTimeout } else { .upstreamUnavailable }
    let decision = record(code, detail: ["upstream": upstreamNames(route), "reason": reason])
    state.exchange.decision = decision
    report(cause, reason, route, decision)
    recordEnd()
    perform(state.cut(at: loop.now))
  }

  /// Continues with the next target. This is logged, because a failing target is otherwise not noticed.
  private func passOver(
    _ target: UpstreamTarget, _ cause: UpstreamFailureCause, _ service: ServiceExchange, reason: String? = nil
  ) {
    service.passOver(cause, reason: reason)
    guard service.target != nil else { return }
    let failure = LoggedUpstreamFailure(
      upstream: target.upstream.description, cause: cause, reason: reason ?? cause.words, isRetried: true)
    loop.shared.upstreamFailures.report(failure, ["route": "\(loop.metrics.label(service.route.metricsIndex))"])
  }

  /// Refuses a request to which no upstream responded. This is counted and logged.
  private func refuse(_ route: RoutePlan, _ cause: UpstreamFailureCause, reason: String? = nil) {
    let reason = reason ?? cause.words
    var refusal = RequestRefusal(
      cause == .timeout ? .upstreamTimeout : .upstreamUnavailable,
      detail: ["upstream": upstreamNames(route), "reason": reason])
    refusal.failure = (cause, reason, route)
    refuse(refusal)
  }

  func report(_ cause: UpstreamFailureCause, _ reason: String, _ route: RoutePlan, _ decision: DecisionID) {
    loop.metrics.count(route.metricsIndex, cause)
    let failure = LoggedUpstreamFailure(
      upstream: upstreamNames(route), cause: cause, reason: reason, isRetried: false)
    loop.shared.upstreamFailures.report(
      failure, ["route": "\(loop.metrics.label(route.metricsIndex))", "decision": "\(decision)"])
  }

  private func upstreamNames(_ route: RoutePlan) -> String {
    route.rule.upstreams.map(\.description).joined(separator: " ")
  }
}
