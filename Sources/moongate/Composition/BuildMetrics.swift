import MoongateCore

/// Which program this is: for `/metrics`.
enum BuildMetrics {
  static let family = MetricFamily(
    "moongate_build_info", .gauge, "The version of this program; always 1.", [MetricFamily.Sample([("version", Version.number)], 1)])
}
