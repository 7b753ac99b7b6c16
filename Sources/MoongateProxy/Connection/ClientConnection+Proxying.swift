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
    let target = service.target
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
    target.connect(timeout: service.route.timeout, forUpgrade: state.exchange.wantsUpgrade) { result in
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
        target.refusedConnection(at: now)
        let failure = ConnectFailure(error)
        self.goOn(service, after: failure.cause, reason: failure.reason, isUsual: true)
      }
    }
  }

  private func send(_ service: ServiceExchange, on connection: UpstreamConnection, at now: NIODeadline) {
    state.connected(service, to: connection, at: now)
    connection.begin(
      for: self, toHead: state.exchange.isHead, wantsUpgrade: state.exchange.wantsUpgrade,
      hasBody: state.exchange.hasBody)
    connection.write(service.head(for: connection.target))
    if state.exchange.hasBody { sendBodyAgain(of: service, on: connection) }
    // Otherwise `process` or the end of the read does.
    if !isProcessing { connection.flush() }
    resumeReading()
  }

  /// Sends what earlier attempts have sent of the body. At the first one, nothing of it has arrived.
  private func sendBodyAgain(of service: ServiceExchange, on connection: UpstreamConnection) {
    if let body = service.sentBody, body.readableBytes > 0 { forward(body, to: connection) }
    if state.exchange.requestIsDone { perform(.endBody(of: connection)) }
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
      let isUsual = state.exchange.isRepeatable || connection.isUnhandled && service.sentBody != nil
      let isCovered =
        (route.rule.retry?.onConnect ?? false) && service.canSendAgain(requestIsDone: state.exchange.requestIsDone)
      guard isUsual || isCovered else { return refuse(route, .closed, reason: fault) }
      guard service.isReused || connection.isUnhandled && service.takeRepeat() else {
        return goOn(service, after: .closed, reason: fault, isUsual: isUsual)
      }
      // The upstream may have closed the connection before the request arrived. Retry on a new connection.
      service.needsFreshConnection = true
      attempt(at: loop.now)
      process()
    }
  }

  /// Goes on after an attempt that got no response: with another one, or by a refusal.
  /// - Parameter isUsual: whether another upstream is tried without `retry`.
  private func goOn(
    _ service: ServiceExchange, after cause: UpstreamFailureCause, reason: String?, isUsual: Bool
  ) {
    let failed = service.target
    let next = service.next(
      after: (cause, reason), isUsual: isUsual, isCovered: service.route.rule.retry?.onConnect ?? false,
      requestIsDone: state.exchange.requestIsDone, at: loop.now)
    if next == .end { return refuse(service.route, service.failure.cause, reason: service.failure.reason) }
    again(next, after: cause, reason: reason ?? cause.words, of: failed, service)
  }

  /// Drops a response and sends the request again, if `retry` names its status. The client has no part of the response.
  /// - Returns: whether it did.
  func dropAnswer(withStatus status: Int) -> Bool {
    guard case .exchanging(let service) = state.phase, let retry = service.route.rule.retry,
      retry.statuses.contains(status)
    else { return false }
    let failed = service.target
    let reason = "it answered with \(status)"
    let next = service.next(
      after: (.status, reason), isUsual: false, isCovered: true, requestIsDone: state.exchange.requestIsDone,
      at: loop.now)
    if next == .end { return false }
    // The rest of the response is not read, so the connection cannot be used again.
    perform(state.dropUpstream())
    again(next, after: .status, reason: reason, of: failed, service)
    return true
  }

  /// Begins another attempt. The failed one is logged, because a failing upstream is otherwise not noticed.
  private func again(
    _ next: UpstreamAttempts.Next, after cause: UpstreamFailureCause, reason: String, of failed: UpstreamTarget,
    _ service: ServiceExchange
  ) {
    failed.wasRetried(cause)
    let failure = LoggedUpstreamFailure(
      upstream: failed.upstream.description, cause: cause, reason: reason, isRetried: true)
    loop.shared.upstreamFailures.report(failure, ["route": "\(loop.metrics.label(service.route.metricsIndex))"])
    guard case .after(let pause) = next else {
      attempt(at: loop.now)
      return process()
    }
    let asked = state.serial
    loop.eventLoop.assumeIsolated().scheduleTask(in: pause) {
      guard self.state.serial == asked, case .exchanging = self.state.phase else { return }
      self.attempt(at: self.loop.now)
      self.process()
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
