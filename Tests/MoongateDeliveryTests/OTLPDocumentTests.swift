import MoongateCore
import Testing

@testable import MoongateDelivery

@Suite struct OTLPDocumentTests {
  @Test func documentFollowsOTLPJSON() throws {
    let span = SpanRecord(
      "GET /", at: TracePlace(high: 1, low: 0xabc, span: 0xf), parent: 2, kind: .server,
      start: 1_700_000_000_000_000_001,
      end: 1_700_000_000_000_000_005, attributes: [("a", .text("x")), ("b", .number(200)), ("c", .flag(true))],
      fault: "timeout")
    let root = SpanRecord(
      "judge", at: TracePlace(high: 1, low: 0xabc, span: 1), parent: 0, kind: .internal, start: 9, end: 8)
    let json = String(
      decoding: try OTLPDocument([span, root], service: "S", version: "1", instance: "I").json, as: UTF8.self)
    #expect(
      json == """
        {"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"S"}},{"key":"service.version","value":\
        {"stringValue":"1"}},{"key":"service.instance.id","value":{"stringValue":"I"}}]},"scopeSpans":[{"scope":{"name":"moongate","version":"1"},\
        "spans":[{"attributes":[{"key":"a","value":{"stringValue":"x"}},{"key":"b","value":{"intValue":"200"}},{"key":"c","value":{"boolValue":true}}],\
        "endTimeUnixNano":"1700000000000000005","kind":2,"name":"GET /","parentSpanId":"0000000000000002","spanId":"000000000000000f",\
        "startTimeUnixNano":"1700000000000000001","status":{"code":2,"message":"timeout"},"traceId":"00000000000000010000000000000abc"},\
        {"attributes":[],"endTimeUnixNano":"9","kind":1,"name":"judge","spanId":"0000000000000001","startTimeUnixNano":"9","status":{"code":0},\
        "traceId":"00000000000000010000000000000abc"}]}]}]}
        """)
  }
}
