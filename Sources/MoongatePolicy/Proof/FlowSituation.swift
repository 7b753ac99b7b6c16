import MoongateCore
import MoongateSDK

/// The state of a path through a flow that affects the rules.
struct FlowSituation {
  /// The origin of a step.
  enum Origin: Hashable {
    /// A step of the flow, by its index in the file.
    case flow(Int)
    /// A step that a policy function or accounts.lua added.
    case added(SourceLocation)
  }

  /// Identifies situations that all rules treat the same. Repeated proofs do not make a difference; otherwise, the
  /// search would not end.
  struct Key: Hashable {
    let steps: [StepRule]
    let passed: Set<ProviderName>
    let facts: KnownFacts
    let knowsAccount: Bool
    let proved: Set<IdentifierKind>
    let lastProved: IdentifierKind?
    /// Depends on which proofs came before the account was known.
    let endingRule: AccountRule
    let set: Set<ProviderName>
    let hasBegun: Bool
    let isSettled: Bool
  }

  var machine: FlowMachine
  /// The origin of each step of the machine.
  var origins: [Origin]
  /// The facts that were decided when the flow began.
  let given: KnownFacts
  var facts: KnownFacts
  /// Whether the flow knows its account.
  var knowsAccount: Bool
  /// The kinds of the verified identifiers, in order.
  var proved: [IdentifierKind] = []
  /// Whether anything was done in the flow since its creation.
  var hasBegun = false
  /// Whether the situation is an end of the flow.
  var isSettled = false
  var events: [FlowPathEvent] = []

  /// The providers whose secrets were set.
  var set: [ProviderName] = []

  var isFederated: Bool { proved.contains(.federated) }
  var passed: [ProviderName] { machine.record.passed.map(\.provider) }

  /// The number of user actions on the path.
  var acts: Int { events.count(where: \.isAct) }

  var key: Key {
    Key(
      steps: Array(machine.record.steps.dropFirst(machine.record.position)), passed: Set(passed), facts: facts,
      knowsAccount: knowsAccount, proved: Set(proved), lastProved: proved.last,
      endingRule: machine.record.endingRule, set: Set(set), hasBegun: hasBegun, isSettled: isSettled)
  }

  /// The origin of the current step.
  var origin: Origin? { machine.record.position < origins.count ? origins[machine.record.position] : nil }

  /// Whether one of the requirement's providers was passed, or set up if that is allowed.
  func hasMet(_ requirement: SignInRequirement) -> Bool {
    requirement.choices.contains { passed.contains($0) || (requirement.enroll && set.contains($0)) }
  }

  /// Adds a step that accounts.lua requires after all other steps.
  mutating func require(_ choices: [ProviderName], _ step: AccountStep, by requirement: SignInRequirement) {
    machine.require(choices, step)
    origins.append(.added(requirement.location))
  }

  /// Adds a provider that has to be passed before the current step.
  mutating func requireNext(_ provider: ProviderName, by function: SourceLocation) {
    let count = machine.record.steps.count
    machine.requireNext(provider)
    if machine.record.steps.count > count { origins.insert(.added(function), at: machine.record.position) }
  }
}
