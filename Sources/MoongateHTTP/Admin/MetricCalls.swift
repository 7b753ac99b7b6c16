import Hummingbird
import MoongateCore

/// `/metrics` in the Prometheus text format: the active generation, the results of candidates, refusals, and the
/// metrics of other components. A failing policy appears as refusals with the code `policy_error`.
struct MetricCalls: Sendable {
  let generations: ActiveGeneration
  let audit: AuditTrail
  /// Metrics of other components.
  let others: @Sendable () async -> [MetricFamily]

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .metrics) { _ throws(Refusal) in
        let text = MetricText.write(families + ProcessMetrics.families + (await others()))
        return .plain(.ok, type: MetricText.mediaType, Array(text.utf8))
      }
    ]
  }

  private var families: [MetricFamily] {
    let status = generations.status
    return [
      MetricFamily(.generationInfo, [MetricFamily.Sample([("generation", status.active)], 1)]),
      MetricFamily(.generationActiveSinceSeconds, status.since.seconds),
      MetricFamily(.generationsLive, generations.live),
      MetricFamily(.generationSwitchesTotal, status.switches),
      MetricFamily(.candidatesRefusedTotal, status.refusals),
      MetricFamily(.candidateProblems, status.refused?.problems.count ?? 0),
      MetricFamily(
        .refusalsTotal,
        audit.refusals.sorted { $0.key < $1.key }.map { MetricFamily.Sample([("code", $0.key)], Double($0.value)) }),
    ]
  }
}
