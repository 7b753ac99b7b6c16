import Testing
import Tracing

@testable import MoongateCore

@Suite struct RecordingTracerTests {
  private let spans = SpanQueue()
  private var tracer: RecordingTracer { RecordingTracer(spans) }

  private struct Header: Extractor {
    func extract(key: String, from carrier: [String: String]) -> String? { carrier[key] }
  }

  private func place(_ traceparent: String) -> TracePlace? {
    var context = InstrumentationContext.topLevel
    tracer.extract(["traceparent": traceparent], into: &context, using: Header())
    return context.place
  }

  private static let recorded = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  @Test func traceParentIsValidated() throws {
    spans.isOpen = true
    let place = try #require(self.place(Self.recorded))
    #expect(place.trace == "4bf92f3577b34da6a3ce929d0e0e4736" && TracePlace.hex(place.span) == "00f067aa0ba902b7")
    #expect(self.place("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00") == nil, "its trace is not recorded")
    for malformed in [
      "", "00", "00-4bf9-00f0-01", "00-zbf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Self.recorded + "-1",
    ] {
      #expect(self.place(malformed) == nil, "\(malformed)")
    }
  }

  /// Attack: while `tracing` is off, the header comes from the client.
  @Test func traceHeaderIsIgnoredWhileTracingIsOff() { #expect(place(Self.recorded) == nil) }

  @Test func recordsOnlyBelowARecordedRequest() {
    spans.isOpen = true
    tracer.startSpan("nobody's").end()
    #expect(spans.take(1).isEmpty)
    var context = InstrumentationContext.topLevel
    context.place = place(Self.recorded)
    let span = tracer.startSpan("store write", context: context, ofKind: .client)
    span.attributes["moongate.provider"] = "pin"
    span.end()
    span.end()
    let ended = spans.take(10)
    #expect(
      ended.count == 1 && ended[0].name == "store write" && ended[0].kind == .client
        && ended[0].parent == context.place?.span)
    #expect(
      ended[0].place.span != ended[0].parent && ended[0].place.trace == context.place?.trace && ended[0].fault == nil)
    #expect(ended[0].attributes.map(\.key) == ["moongate.provider"] && ended[0].attributes[0].value == .text("pin"))
  }

  /// Attack: the text of an error reveals whom it was about, or what was typed.
  @Test func keepsOnlyTheTypeOfAnError() {
    struct Quoting: Error, CustomStringConvertible { let description = "+919876543210 typed 482915" }
    spans.isOpen = true
    var context = InstrumentationContext.topLevel
    context.place = place(Self.recorded)
    let span = tracer.startSpan("deliver sms", context: context)
    span.recordError(Quoting())
    span.end()
    #expect(spans.take(1).map(\.fault) == ["Quoting"])
  }
}
