import Hummingbird
import MoongateCore

/// `/metrics`, in the text format of Prometheus: which generation serves, what became of candidates, what was refused, and what the
/// other parts count. A policy that fails shows as refusals with the code `policy_error`.
struct MetricCalls: Sendable {
  let generations: ActiveGeneration
  let audit: AuditTrail
  /// What other parts have counted.
  let others: @Sendable () async -> [MetricFamily]

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .get, "/metrics", .metrics) { _ throws(Refusal) in
        let text = MetricText.write(families + ProcessMetrics.families + (await others()))
        return .plain(.ok, type: MetricText.mediaType, Array(text.utf8))
      }
    ]
  }

  private var families: [MetricFamily] {
    let status = generations.status
    return [
      MetricFamily(
        "moongate_generation_info", .gauge, "The generation that is active.", [MetricFamily.Sample([("generation", status.active)], 1)]),
      MetricFamily("moongate_generation_active_since_seconds", .gauge, "When it was switched on, in Unix time.", status.since.seconds),
      MetricFamily("moongate_generations_live", .gauge, "Generations in memory.", generations.live),
      MetricFamily("moongate_generation_switches_total", .counter, "Generations switched on.", status.switches),
      MetricFamily("moongate_candidates_refused_total", .counter, "Candidates refused.", status.refusals),
      MetricFamily(
        "moongate_candidate_problems", .gauge, "Problems of the candidate that was refused last; 0 when there is none.",
        status.refused?.problems.count ?? 0),
      MetricFamily(
        "moongate_refusals_total", .counter, "Requests refused, by code.",
        audit.refusals.sorted { $0.key < $1.key }.map { MetricFamily.Sample([("code", $0.key)], Double($0.value)) }),
    ]
  }
}
