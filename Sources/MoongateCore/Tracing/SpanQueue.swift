import Synchronization

/// A bounded queue of spans to be sent. It never blocks. Spans that do not fit are dropped and counted.
package final class SpanQueue: Sendable {
  /// The maximum number of waiting spans: a few megabytes.
  private static let most = 8192

  private struct State {
    var waiting: [SpanRecord] = []
    var dropped = 0
    var sent = 0
  }

  private let state = Mutex(State())
  private let isOpenFlag = Atomic<Bool>(false)

  package init() {}

  /// Whether spans are recorded (`tracing` in gateway.lua).
  package var isOpen: Bool {
    get { isOpenFlag.load(ordering: .relaxed) }
    set {
      isOpenFlag.store(newValue, ordering: .relaxed)
      if !newValue { state.withLock { $0.waiting = [] } }
    }
  }

  package func add(_ span: SpanRecord) {
    guard isOpen else { return }
    state.withLock { state in
      if state.waiting.count < Self.most { state.waiting.append(span) } else { state.dropped += 1 }
    }
  }

  /// Removes and returns the oldest spans, at most this many.
  package func take(_ count: Int) -> [SpanRecord] {
    state.withLock { state in
      let taken = Array(state.waiting.prefix(count))
      state.waiting.removeFirst(taken.count)
      return taken
    }
  }

  /// Counts spans that the collector has accepted, or that were lost.
  package func settle(_ count: Int, wereSent: Bool) {
    state.withLock { if wereSent { $0.sent += count } else { $0.dropped += count } }
  }

  /// The metrics for Prometheus; none before the first span.
  package var families: [MetricFamily] {
    let (sent, dropped) = state.withLock { ($0.sent, $0.dropped) }
    guard isOpen || sent + dropped > 0 else { return [] }
    return [
      MetricFamily(
        .traceSpansTotal,
        [
          MetricFamily.Sample([("outcome", "dropped")], Double(dropped)),
          MetricFamily.Sample([("outcome", "sent")], Double(sent)),
        ])
    ]
  }
}
