import MoongateCore

/// The build information in `/metrics`.
enum BuildMetrics {
  static let family = MetricFamily(
    .buildInfo,
    [
      MetricFamily.Sample(
        [("version", BuildVersion.number), ("commit", BuildVersion.commit), ("swift", BuildVersion.swift)], 1)
    ])
}
