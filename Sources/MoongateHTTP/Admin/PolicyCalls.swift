import Hummingbird
import MoongateCore

/// `/policy`, `/policy/values` and `/policy/reload`: which generation serves, what it says, and what is wrong with the one that does not.
struct PolicyCalls: Sendable {
  let generations: ActiveGeneration
  /// The gateways that serve from the store.
  let nodes: @Sendable () -> [ServingNode]
  /// Builds a generation from the folder and switches to it; gives the problems for which it was refused.
  let reload: @Sendable () async -> [ConfigurationProblem]
  /// The values of the generation, and what they grant.
  let values: @Sendable (any PolicyGeneration) -> PolicyValues
  let audit: AuditTrail
  let clock: any GatewayClock
  let entrance: AdminGuard

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .get, "/policy", .policy) { _ throws(Refusal) in .json(status) },
      Endpoint(.call, .get, "/policy/values", .policyValues) { _ throws(Refusal) in .json(.values(values(generations.current))) },
      Endpoint(.call, .post, "/policy/reload", .reloadPolicy) { exchange throws(Refusal) in
        let identity = entrance.identity(exchange)
        audit.record(
          AuditEvent(id: exchange.decision, at: clock.now(), kind: .reloadRequested, address: identity.address, detail: identity.detail))
        let problems = await reload()
        return problems.isEmpty ? .json(status) : .json(.members(["problems": .problems(problems)]), status: .unprocessableContent)
      },
    ]
  }

  private var status: JSONValue {
    let status = generations.status
    return .members([
      "active": .text(status.active), "since": .text(status.since.text),
      "candidate_refused": status.refused.map { refused in
        .members(["id": .optional(refused.id), "at": .text(refused.at.text), "problems": .problems(refused.problems)])
      } ?? .null, "warnings": .problems(status.warnings), "restart_needed": .problems(status.restartNeeded),
      "nodes": .list(
        nodes().map {
          .members([
            "id": .text($0.id), "generation": .text($0.generation), "seen_at": .text($0.seenAt.text), "keys": .list($0.keys.map(JSONValue.text)),
          ])
        }),
    ])
  }
}

extension JSONValue {
  /// Problems of a configuration, as `check --json` has them too; what is about a whole file has no line.
  fileprivate static func problems(_ problems: [ConfigurationProblem]) -> JSONValue {
    .list(
      problems.map {
        .members([
          "file": .text($0.location.file), "line": $0.location.line > 0 ? .number($0.location.line) : .null, "path": .text($0.path),
          "message": .text($0.message),
        ])
      })
  }
}
