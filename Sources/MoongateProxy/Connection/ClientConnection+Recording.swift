import MoongateCore
import NIOCore

/// What remains of an exchange: numbers, and a line of the access log.
extension ClientConnection {
  /// How much of the log an event loop keeps to itself, in bytes.
  private static let mostLines = 256 * 1024

  /// Begins the record of an exchange. Without a head it was no request that could be read, and the exchange is a new one.
  func beginRecord(_ head: RequestHead?) {
    if head == nil { exchange = Exchange() }
    exchange.isOpen = true
    exchange.startedAt = began
    guard loop.proxy.accessLog != nil else { return }
    loggedHead.isThere = false
    guard let head else { return }
    let bytes = head.bytes.readableBytesUInt8Span
    loggedHead.take(head, bytes)
    exchange.trace = TraceContext(head, bytes, ids: &loop.traceIDs)
  }

  /// Counts the exchange, and writes its line; once.
  func noteEnd() {
    guard exchange.isOpen else { return }
    exchange.isOpen = false
    let took = (loop.now - exchange.startedAt).nanoseconds
    let outcome = exchange.outcome
    if outcome == .tunnel {
      loop.numbers.tunnels -= 1
    }
    loop.numbers.count(exchange.place, outcome, status: exchange.status, nanoseconds: took)
    guard loop.proxy.accessLog != nil else { return }
    loop.lines.add(
      loggedHead,
      AccessLines.Entry(
        at: loop.time(at: loop.now).now, client: exchange.client ?? peer, wire: isStream ? .http2 : .http1, status: exchange.status, outcome: outcome,
        answerBytes: exchange.answerBytes, nanoseconds: took, route: loop.numbers.routes[exchange.place].label, account: exchange.account,
        decision: exchange.decision?.text, trace: exchange.trace))
    if loop.lines.bytes.count >= Self.mostLines { loop.handOverLines() }
  }
}
