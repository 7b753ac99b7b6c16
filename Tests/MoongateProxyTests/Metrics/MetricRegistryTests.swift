import CoreMetrics
import MoongateCore
import Testing

@testable import MoongateProxy

/// The backend of swift-metrics and the Prometheus text format.
@Suite struct MetricRegistryTests {
  @Test func recordedMetricsAreExposed() {
    let registry = MetricRegistry()
    let counter = Counter(label: "mail.sent", dimensions: [("outcome", "a \"b\"\\\n")], factory: registry)
    counter.increment(by: 2)
    Counter(label: "mail.sent", dimensions: [("outcome", "a \"b\"\\\n")], factory: registry).increment()
    Gauge(label: "depth", factory: registry).record(1.5)
    Timer(label: "took", factory: registry).recordNanoseconds(2_000_000)
    let text = MetricText.write(registry.families)
    #expect(text.contains("# TYPE mail_sent counter\nmail_sent{outcome=\"a \\\"b\\\"\\\\\\n\"} 3\n"))
    #expect(text.contains("# TYPE depth gauge\ndepth 1.5\n"))
    #expect(text.contains("took_bucket{le=\"0.001\"} 0\n") && text.contains("took_bucket{le=\"0.0025\"} 1\n"))
    #expect(text.contains("took_bucket{le=\"+Inf\"} 1\ntook_sum 0.002\ntook_count 1\n"))
  }

  /// Attack: labels chosen by a client.
  @Test func seriesAreBounded() {
    let registry = MetricRegistry()
    for number in 0..<6000 { Counter(label: "c", dimensions: [("n", "\(number)")], factory: registry).increment() }
    #expect(registry.families.first?.samples.count == 5000)
  }

  @Test func metricsOfEventLoopsAreMerged() {
    var one = EventLoopMetrics()
    var two = EventLoopMetrics()
    one.count(one.index(of: "/a"), .passed, status: 200, nanoseconds: 1000)
    two.count(two.index(of: "/b"), .passed, status: 200, nanoseconds: 1000)
    two.count(two.index(of: "/a"), .failed, status: 503, nanoseconds: 1000)
    two.count(EventLoopMetrics.unrouted, .refused, status: 0, nanoseconds: 1000)
    one.merge(two)
    let text = MetricText.write(one.families)
    #expect(text.contains("moongate_requests_total{route=\"/a\",outcome=\"passed\",status=\"2xx\"} 1\n"))
    #expect(text.contains("moongate_requests_total{route=\"/a\",outcome=\"failed\",status=\"5xx\"} 1\n"))
    #expect(text.contains("moongate_requests_total{route=\"/b\",outcome=\"passed\",status=\"2xx\"} 1\n"))
    #expect(text.contains("moongate_requests_total{route=\"(none)\",outcome=\"refused\",status=\"1xx\"} 1\n"))
  }

  /// Endless configuration changes do not create endless labels.
  @Test func labelsOfRoutesAreBounded() {
    var metrics = EventLoopMetrics()
    for number in 0..<5000 { _ = metrics.index(of: "/\(number)") }
    #expect(metrics.routes.count == 1000 && metrics.index(of: "/4999") == EventLoopMetrics.unrouted)
  }
}
