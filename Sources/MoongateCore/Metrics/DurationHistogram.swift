/// A histogram of durations from 0.1 ms to 10 s: of requests and calls, not of connections.
package struct DurationHistogram: Sendable, Equatable {
  /// The upper bounds of the buckets, in nanoseconds. A last bucket holds longer durations.
  package static let bounds: [Int64] = [
    100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000,
    250_000_000, 500_000_000,
    1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000,
  ]

  private var counts: [UInt64]
  private var sum: Int64 = 0

  package init() { counts = Array(repeating: 0, count: Self.bounds.count + 1) }

  package var isEmpty: Bool { counts.allSatisfy { $0 == 0 } }

  package mutating func record(nanoseconds: Int64) {
    var bucket = 0
    while bucket < Self.bounds.count, nanoseconds > Self.bounds[bucket] { bucket += 1 }
    counts[bucket] += 1
    sum &+= nanoseconds
  }

  package mutating func merge(_ other: Self) {
    for index in counts.indices { counts[index] += other.counts[index] }
    sum &+= other.sum
  }

  /// The samples of a histogram in seconds, with cumulative buckets.
  package func samples(_ labels: [(name: String, value: String)]) -> [MetricFamily.Sample] {
    var samples: [MetricFamily.Sample] = []
    var total: UInt64 = 0
    for (index, count) in counts.enumerated() {
      total += count
      let end = index < Self.bounds.count ? String(Double(Self.bounds[index]) / 1e9) : "+Inf"
      samples.append(MetricFamily.Sample(labels + [("le", end)], Double(total), suffix: "_bucket"))
    }
    samples.append(MetricFamily.Sample(labels, Double(sum) / 1e9, suffix: "_sum"))
    samples.append(MetricFamily.Sample(labels, Double(total), suffix: "_count"))
    return samples
  }
}
