import MoongateCore
import MoongateSDK

/// Somebody on their way through a flow, as far as the rules can tell them from others.
struct FlowSituation {
  /// Where a step of the machine comes from.
  enum Origin: Hashable {
    /// The flow's own, by its place in the file.
    case flow(Int)
    /// Added by a policy function, or by accounts.lua.
    case added(SourceLocation)
  }

  /// The same to every rule, whatever way led there. It says of what was proved only what rules can tell apart:
  /// somebody may prove the same thing again and again, and there would be no end to it.
  struct Key: Hashable {
    let steps: [StepRule]
    let passed: Set<ProviderName>
    let facts: KnownFacts
    let knowsAccount: Bool
    let proved: Set<IdentifierKind>
    let lastProved: IdentifierKind?
    let set: Set<ProviderName>
    let hasBegun: Bool
    let isSettled: Bool
  }

  var machine: FlowMachine
  /// Of each step of the machine.
  var origins: [Origin]
  /// What the search is about: the facts that were decided when the flow began.
  let given: KnownFacts
  var facts: KnownFacts
  /// Whether the flow knows which account it is about.
  var knowsAccount: Bool
  /// Kinds of the identifiers that were proved, in order.
  var proved: [IdentifierKind] = []
  /// Whether the flow was created and something was done in it since.
  var hasBegun = false
  /// Whether it is the flow's end.
  var isSettled = false
  var moves: [FlowMove] = []

  /// The providers whose secrets were set.
  var set: [ProviderName] = []

  var isFederated: Bool { proved.contains(.federated) }
  var passed: [ProviderName] { machine.record.passed.map(\.provider) }

  /// How many acts of the person led here.
  var acts: Int { moves.count(where: \.isAct) }

  var key: Key {
    Key(
      steps: Array(machine.record.steps.dropFirst(machine.record.position)), passed: Set(passed), facts: facts,
      knowsAccount: knowsAccount, proved: Set(proved), lastProved: proved.last, set: Set(set), hasBegun: hasBegun,
      isSettled: isSettled)
  }

  /// Where the step at hand comes from.
  var origin: Origin? { machine.record.position < origins.count ? origins[machine.record.position] : nil }

  /// Whether a choice of the requirement was passed, or set up where that is allowed.
  func hasMet(_ requirement: SignInRequirement) -> Bool {
    requirement.choices.contains { passed.contains($0) || (requirement.enroll && set.contains($0)) }
  }

  /// accounts.lua requires one of the providers, after all other steps.
  mutating func require(_ choices: [ProviderName], _ step: AccountStep, by requirement: SignInRequirement) {
    machine.require(choices, step)
    origins.append(.added(requirement.location))
  }

  /// Another provider is to be passed before what is due.
  mutating func requireNext(_ provider: ProviderName, by function: SourceLocation) {
    let count = machine.record.steps.count
    machine.requireNext(provider)
    if machine.record.steps.count > count { origins.insert(.added(function), at: machine.record.position) }
  }
}
