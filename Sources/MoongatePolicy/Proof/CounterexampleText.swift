import MoongateCore
import MoongateSDK

/// Describes a counterexample to a guarantee: the flow, the steps with the lines that allow them, and the facts.
struct CounterexampleText {
  let demand: SessionDemand

  init(_ demand: SessionDemand) { self.demand = demand }

  /// A counterexample with a session that begins.
  func sentences(of session: SessionState) -> String {
    let steps = session.completedFlows.map(sentence).joined(separator: " ")
    return
      "\(steps) The new session has passed \(list(session.passed)): \(lack(session.passed) { _ in .zero }).\(facts(session))"
  }

  /// A counterexample with a session that a route or an app accepts.
  func sentences(of session: SessionState, passing pass: SessionPass, age: (ProviderName) -> Duration?) -> String {
    sentences(of: session, passing: pass, lack: lack(session.passed, age))
  }

  /// A counterexample with a session that a route or an app accepts although it is in none of the groups.
  func sentences(of session: SessionState, passing pass: SessionPass, outside group: GroupRequirement) -> String {
    let names = group.anyOf.map { "\"\($0)\"" }
    return sentences(
      of: session, passing: pass,
      lack: names.count == 1
        ? "it need not be in the group \(names[0])"
        : "it need not be in any of the groups \(names.joined(separator: ", "))")
  }

  private func sentences(of session: SessionState, passing pass: SessionPass, lack: String) -> String {
    let steps = session.completedFlows.map(sentence).joined(separator: " ")
    var required: [String] = []
    if let groups = pass.gate.groups {
      required.append("the group " + groups.anyOf.map { "\"\($0)\"" }.joined(separator: " or "))
    }
    for step in pass.gate.steps {
      switch step {
      case .passed(let provider, nil): required.append(provider.rawValue)
      case .passed(let provider, let within?): required.append("\(provider) within \(within.asWritten)")
      case .emailVerified: required.append("a verified email address")
      }
    }
    if let factors = pass.gate.factors { required.append("\(factors) factors") }
    var why =
      required.isEmpty ? "which has no other requirement" : "which requires \(required.joined(separator: " and "))"
    if let decide = pass.decide {
      let answer = decide.isAssumed ? "reads facts that can have any value, so it may allow it" : "allows it"
      why = (required.isEmpty ? "where" : "\(why), and where") + " `decide` (\(decide.at)) \(answer)"
    }
    return """
      \(steps) The session has passed \(list(session.passed)). It \(pass.gate.deed), \(why): \
      \(lack).\(facts(session))
      """
  }

  private func sentence(_ completed: CompletedFlow) -> String {
    "In flow \"\(completed.flow)\", \(completed.events.map(words).joined(separator: ", then "))."
  }

  private func words(_ event: FlowPathEvent) -> String {
    switch event {
    case .passed(let provider, let place): "\(provider) is passed (\(place))"
    case .chose(let provider, let place): "\(provider) is set (\(place)), which passes nothing"
    case .introduced(let provider, let place):
      "\(provider) verifies a new identifier of the account (\(place)), which passes nothing"
    case .skipped(let choices, let place): "\(alternatives(choices)) is skipped (\(place), `skippable`)"
    case .excused(let choices, let place, let when, let isAssumed):
      "\(alternatives(choices)) does not apply (\(place)): `when` (\(when)) "
        + (isAssumed ? "reads facts that can have any value, so it may answer false" : "answers false")
    }
  }

  /// The part of the demand that the session does not meet.
  private func lack(_ passed: [ProviderName], _ age: (ProviderName) -> Duration?) -> String {
    if !demand.isMet(passed, age: { _ in .zero }) {
      if !demand.passed.isEmpty, Set(demand.passed).isDisjoint(with: passed) {
        return demand.passed.count == 1
          ? "it has not passed \(demand.passed[0])" : "it has passed none of \(list(demand.passed))"
      }
      let independent = demand.independent(passed)
      let count = "that is \(independent.count) of \(demand.factors ?? 0) factors"
      let implied = Set(passed).subtracting(independent).sorted()
      return implied.isEmpty
        ? count : "\(count), because \(alternatives(independent)) alone can reset \(list(implied))"
    }
    let late = demand.passed.filter(passed.contains)
    let ages = late.compactMap(age)
    guard ages.count == late.count else {
      return "it can have passed \(alternatives(late)) any time ago: tokens outlive it (`offline_access`)"
    }
    return "it can have passed \(alternatives(late)) up to \((ages.max() ?? .zero).asWritten) ago"
  }

  private func facts(_ session: SessionState) -> String {
    let listed = session.facts.listed.map { fact, value in
      fact == .verified(.federated)
        ? "the account has \(value ? "a" : "no") federated identity" : "\(fact.path) = \(value)"
    }
    return listed.isEmpty ? "" : " Facts: \(listed.joined(separator: ", "))"
  }

  private func alternatives(_ names: [ProviderName]) -> String { names.map(\.rawValue).joined(separator: " or ") }

  private func list(_ names: [ProviderName]) -> String {
    guard let last = names.last, names.count > 1 else { return names.first?.rawValue ?? "nothing" }
    return names.dropLast().map(\.rawValue).joined(separator: ", ") + " and " + last.rawValue
  }
}
