import Hummingbird
import MoongateCore

/// `/policy`, `/policy/values` and `/policy/reload`: the active generation, its values, and the problems of a refused
/// one.
struct PolicyCalls: Sendable {
  let generations: ActiveGeneration
  /// The gateways that serve from the store.
  let nodes: @Sendable () -> [ServingNode]
  /// Builds a generation from the folder and activates it; returns the problems if it is refused. `isForced` skips the
  /// gate.
  let reload: @Sendable (_ isForced: Bool) async -> [ConfigurationProblem]
  /// The values of a generation, and the guesses that they allow.
  let values: @Sendable (any PolicyGeneration) -> PolicyValues
  let audit: AuditTrail
  let clock: any GatewayClock
  let adminGuard: AdminGuard
  let suggestion: AdminQuery.Suggestion
  let shadow: ShadowControl

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .policy) { _ throws(Refusal) in .json(status) },
      Endpoint(.call, .policyValues) { _ throws(Refusal) in
        .json(.values(values(generations.current)))
      },
      Endpoint(.call, .reloadPolicy) { exchange throws(Refusal) in
        let query = try AdminQuery(exchange, known: ["force", "as"], suggestion: suggestion)
        let isForced = try query.flag("force")
        record(.reloadRequested, query, isForced ? ["force": "1"] : [:], exchange)
        let problems = await reload(isForced)
        return answer(problems)
      },
      Endpoint(.call, .beginShadow) { exchange throws(Refusal) in
        let query = try AdminQuery(exchange, known: ["folder", "as"], suggestion: suggestion)
        guard let folder = query["folder"], !folder.isEmpty else {
          throw exchange.refusal(
            .badRequest, detail: "`folder` is missing: the whole path of the candidate's folder.", field: "folder")
        }
        let name = record(.shadowBegun, query, ["folder": String(folder.prefix(1_000))], exchange)
        return answer(await shadow.begin(folder, name))
      },
      Endpoint(.call, .promoteShadow) { exchange throws(Refusal) in
        let query = try AdminQuery(exchange, known: ["force", "as"], suggestion: suggestion)
        let isForced = try query.flag("force")
        guard let seen = shadow.status() else {
          throw exchange.refusal(.notFound, detail: "No candidate runs in shadow mode.")
        }
        record(
          .shadowPromoted, query, ["candidate": seen.candidate.id].merging(isForced ? ["force": "1"] : [:]) { $1 },
          exchange)
        return answer(await shadow.promote(isForced))
      },
      Endpoint(.call, .endShadow) { exchange throws(Refusal) in
        let query = try AdminQuery(exchange, known: ["as"], suggestion: suggestion)
        guard let seen = shadow.status(), shadow.end() else {
          throw exchange.refusal(.notFound, detail: "No candidate runs in shadow mode.")
        }
        record(.shadowEnded, query, ["candidate": seen.candidate.id], exchange)
        return .nothing
      },
    ]
  }

  private func answer(_ problems: [ConfigurationProblem]) -> Response {
    problems.isEmpty ? .json(status) : .json(.members(["problems": .problems(problems)]), status: .unprocessableContent)
  }

  @discardableResult
  private func record(_ kind: AuditEvent.Kind, _ query: AdminQuery, _ detail: [String: String], _ exchange: Exchange)
    -> String?
  {
    OperatorAudit(audit: audit, clock: clock, adminGuard: adminGuard).record(kind, query, detail, exchange)
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
            "id": .text($0.id), "generation": .text($0.generation), "seen_at": .text($0.seenAt.text),
            "keys": .list($0.keys.map(JSONValue.text)),
          ])
        }), "shadow": shadow.status().map(ShadowDocument.document) ?? .null,
    ])
  }
}

extension JSONValue {
  /// Problems of a configuration, in the format of `check --json`. A problem of a whole file has no line.
  static func problems(_ problems: [ConfigurationProblem]) -> JSONValue {
    .list(
      problems.map {
        .members([
          "file": .text($0.location.file), "line": $0.location.line > 0 ? .number($0.location.line) : .null,
          "path": .text($0.path),
          "message": .text($0.message),
        ])
      })
  }
}
