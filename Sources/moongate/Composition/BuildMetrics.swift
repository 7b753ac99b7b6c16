import MoongateCore

/// Which program this is: for `/metrics`.
enum BuildMetrics {
  static let family = MetricFamily(
    .buildInfo,
    [
      MetricFamily.Sample(
        [("version", BuildVersion.number), ("commit", BuildVersion.commit), ("swift", BuildVersion.swift)], 1)
    ])
}
