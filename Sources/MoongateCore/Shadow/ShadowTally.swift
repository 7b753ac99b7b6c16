/// A shadow's results, bounded: causes and a few decisions for each.
package struct ShadowTally: Sendable {
  /// Why decisions differ: the same question, the same two answers, and the same rule.
  package struct Cause: Sendable, Hashable {
    /// `send phone_otp`, `verify pin`, `condition flows/login.steps[2].when`, `flow login`,
    /// `registration by login`, `request`.
    package let about: String
    /// The active generation's answer.
    package let active: String
    package let candidate: String
    /// The location of the rule that makes the difference: the candidate's, otherwise the active generation's.
    package let rule: String?
  }

  /// Decisions that differ for one cause.
  package struct Difference: Sendable, Equatable {
    package var count = 0
    package let first: Timestamp
    package var last: Timestamp
    /// The latest of them, newest last.
    package var decisions: [DecisionID] = []
  }

  /// The maximum number of separate causes. Bounded because functions can produce any reason.
  static let maxCauses = 200
  private static let maxDecisions = 5
  private static let longest = 200

  /// The number of compared questions by kind: `step`, `condition`, `flow`, `request`.
  package private(set) var judged: [String: Int] = [:]
  package private(set) var differing: [String: Int] = [:]
  private var causes: [Cause: Difference] = [:]
  /// The number of differing decisions beyond `maxCauses`.
  package private(set) var others = 0

  /// All differences, most frequent first.
  package var differences: [(cause: Cause, difference: Difference)] {
    causes.map { ($0.key, $0.value) }.sorted {
      ($1.difference.count, $0.cause.about, $0.cause.candidate, $0.cause.rule ?? "")
        < ($0.difference.count, $1.cause.about, $1.cause.candidate, $1.cause.rule ?? "")
    }
  }

  mutating func note(_ act: ObservedQuestion, _ active: ShadowAnswer, _ candidate: ShadowAnswer) {
    let kind = act.question.kind
    judged[kind, default: 0] += 1
    guard active.name != candidate.name else { return }
    differing[kind, default: 0] += 1
    let isAllowed = ["ok", "pass"].contains(candidate.name)
    let rule = isAllowed ? active.rule ?? candidate.rule : candidate.rule ?? active.rule
    let cause = Cause(
      about: String(act.question.about.prefix(Self.longest)), active: String(active.name.prefix(Self.longest)),
      candidate: String(candidate.name.prefix(Self.longest)), rule: rule)
    guard causes[cause] != nil || causes.count < Self.maxCauses else {
      others += 1
      return
    }
    var difference = causes[cause] ?? Difference(first: act.at, last: act.at)
    difference.count += 1
    difference.last = max(difference.last, act.at)
    difference.decisions = (difference.decisions + [act.decision]).suffix(Self.maxDecisions)
    causes[cause] = difference
  }
}

extension ObservedQuestion.Question {
  var kind: String {
    switch self {
    case .step: "step"
    case .condition: "condition"
    case .flow, .registration, .admission: "flow"
    case .request: "request"
    }
  }

  /// A description that contains no personal data.
  fileprivate var about: String {
    switch self {
    case .step(let step): "\(step.action.rawValue) \(step.subject.provider)"
    case .condition(let function, _): "condition \(function)"
    case .flow(let name, _): "flow \(name)"
    case .registration(let new): "registration by \(new.flow)"
    case .admission(let facts): "admission by \(facts.flow?.name ?? "a flow")"
    case .request: "request"
    }
  }
}
