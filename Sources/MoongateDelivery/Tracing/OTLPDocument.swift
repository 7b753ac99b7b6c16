import Foundation
import MoongateCore

/// A batch of spans in OTLP JSON (OpenTelemetry protocol 1.x, ExportTraceServiceRequest). Bytes are hexadecimal, and
/// 64-bit numbers are strings.
package struct OTLPDocument: Encodable {
  private let resourceSpans: [ResourceSpans]

  /// - Parameters:
  ///   - service: the name of the service.
  ///   - instance: identifies this gateway instance.
  package init(_ spans: [SpanRecord], service: String, version: String, instance: String) {
    let resource = [("service.name", service), ("service.version", version), ("service.instance.id", instance)]
    resourceSpans = [
      ResourceSpans(
        resource: Resource(attributes: resource.map { Attribute(key: $0, value: Value(.text($1))) }),
        scopeSpans: [ScopeSpans(scope: Scope(name: "moongate", version: version), spans: spans.map(Span.init))])
    ]
  }

  package var json: [UInt8] {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return Array(try encoder.encode(self))
    }
  }

  private struct ResourceSpans: Encodable {
    let resource: Resource
    let scopeSpans: [ScopeSpans]
  }

  private struct Resource: Encodable { let attributes: [Attribute] }

  private struct Scope: Encodable {
    let name: String
    let version: String
  }

  private struct ScopeSpans: Encodable {
    let scope: Scope
    let spans: [Span]
  }

  private struct Attribute: Encodable {
    let key: String
    let value: Value
  }

  private struct Value: Encodable {
    var stringValue: String?
    var intValue: String?
    var boolValue: Bool?

    init(_ value: SpanRecord.Value) {
      switch value {
      case .text(let text): stringValue = text
      case .number(let number): intValue = String(number)
      case .flag(let flag): boolValue = flag
      }
    }
  }

  private struct Status: Encodable {
    let code: Int
    var message: String?
  }

  private struct Span: Encodable {
    let traceId: String
    let spanId: String
    let parentSpanId: String?
    let name: String
    let kind: Int
    let startTimeUnixNano: String
    let endTimeUnixNano: String
    let attributes: [Attribute]
    let status: Status

    init(_ span: SpanRecord) {
      traceId = span.place.trace
      spanId = TracePlace.hex(span.place.span)
      parentSpanId = span.parent == 0 ? nil : TracePlace.hex(span.parent)
      name = span.name
      kind = span.kind.rawValue
      startTimeUnixNano = String(span.start)
      endTimeUnixNano = String(max(span.start, span.end))
      attributes = span.attributes.map { Attribute(key: $0.key, value: Value($0.value)) }
      // Status 2 is an error; 0 is unset.
      status = Status(code: span.fault == nil ? 0 : 2, message: span.fault)
    }
  }
}
