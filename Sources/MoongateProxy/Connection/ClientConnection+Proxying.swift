import MoongateCore
import NIOCore

/// The upstream of an allowed request: choosing a target, sending the request, and failures.
extension ClientConnection {
  func beginExchange() {
    phase = .exchanging(nil)
    lastActivity = loop.now
    recordDecisionTime()
    guard let route = exchange.route else { return }
    if route.targets.count > 1 {
      let first = route.next
      route.next = (first + 1) % route.targets.count
      let all = route.targets.indices.map { (first + $0) % route.targets.count }
      // Targets that failed recently come last.
      exchange.order =
        all.filter { !route.targets[$0].isDown(at: lastActivity) }
        + all.filter { route.targets[$0].isDown(at: lastActivity) }
    }
    attempt()
  }

  /// Tries the next target of the route.
  private func attempt() {
    guard case .exchanging = phase, let route = exchange.route else { return }
    guard exchange.tried < route.targets.count else {
      return refuse(route, exchange.hasTimedOut ? .timeout : .unreachable)
    }
    let target = route.targets[exchange.order.isEmpty ? 0 : exchange.order[exchange.tried]]
    let now = loop.now
    lastActivity = now
    if !exchange.needsFreshConnection, let idle = target.takeIdle(canRepeat: exchange.isRepeatable, now: now) {
      exchange.isReused = true
      return send(on: idle)
    }
    exchange.isReused = false
    let asked = serial
    target.connect(timeout: route.timeout) { [weak self] result in
      guard let self, self.serial == asked, case .exchanging = self.phase else {
        if case .success(let connection) = result { connection.end(reusable: true) }
        return
      }
      switch result {
      case .success(let connection):
        self.send(on: connection)
        self.process()
        self.upstream?.flush()
      case .failure(let error):
        target.failed(at: self.loop.now)
        let isSlow = if case .connectTimeout? = error as? ChannelError { true } else { false }
        if isSlow { self.exchange.hasTimedOut = true }
        self.passOver(target, isSlow ? .timeout : .unreachable, route)
        self.attempt()
      }
    }
  }

  private func send(on connection: UpstreamConnection) {
    phase = .exchanging(connection)
    lastActivity = loop.now
    exchange.bodyWindow = (lastActivity, 0)
    connection.begin(for: self, toHead: exchange.isHead, wantsUpgrade: exchange.wantsUpgrade)
    connection.write(exchange.upstreamHead)
    exchange.bytesWereSent = true
    if !isProcessing || exchange.requestIsDone { connection.flush() }
    resumeReading()
  }

  // MARK: the request's body

  /// - Returns: whether received bytes are left to handle.
  func forwardBody() -> Bool {
    guard !exchange.requestIsDone, let upstream else { return false }
    do throws(MessageFault) {
      while true {
        switch try exchange.body.next(&input) {
        case .incomplete: return false
        case .data(let data):
          if let left = exchange.bodyLeft {
            guard data.readableBytes <= left else {
              dropUpstream()
              if exchange.answerHasBegun { abort() } else { refuse(.tooLarge, unread: true) }
              return false
            }
            exchange.bodyLeft = left - data.readableBytes
          }
          exchange.bodyWindow.bytes += data.readableBytes
          if exchange.isChunked { Self.writeChunk(data) { upstream.write($0) } } else { upstream.write(data) }
        case .end:
          exchange.requestIsDone = true
          if exchange.isChunked { upstream.write(ByteBuffer(staticString: "0\r\n\r\n")) }
          upstream.flush()
          return false
        }
      }
    } catch {
      // The request to the upstream stays incomplete, so that no later bytes can be taken for a request.
      dropUpstream()
      if exchange.answerHasBegun { abort() } else { refuse(error) }
      return false
    }
  }

  /// Closes the connection to the upstream of the current exchange.
  func dropUpstream() {
    guard case .exchanging(let upstream?) = phase else { return }
    phase = .exchanging(nil)
    upstream.close()
  }

  func upstreamWritabilityChanged() {
    lastActivity = loop.now
    exchange.bodyWindow = (lastActivity, 0)
    resumeReading()
  }

  // MARK: failures

  /// The connection to the upstream ended before the response was complete.
  func upstreamFailed(_ failure: UpstreamFailure, _ connection: UpstreamConnection) {
    guard connection === upstream, let route = exchange.route else { return }
    dropUpstream()
    if exchange.answerHasBegun {
      // Attack, or accident: a truncated response that looks complete. The client must see that it is not.
      let cause = UpstreamFailureLog.Cause.cut
      let decision = record(.upstreamUnavailable, detail: ["upstream": upstreamNames(route), "reason": cause.words])
      exchange.decision = decision
      report(cause, cause.words, route, decision)
      return abort()
    }
    // A reused connection may end because it was idle. Every other failure is one of the upstream.
    if case .closed = failure, exchange.isReused {} else { connection.target.failed(at: loop.now) }
    switch failure {
    case .silent: refuse(route, .timeout)
    case .unreadable(let reason): refuse(route, .unreadable, reason: reason)
    case .closed:
      guard exchange.isRepeatable else { return refuse(route, .closed) }
      if exchange.isReused {
        // The upstream may have closed the connection before the request arrived. Retry on a new connection.
        exchange.needsFreshConnection = true
      } else {
        passOver(connection.target, .closed, route)
      }
      attempt()
    }
  }

  /// Continues with the next target. This is logged, because a failing target is otherwise not noticed.
  private func passOver(_ target: UpstreamTarget, _ cause: UpstreamFailureLog.Cause, _ route: RoutePlan) {
    exchange.tried += 1
    guard exchange.tried < route.targets.count else { return }
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
