import MoongateCore

/// Which program this is: for `/metrics`.
enum BuildMetrics {
  static let family = MetricFamily(.buildInfo, [MetricFamily.Sample([("version", Version.number)], 1)])
}
