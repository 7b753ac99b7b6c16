import MoongateCore

/// Which program this is: for `/metrics`.
enum BuildMetrics {
  static let family = MetricFamily(
    "moongate_build_info", .gauge, "The version of this program, and the commit and the Swift compiler that it was built from; always 1.",
    [MetricFamily.Sample([("version", BuildVersion.number), ("commit", BuildVersion.commit), ("swift", BuildVersion.swift)], 1)])
}
