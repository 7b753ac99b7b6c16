import MoongateCore
import NIOCore

/// What happens when nothing happens. Called by the event loop ten times a second.
extension ClientConnection {
  private static let headTime: TimeAmount = .seconds(10)
  private static let ownBodyTime: TimeAmount = .seconds(10)
  private static let idleTime: TimeAmount = .seconds(60)
  private static let lookingTime: TimeAmount = .seconds(5)
  private static let lingerTime: TimeAmount = .seconds(2)

  func checkTime(_ now: NIODeadline) {
    switch phase {
    case .reading:
      if input.readableBytes == 0 {
        if now - lastActivity >= Self.idleTime { context?.close(promise: nil) }
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
    case .tunnel: checkSession(now)
    case .lingering:
      if now - lastActivity >= (answerIsOut ? Self.lingerTime : Self.idleTime) { context?.close(promise: nil) }
    case .looking:
      if now - lastActivity >= Self.lookingTime { refuse(.storeUnavailable, detail: ["reason": "the store does not answer"], head: waitingHead) }
    case .closed: break
    }
  }

  /// Whose silence it is: the client's that does not send its body or does not take its answer, or the upstream's.
  private func checkExchange(_ now: NIODeadline) {
    guard let route = exchange.route, let upstream else { return }
    let silence = now - lastActivity
    let waitsForClient = !exchange.requestIsDone && upstream.isWritable && !exchange.answerHasBegun || !takesAnswer
    if waitsForClient {
      guard silence >= Self.idleTime else { return }
      dropUpstream()
      if exchange.answerHasBegun { abort() } else { refuse(.timeout, unread: true) }
    } else if silence >= route.timeout {
      upstreamFailed(.silent, upstream)
    }
  }

  /// A session that a tunnel or a stream lives by may come to its end by itself.
  private func checkSession(_ now: NIODeadline) {
    guard let session = boundSession else { return }
    if !session.isLive(at: loop.time(at: now).now) { checkBoundSession() }
  }
}
