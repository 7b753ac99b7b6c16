import MoongateCore

/// The operations on the shadow candidate that the admin listener needs.
package struct ShadowControl: Sendable {
  /// What the candidate has seen; nil without a candidate.
  let status: @Sendable () -> PolicyShadow.Status?
  let begin: @Sendable (_ folder: String, _ by: String?) async -> [ConfigurationProblem]
  let promote: @Sendable (_ isForced: Bool) async -> [ConfigurationProblem]
  let end: @Sendable () -> Bool

  /// - Parameters:
  /// - begin: loads the folder as the shadow candidate; returns the problems if it is refused.
  /// - promote: activates the candidate; returns the problems if it is refused. `isForced` skips the gate.
  /// - end: returns whether there was a candidate.
  package init(
    status: @escaping @Sendable () -> PolicyShadow.Status?,
    begin: @escaping @Sendable (_ folder: String, _ by: String?) async -> [ConfigurationProblem],
    promote: @escaping @Sendable (_ isForced: Bool) async -> [ConfigurationProblem], end: @escaping @Sendable () -> Bool
  ) {
    self.status = status
    self.begin = begin
    self.promote = promote
    self.end = end
  }

  /// For gateways without shadow candidates.
  package static let none = ShadowControl(
    status: { nil },
    begin: { folder, _ in
      [
        ConfigurationProblem(
          location: SourceLocation(file: folder, line: 0), path: "",
          message: "this gateway does not support shadow candidates")
      ]
    }, promote: { _ in [] }, end: { false })
}

/// The shadow candidate in `GET /policy`. Users and requests appear only as ids of decisions.
enum ShadowDocument {
  private static let kinds = ["step", "condition", "flow", "request"]

  static func document(_ status: PolicyShadow.Status) -> JSONValue {
    .members([
      "id": .text(status.candidate.id), "folder": .text(status.folder), "since": .text(status.since.text),
      "by": .optional(status.by),
      "against": .text(status.against), "judged": counts(status.tally.judged),
      "differing": counts(status.tally.differing),
      "dropped": counts(status.dropped), "differences": .list(status.tally.differences.map(difference)),
      "other_differences": .number(status.tally.others), "counters_restarted": .number(status.restarts),
      "warnings": .problems(status.candidate.warnings), "failure": .optional(status.failure),
    ])
  }

  private static func difference(_ cause: ShadowTally.Cause, _ difference: ShadowTally.Difference) -> JSONValue {
    .members([
      "about": .text(cause.about), "active": .text(cause.active), "candidate": .text(cause.candidate),
      "rule": .optional(cause.rule),
      "count": .number(difference.count), "first": .text(difference.first.text), "last": .text(difference.last.text),
      "decisions": .list(difference.decisions.map { .text($0.text) }),
    ])
  }

  private static func counts(_ counts: [String: Int]) -> JSONValue {
    .object(kinds.map { JSONMember(name: $0, value: .number(counts[$0] ?? 0)) })
  }
}
