import Hummingbird
import MoongateCore

/// `/metrics`, in the text format of Prometheus (exposition format 0.0.4): which generation serves, what became of candidates, and
/// what was refused. A policy that fails shows as refusals with the code `policy_error`.
struct MetricCalls: Sendable {
  let generations: ActiveGeneration
  let audit: AuditTrail

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .get, "/metrics") { _ throws(Refusal) in
        .plain(.ok, type: "text/plain; version=0.0.4; charset=utf-8", Array(text.utf8))
      }
    ]
  }

  private var text: String {
    let status = generations.status
    let families = [
      Family(
        name: "moongate_generation_info", type: "gauge", help: "The generation that is active.",
        samples: [("generation=\"\(status.active)\"", 1)]),
      Family(
        name: "moongate_generation_active_since_seconds", type: "gauge", help: "When it was switched on, in Unix time.",
        samples: [("", Int(status.since.seconds))]),
      Family(name: "moongate_generations_live", type: "gauge", help: "Generations in memory.", samples: [("", generations.live)]),
      Family(name: "moongate_generation_switches_total", type: "counter", help: "Generations switched on.", samples: [("", status.switches)]),
      Family(name: "moongate_candidates_refused_total", type: "counter", help: "Candidates refused.", samples: [("", status.refusals)]),
      Family(
        name: "moongate_candidate_problems", type: "gauge", help: "Problems of the candidate that was refused last; 0 when there is none.",
        samples: [("", status.refused?.problems.count ?? 0)]),
      Family(
        name: "moongate_refusals_total", type: "counter", help: "Requests refused, by code.",
        samples: audit.refusals.sorted { $0.key < $1.key }.map { ("code=\"\($0)\"", $1) }),
    ]
    return families.map(\.text).joined()
  }

  /// One metric and its samples. Labels are codes and hashes: nothing in them needs escaping.
  private struct Family {
    let name: String
    let type: String
    let help: String
    let samples: [(labels: String, value: Int)]

    var text: String {
      "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n" + samples.map { "\(name)\($0.isEmpty ? "" : "{\($0)}") \($1)\n" }.joined()
    }
  }
}
