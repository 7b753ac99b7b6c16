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
