/// A metric and its samples, in Prometheus terms (text exposition format 0.0.4).
package struct MetricFamily: Sendable {
  /// The Prometheus type of the metric.
  package enum Kind: String, Sendable {
    case counter, gauge, histogram
  }

  /// One sample.
  package struct Sample: Sendable {
    /// The suffix of the metric's name: `_bucket`, `_sum` or `_count` for histograms.
    package let suffix: String
    package let labels: [(name: String, value: String)]
    package let value: Double

    package init(_ labels: [(name: String, value: String)] = [], _ value: Double, suffix: String = "") {
      self.suffix = suffix
      self.labels = labels
      self.value = value
    }
  }

  package let name: String
  package let kind: Kind
  package let help: String
  package var samples: [Sample]

  package init(_ name: String, _ kind: Kind, _ help: String, _ samples: [Sample]) {
    self.name = name
    self.kind = kind
    self.help = help
    self.samples = samples
  }

  package init(_ definition: MetricDefinition, _ samples: [Sample]) {
    self.init(definition.name, definition.kind, definition.help, samples)
  }

  /// A metric with a single value.
  package init(_ definition: MetricDefinition, _ value: some BinaryInteger) {
    self.init(definition, [Sample([], Double(value))])
  }
}

/// Writes metrics in the Prometheus text format.
package enum MetricText {
  package static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

  /// Writes each family once, in the given order.
  package static func write(_ families: [MetricFamily]) -> String {
    var text = ""
    for family in families {
      text += "# HELP \(family.name) \(escaped(family.help))\n# TYPE \(family.name) \(family.kind.rawValue)\n"
      for sample in family.samples {
        text += family.name + sample.suffix
        if !sample.labels.isEmpty {
          text +=
            "{"
            + sample.labels.map { "\($0.name)=\"\(escaped($0.value).replacing("\"", with: "\\\""))\"" }.joined(
              separator: ",") + "}"
        }
        text += " \(number(sample.value))\n"
      }
    }
    return text
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
  }

  private static func number(_ value: Double) -> String {
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    if value.isNaN { return "NaN" }
    return value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
  }
}

/// A histogram of durations.
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
