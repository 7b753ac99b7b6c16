import Tracing

/// More than five parameters: most have defaults, and the compiler supplies `isolation`.
/// Runs the body as a span of its request. If the request is not traced, only runs the body.
/// - Parameters:
///   - name: the span's name, from a small set that does not depend on client input.
///   - attributes: see `SpanRecord.attributes`.
///   - outcome: the value of the span's `moongate.outcome`.
package func traced<Value, Fault: Error>(
  _ name: @autoclosure () -> String, _ kind: SpanRecord.Kind = .internal,
  _ attributes: @autoclosure () -> [(String, String)] = [],
  isolation: isolated (any Actor)? = #isolation, outcome: (Value) -> String? = { _ in nil },
  _ body: () async throws(Fault) -> Value
) async throws(Fault) -> Value {
  guard let current = InstrumentationContext.current, current.place != nil else { return try await body() }
  let span = InstrumentationSystem.tracer.startSpan(
    name(), context: current, ofKind: kind == .client ? .client : .internal)
  defer { span.end() }
  for (key, value) in attributes() { span.attributes[key] = value }
  let result: Result<Value, Fault> = await InstrumentationContext.withValue(span.context) {
    do throws(Fault) { return .success(try await body()) } catch { return .failure(error) }
  }
  switch result {
  case .success(let value):
    if let outcome = outcome(value) { span.attributes["moongate.outcome"] = outcome }
  case .failure(let fault): span.recordError(fault)
  }
  return try result.get()
}
