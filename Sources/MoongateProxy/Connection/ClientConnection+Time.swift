import MoongateCore
import NIOCore

/// What happens when nothing happens. Called by the event loop ten times a second.
extension ClientConnection {
  private static let headTime: TimeAmount = .seconds(10)
  private static let ownBodyTime: TimeAmount = .seconds(10)
  private static let idleTime: TimeAmount = .seconds(60)
  private static let lookingTime: TimeAmount = .seconds(5)
  private static let lingerTime: TimeAmount = .seconds(2)
  private static let mostLingering: TimeAmount = .seconds(30)

  func checkTime(_ now: NIODeadline) {
    switch phase {
    case .reading:
      if input.readableBytes == 0 || !takesAnswer {
        let most =
          isQuiescing ? min(Self.idleTime, .nanoseconds(loop.proxy.idleWhileDraining.wholeNanoseconds)) : Self.idleTime
        if now - lastActivity >= most { wire?.end() }
      } else if now - began >= Self.headTime {
        beginRecord(nil)
        exchange.requestIsDone = true
        refuse(.timeout, unread: true)
      }
    case .own:
      if !exchange.requestIsDone, now - began >= Self.ownBodyTime { refuse(.timeout, unread: true) }
    case .refused:
      if now - began >= Self.ownBodyTime { linger() }
    case .exchanging:
      checkExchange(now)
      checkSession(now)
    case .tunnel:
      // Attack: a client that ends its side of a tunnel, with a service that does not mind.
      if inputHasEnded, now - lastActivity >= Self.idleTime { abort() } else { checkSession(now) }
    case .lingering:
      let silence = now - lastActivity
      // Attack: a byte every second to keep a connection that is over.
      let isOver =
        answerIsOut ? silence >= Self.lingerTime || now - began >= Self.mostLingering : silence >= Self.idleTime
      if isOver { wire?.end() }
    case .looking:
      if now - lastActivity >= Self.lookingTime {
        refuse(.storeUnavailable, reason: "the store does not answer", head: waitingHead)
      }
    case .closed: break
    }
  }

  /// Whose silence it is: the client's that does not send its body or does not take its answer, or the upstream's.
  private func checkExchange(_ now: NIODeadline) {
    guard let route = exchange.route, let upstream else { return }
    let silence = now - lastActivity
    if isTooSlow(now, route, upstream) { return refuseSlowBody() }
    let waitsForClient = !exchange.requestIsDone && upstream.isWritable && !exchange.answerHasBegun || !takesAnswer
    if waitsForClient {
      if silence >= Self.idleTime { refuseSlowBody() }
    } else if silence >= route.timeout {
      // Of a long body, megabytes wait in the system's buffers when we have written the last byte: the upstream is
      // silent only since they have left.
      if exchange.hasBody, let since = upstream.sinceBytesMoved, since < route.timeout {
        lastActivity = now - since
      } else {
        upstreamFailed(.silent, upstream)
      }
    }
  }

  /// Whether less of the body came in the window that ends now than the route asks for (`BodyRate`).
  ///
  /// Only time in which the gateway waits for the client counts, not that in which the upstream takes no more. A client
  /// that waits for a 100 has the upstream's longest silence before its first window ends.
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

  /// A session that a tunnel or a stream lives by may come to its end by itself.
  private func checkSession(_ now: NIODeadline) {
    guard let session = boundSession else { return }
    if sessionIsDoubted || !session.isLive(at: loop.time(at: now).now) { checkBoundSession() }
  }
}
