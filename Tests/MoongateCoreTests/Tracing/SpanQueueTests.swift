import Testing

@testable import MoongateCore

@Suite struct SpanQueueTests {
  private func span(_ name: String = "work") -> SpanRecord {
    SpanRecord(name, at: TracePlace(high: 1, low: 2, span: 3), parent: 0, kind: .internal, start: 1, end: 2)
  }

  @Test func closedQueueRecordsNothing() {
    let spans = SpanQueue()
    spans.add(span())
    #expect(spans.take(10).isEmpty && spans.families.isEmpty)
  }

  /// Attack: requests without end while the collector is down. The spans would take all memory.
  @Test func isBounded() {
    let spans = SpanQueue()
    spans.isOpen = true
    for _ in 0..<10_000 { spans.add(span()) }
    var taken = 0
    while case let batch = spans.take(512), !batch.isEmpty { taken += batch.count }
    #expect(taken == 8192)
    #expect(spans.families[0].samples.map(\.value) == [Double(10_000 - 8192), 0])
  }

  @Test func spansKeepTheirOrderAndAreDroppedOnClose() {
    let spans = SpanQueue()
    spans.isOpen = true
    for name in ["one", "two", "three"] { spans.add(span(name)) }
    #expect(spans.take(2).map(\.name) == ["one", "two"])
    spans.isOpen = false
    spans.isOpen = true
    #expect(spans.take(2).isEmpty)
  }
}
