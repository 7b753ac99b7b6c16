import MoongateCore
import NIOCore
import Tracing

/// The records of an exchange: metrics, spans, and a line of the access log.
extension ClientConnection {
  /// The maximum number of bytes of the log that an event loop collects.
  private static let maxLines = 256 * 1024

  /// Starts the record of an exchange.
  /// - Parameter head: nil if the request could not be read.
  func beginRecord(_ head: RequestHead?) {
    state.exchange.isOpen = true
    state.exchange.startedAt = state.began
    let isLogged = loop.shared.accessLog != nil
    guard isLogged || loop.shared.dependencies.spans.isOpen else { return }
    loggedHead.isThere = false
    let plan = loop.currentPlan()
    guard let head, isLogged || plan.tracedShare != nil else { return }
    let bytes = head.bytes.readableBytesUInt8Span
    if isLogged { loggedHead.take(head, bytes) }
    let sampling = plan.tracedShare.map { TraceContext.Sampling(share: $0, isTrusted: isTrusted(plan)) }
    let trace = TraceContext(head, bytes, ids: &loop.traceIDs, sampling: sampling)
    state.exchange.trace = trace
    if trace.isRecorded { state.exchange.method = String(head.text(head.methodName).prefix(32)) }
  }

  /// Records when the access decision was made, and which service is asked.
  func recordDecision(for route: RoutePlan) {
    guard state.exchange.trace?.isRecorded ?? false else { return }
    let service = route.rule.upstreams.map { "\($0.host):\($0.port)" }.joined(separator: " ")
    state.exchange.asked = (loop.now, service)
  }

  /// Records the spans of a finished exchange: the request, the access decision and the upstream.
  private func recordSpans(_ trace: TraceContext) {
    let (end, now) = (DefaultTracerClock.now.nanosecondsSinceEpoch, loop.now)
    let moment = { (time: NIODeadline) in end &- UInt64(max(0, (now - time).nanoseconds)) }
    let spans = loop.shared.dependencies.spans
    let route = loop.metrics.routes[state.exchange.metricsIndex].label
    var attributes: [(key: String, value: SpanRecord.Value)] = [
      ("http.request.method", .text(state.exchange.method)), ("http.route", .text(route)),
      ("moongate.outcome", .text(state.exchange.outcome.name)),
      ("network.protocol.version", .text(isStream ? "2" : "1.\(state.exchange.minorVersion)")),
    ]
    if state.exchange.status > 0 { attributes.append(("http.response.status_code", .number(state.exchange.status))) }
    if let decision = state.exchange.decision { attributes.append(("moongate.decision", .text(decision.text))) }
    let fault = state.exchange.status >= 500 || state.exchange.outcome == .aborted ? state.exchange.outcome.name : nil
    spans.add(
      SpanRecord(
        "\(state.exchange.method) \(route)", at: trace.place, parent: trace.parent, kind: .server,
        start: moment(state.exchange.startedAt), end: end,
        attributes: attributes, fault: fault))
    guard let asked = state.exchange.asked else { return }
    let judged = TracePlace(high: trace.high, low: trace.low, span: loop.traceIDs.next())
    spans.add(
      SpanRecord(
        "judge", at: judged, parent: trace.request, kind: .internal, start: moment(state.exchange.startedAt),
        end: moment(asked.at)))
    spans.add(
      SpanRecord(
        "upstream", at: TracePlace(high: trace.high, low: trace.low, span: trace.span), parent: trace.request,
        kind: .client,
        start: moment(asked.at), end: end, attributes: [("server.address", .text(asked.service))], fault: fault))
  }

  /// Counts the exchange and writes its log line, once.
  func recordEnd() {
    guard state.exchange.isOpen else { return }
    state.exchange.isOpen = false
    let took = (loop.now - state.exchange.startedAt).nanoseconds
    let outcome = state.exchange.outcome
    if outcome == .tunnel {
      loop.metrics.tunnels -= 1
    }
    loop.metrics.count(state.exchange.metricsIndex, outcome, status: state.exchange.status, nanoseconds: took)
    if let trace = state.exchange.trace, trace.isRecorded { recordSpans(trace) }
    guard loop.shared.accessLog != nil else { return }
    loop.lines.add(
      loggedHead,
      AccessLines.Entry(
        at: loop.time(at: loop.now).now, client: state.exchange.client ?? peer, wire: isStream ? .http2 : .http1,
        status: state.exchange.status, outcome: outcome,
        answerBytes: state.exchange.answerBytes, nanoseconds: took,
        route: loop.metrics.routes[state.exchange.metricsIndex].label,
        account: state.exchange.account,
        decision: state.exchange.decision?.text, trace: state.exchange.trace))
    if loop.lines.bytes.count >= Self.maxLines { loop.handOverLines() }
  }
}
