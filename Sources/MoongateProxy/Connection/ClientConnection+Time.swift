import MoongateCore
import NIOCore

/// Timeouts. The event loop checks them ten times a second.
extension ClientConnection {
  private static let headTime: TimeAmount = .seconds(10)
  private static let ownBodyTime: TimeAmount = .seconds(10)
  private static let idleTime: TimeAmount = .seconds(60)
  private static let lookingTime: TimeAmount = .seconds(5)
  private static let lingerTime: TimeAmount = .seconds(2)
  private static let maxLingering: TimeAmount = .seconds(30)

  func checkTime(_ now: NIODeadline) {
    switch phase {
    case .reading: checkHead(now)
    case .collecting:
      if !exchange.requestIsDone, now - began >= Self.ownBodyTime { refuse(.timeout, unread: true) }
    case .refused:
      if now - began >= Self.ownBodyTime { linger() }
    case .exchanging(let upstream):
      if let upstream { checkExchange(now, upstream) }
      checkSession(now)
    case .tunnel:
      // Attack: a client closes its side of a tunnel, and the service ignores that.
      if inputHasEnded, now - lastActivity >= Self.idleTime { abort() } else { checkSession(now) }
    case .lingering(let lingering):
      let silence = now - lastActivity
      // Attack: one byte per second keeps a finished connection open.
      let isOver =
        lingering.responseIsOut
        ? silence >= Self.lingerTime || now - began >= Self.maxLingering : silence >= Self.idleTime
      if isOver { wire?.end() }
    case .looking(let head):
      if now - lastActivity >= Self.lookingTime {
        refuse(.storeUnavailable, reason: "the store does not answer", head: head)
      }
    case .own, .closed: break
    }
  }

  private func checkHead(_ now: NIODeadline) {
    if input.readableBytes == 0 || !takesAnswer {
      let limit =
        isQuiescing ? min(Self.idleTime, .nanoseconds(loop.proxy.idleWhileDraining.wholeNanoseconds)) : Self.idleTime
      if now - lastActivity >= limit { wire?.end() }
    } else if now - began >= Self.headTime {
      beginRecord(nil)
      exchange.requestIsDone = true
      refuse(.timeout, unread: true)
    }
  }

  /// Checks which side is silent: the client, which sends no body or accepts no response, or the upstream.
  private func checkExchange(_ now: NIODeadline, _ upstream: UpstreamConnection) {
    guard let route = exchange.route else { return }
    let silence = now - lastActivity
    if isTooSlow(now, route, upstream) { return refuseSlowBody() }
    let waitsForClient = !exchange.requestIsDone && upstream.isWritable && !exchange.answerHasBegun || !takesAnswer
    if waitsForClient {
      if silence >= Self.idleTime { refuseSlowBody() }
    } else if silence >= route.timeout {
      // Megabytes of a long body may wait in the system's buffers after the last byte was written. The upstream is
      // silent only since they have left.
      if exchange.hasBody, let since = upstream.sinceBytesMoved, since < route.timeout {
        lastActivity = now - since
      } else {
        upstreamFailed(.silent, upstream)
      }
    }
  }

  /// Whether fewer bytes of the body arrived in the current window than the route requires (`BodyRate`).
  ///
  /// Only time in which the gateway waits for the client counts, not time in which the upstream accepts no bytes. The
  /// first window of a client that waits for a 100 ends after the upstream's timeout at the earliest.
  private func isTooSlow(_ now: NIODeadline, _ route: RoutePlan, _ upstream: UpstreamConnection) -> Bool {
    guard let rate = route.bodyRate, !exchange.requestIsDone else { return false }
    guard upstream.isWritable else {
      exchange.bodyWindow.began = now
      return false
    }
    let awaitsContinue = exchange.expectsContinue && exchange.bodyWindow.bytes == 0
    guard now - exchange.bodyWindow.began >= (awaitsContinue ? max(route.timeout, rate.window) : rate.window) else {
      return false
    }
    defer { exchange.bodyWindow = (now, 0) }
    return exchange.bodyWindow.bytes < rate.bytes
  }

  private func refuseSlowBody() {
    dropUpstream()
    if exchange.answerHasBegun { abort() } else { refuse(.timeout, unread: true) }
  }

  /// Checks a bound session that has expired or may have ended.
  private func checkSession(_ now: NIODeadline) {
    guard let bound = boundSession else { return }
    if bound.isDoubted || !bound.session.isLive(at: loop.time(at: now).now) { checkBoundSession() }
  }
}
