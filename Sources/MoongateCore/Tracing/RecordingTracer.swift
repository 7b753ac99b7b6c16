import Synchronization
import Tracing

/// Records spans of requests that are sampled. Other work creates no spans: work without a request, or for a request
/// that is not sampled.
package struct RecordingTracer: Tracer {
  private let spans: SpanQueue

  package init(_ spans: SpanQueue) { self.spans = spans }

  /// More than five parameters: required by the protocol `Tracer`.
  package func startSpan<Instant: TracerInstant>(
    _ operationName: String, context: @autoclosure () -> InstrumentationContext, ofKind kind: SpanKind,
    at instant: @autoclosure () -> Instant,
    function: String, file fileID: String, line: UInt
  ) -> RecordedSpan {
    let context = context()
    guard spans.isOpen, let parent = context.place else { return .none }
    return RecordedSpan(
      operationName, in: context, below: parent, kind: kind, start: instant().nanosecondsSinceEpoch, into: spans)
  }

  package func forceFlush() {}

  /// Reads the trace context of a request from its `traceparent` header, which the proxy has written.
  package func extract<Carrier, Extract: Extractor>(
    _ carrier: Carrier, into context: inout InstrumentationContext, using extractor: Extract
  )
  where Extract.Carrier == Carrier {
    // Attack: while tracing is off, the header comes from the client.
    guard spans.isOpen else { return }
    context.place = extractor.extract(key: "traceparent", from: carrier).flatMap(TracePlace.init(recorded:))
  }

  /// Trace contexts are not sent to other sites.
  package func inject<Carrier, Inject: Injector>(
    _ context: InstrumentationContext, into carrier: inout Carrier, using injector: Inject
  )
  where Inject.Carrier == Carrier {}
}

/// A span that is being recorded, or `none`, which records nothing.
package final class RecordedSpan: Span {
  /// The span for work that is not recorded.
  package static let none = RecordedSpan()

  private struct State {
    var name: String
    var attributes: SpanAttributes = [:]
    var fault: String?
  }

  package let context: InstrumentationContext
  private let parent: UInt64
  private let kind: SpanKind
  private let start: UInt64
  private let state: Mutex<State>
  /// Set until the span ends.
  private let spans: Mutex<SpanQueue?>

  private init() {
    context = .topLevel
    parent = 0
    kind = .internal
    start = 0
    state = Mutex(State(name: ""))
    spans = Mutex(nil)
  }

  /// More than five parameters: everything that is fixed when a span begins.
  fileprivate init(
    _ name: String, in context: InstrumentationContext, below parent: TracePlace, kind: SpanKind, start: UInt64,
    into spans: SpanQueue
  ) {
    var own = context
    // Span IDs must be unique, but not secret.
    own.place = TracePlace(high: parent.high, low: parent.low, span: UInt64.random(in: 1...UInt64.max))
    self.context = own
    self.parent = parent.span
    self.kind = kind
    self.start = start
    state = Mutex(State(name: name))
    self.spans = Mutex(spans)
  }

  package var operationName: String {
    get { state.withLock { $0.name } }
    set { state.withLock { $0.name = newValue } }
  }

  package var attributes: SpanAttributes {
    get { state.withLock { $0.attributes } }
    set { state.withLock { $0.attributes = newValue } }
  }

  package var isRecording: Bool { spans.withLock { $0 != nil } }

  package func setStatus(_ status: SpanStatus) {
    guard status.code == .error else { return }
    state.withLock { $0.fault = status.message ?? "failed" }
  }

  package func addEvent(_ event: SpanEvent) {}

  package func addLink(_ link: SpanLink) {}

  /// Records only the error's type, because its text may contain personal data.
  package func recordError<Instant: TracerInstant>(
    _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
  ) {
    state.withLock { $0.fault = "\(type(of: error))" }
  }

  package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
    let queue = spans.withLock { queue in
      defer { queue = nil }
      return queue
    }
    guard let queue, let place = context.place else { return }
    let ended = state.withLock { $0 }
    var attributes: [(key: String, value: SpanRecord.Value)] = []
    ended.attributes.forEach { key, value in
      switch value {
      case .string(let text): attributes.append((key, .text(text)))
      case .int64(let number): attributes.append((key, .number(Int(number))))
      case .bool(let flag): attributes.append((key, .flag(flag)))
      default: break
      }
    }
    let kind: SpanRecord.Kind =
      switch self.kind {
      case .client: .client
      case .server: .server
      default: .internal
      }
    queue.add(
      SpanRecord(
        ended.name, at: place, parent: parent, kind: kind, start: start, end: instant().nanosecondsSinceEpoch,
        attributes: attributes.sorted { $0.key < $1.key }, fault: ended.fault))
  }
}
