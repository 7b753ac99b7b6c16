import MoongateCore
import NIOCore
import Tracing

/// The records of an exchange: metrics, spans, and a line of the access log.
extension ClientConnection {
  /// The maximum number of bytes of the log that an event loop collects.
  private static let maxLines = 256 * 1024

  /// Starts the record of an exchange.
  /// - Parameter head: nil if the request could not be read. The exchange is then a new one.
  func beginRecord(_ head: RequestHead?) {
    if head == nil { exchange = Exchange() }
    exchange.isOpen = true
    exchange.startedAt = began
    let isLogged = loop.proxy.accessLog != nil
    guard isLogged || loop.proxy.dependencies.spans.isOpen else { return }
    loggedHead.isThere = false
    let plan = loop.currentPlan()
    guard let head, isLogged || plan.tracedShare != nil else { return }
    let bytes = head.bytes.readableBytesUInt8Span
    if isLogged { loggedHead.take(head, bytes) }
    let sampling = plan.tracedShare.map { TraceContext.Sampling(share: $0, isTrusted: isTrusted(plan)) }
    let trace = TraceContext(head, bytes, ids: &loop.traceIDs, sampling: sampling)
    exchange.trace = trace
    if trace.isRecorded { exchange.method = String(head.text(head.methodName).prefix(32)) }
  }

  /// Records when the access decision was made.
  func recordDecisionTime() {
    if exchange.trace?.isRecorded ?? false { exchange.decidedAt = loop.now }
  }

  /// Records the spans of a finished exchange: the request, the access decision and the upstream.
  private func recordSpans(_ trace: TraceContext) {
    let (end, now) = (DefaultTracerClock.now.nanosecondsSinceEpoch, loop.now)
    let moment = { (time: NIODeadline) in end &- UInt64(max(0, (now - time).nanoseconds)) }
    let spans = loop.proxy.dependencies.spans
    let route = loop.metrics.routes[exchange.metricsIndex].label
    var attributes: [(key: String, value: SpanRecord.Value)] = [
      ("http.request.method", .text(exchange.method)), ("http.route", .text(route)),
      ("moongate.outcome", .text(exchange.outcome.name)),
      ("network.protocol.version", .text(isStream ? "2" : "1.\(exchange.minorVersion)")),
    ]
    if exchange.status > 0 { attributes.append(("http.response.status_code", .number(exchange.status))) }
    if let decision = exchange.decision { attributes.append(("moongate.decision", .text(decision.text))) }
    let fault = exchange.status >= 500 || exchange.outcome == .aborted ? exchange.outcome.name : nil
    spans.add(
      SpanRecord(
        "\(exchange.method) \(route)", at: trace.place, parent: trace.parent, kind: .server,
        start: moment(exchange.startedAt), end: end,
        attributes: attributes, fault: fault))
    guard let decidedAt = exchange.decidedAt else { return }
    let judged = TracePlace(high: trace.high, low: trace.low, span: loop.traceIDs.next())
    spans.add(
      SpanRecord(
        "judge", at: judged, parent: trace.request, kind: .internal, start: moment(exchange.startedAt),
        end: moment(decidedAt)))
    guard let plan = exchange.route else { return }
    let upstream = plan.rule.upstreams.map { "\($0.host):\($0.port)" }.joined(separator: " ")
    spans.add(
      SpanRecord(
        "upstream", at: TracePlace(high: trace.high, low: trace.low, span: trace.span), parent: trace.request,
        kind: .client,
        start: moment(decidedAt), end: end, attributes: [("server.address", .text(upstream))], fault: fault))
  }

  /// Counts the exchange and writes its log line, once.
  func recordEnd() {
    guard exchange.isOpen else { return }
    exchange.isOpen = false
    let took = (loop.now - exchange.startedAt).nanoseconds
    let outcome = exchange.outcome
    if outcome == .tunnel {
      loop.metrics.tunnels -= 1
    }
    loop.metrics.count(exchange.metricsIndex, outcome, status: exchange.status, nanoseconds: took)
    if let trace = exchange.trace, trace.isRecorded { recordSpans(trace) }
    guard loop.proxy.accessLog != nil else { return }
    loop.lines.add(
      loggedHead,
      AccessLines.Entry(
        at: loop.time(at: loop.now).now, client: exchange.client ?? peer, wire: isStream ? .http2 : .http1,
        status: exchange.status, outcome: outcome,
        answerBytes: exchange.answerBytes, nanoseconds: took, route: loop.metrics.routes[exchange.metricsIndex].label,
        account: exchange.account,
        decision: exchange.decision?.text, trace: exchange.trace))
    if loop.lines.bytes.count >= Self.maxLines { loop.handOverLines() }
  }
}
