import MoongateCore
import NIOCore

/// Timeouts. The event loop checks them ten times a second.
extension ConnectionState {
  private static let headTime: TimeAmount = .seconds(10)
  private static let ownBodyTime: TimeAmount = .seconds(10)
  private static let idleTime: TimeAmount = .seconds(60)
  private static let lookingTime: TimeAmount = .seconds(5)
  private static let lingerTime: TimeAmount = .seconds(2)
  private static let maxLingering: TimeAmount = .seconds(30)

  /// - Parameters:
  ///   - takesAnswer: whether the client accepts more bytes.
  ///   - idleWhileDraining: how long an idle connection stays open while the gateway shuts down.
  mutating func checkTime(
    _ now: NIODeadline, takesAnswer: Bool, idleWhileDraining: TimeAmount
  ) -> ConnectionAction {
    switch phase {
    case .reading:
      return checkHead(now, takesAnswer, idleWhileDraining)
    case .collecting:
      let isOver = !exchange.requestIsDone && now - began >= Self.ownBodyTime
      return isOver ? .refuse(.timeout, head: nil) : .wait
    case .refused: return now - began >= Self.ownBodyTime ? .linger : .wait
    case .exchanging(let service): return checkExchange(now, service, takesAnswer)
    // Attack: a client closes its side of a tunnel, and the service ignores that.
    case .tunnel: return inputHasEnded && now - lastActivity >= Self.idleTime ? .abort : .wait
    case .lingering(let lingering):
      let silence = now - lastActivity
      // Attack: one byte per second keeps a finished connection open.
      let isOver =
        lingering.responseIsOut
        ? silence >= Self.lingerTime || now - began >= Self.maxLingering : silence >= Self.idleTime
      if isOver { return lingering.close }
      return lingering.isCut && lingering.responseIsOut ? .reset(waits: true) : .wait
    case .looking(let head):
      return now - lastActivity >= Self.lookingTime ? .serveWithoutStore(head) : .wait
    case .own, .closed: return .wait
    }
  }

  private mutating func checkHead(_ now: NIODeadline, _ takesAnswer: Bool, _ idleWhileDraining: TimeAmount)
    -> ConnectionAction
  {
    if input.readableBytes == 0 || !takesAnswer {
      let silence = now - lastActivity
      if silence >= Self.idleTime { return .close }
      // A slow client may not have accepted all of the last response yet. A request that waits for that is still
      // answered.
      let isIdle = input.readableBytes == 0 && silence >= idleWhileDraining
      return isQuiescing && isIdle ? closeWhenWritten() : .wait
    }
    return now - began >= Self.headTime ? refuseUnreadable(.timeout) : .wait
  }

  /// Checks which side is silent: the client, which sends no body or accepts no response, or the upstream.
  private mutating func checkExchange(
    _ now: NIODeadline, _ service: ServiceExchange, _ takesAnswer: Bool
  ) -> ConnectionAction {
    guard let upstream = service.upstream else { return .wait }
    let route = service.route
    let silence = now - lastActivity
    if isTooSlow(now, route, upstream) { return refuseBody(.timeout, of: service, upstream) }
    let waitsForClient = !exchange.requestIsDone && upstream.isWritable && !exchange.answerHasBegun || !takesAnswer
    // The client of a call may send its messages at any time, and the service may wait for them.
    let limit = exchange.isCall && takesAnswer ? max(Self.idleTime, route.timeout) : Self.idleTime
    if waitsForClient { return silence >= limit ? refuseBody(.timeout, of: service, upstream) : .wait }
    guard silence >= route.timeout else { return .wait }
    // An event stream is silent while nothing happens. Keep-alive detects a client or an upstream that has vanished.
    // Attack: a client closes its side to leave the stream open forever.
    if exchange.isEventStream, !inputHasEnded { return .wait }
    // Megabytes of a long body may wait in the system's buffers after the last byte was written. The upstream is silent
    // only since they have left.
    if exchange.hasBody, let since = upstream.sinceBytesMoved, since < route.timeout {
      lastActivity = now - since
      return .wait
    }
    return .failSilent(upstream)
  }

  /// Whether fewer bytes of the body arrived in the current window than the route requires (`BodyRate`).
  ///
  /// Only time in which the gateway waits for the client counts, not time in which the upstream accepts no bytes. The
  /// first window of a client that waits for a 100 ends after the upstream's timeout at the earliest. A call of gRPC
  /// has no usual rate.
  private mutating func isTooSlow(_ now: NIODeadline, _ route: RoutePlan, _ upstream: UpstreamConnection) -> Bool {
    guard let rate = route.bodyRate, !exchange.requestIsDone, !exchange.isCall || route.rule.bodyRate != .standard
    else { return false }
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
}
