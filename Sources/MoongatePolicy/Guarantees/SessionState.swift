import MoongateCore
import MoongateSDK

/// One thing that happens on the way through a flow, and the line that allows it.
package enum FlowMove: Sendable, Hashable {
  /// A step was passed, of the flow or one that a policy function or accounts.lua added.
  case passed(ProviderName, at: SourceLocation)
  /// A secret was chosen, which passes nothing.
  case chose(ProviderName, at: SourceLocation)
  /// An identifier was proved that is new to the account, which passes nothing.
  case introduced(ProviderName, at: SourceLocation)
  /// A step was left out, since it may be.
  case skipped([ProviderName], at: SourceLocation)
  /// A step did not apply: its `when` answered false, or is assumed to, since it reads facts of unbounded values.
  case excused([ProviderName], at: SourceLocation, when: SourceLocation, isAssumed: Bool)

  /// Whether it takes an act of the person.
  var isAct: Bool { if case .excused = self { false } else { true } }
}

/// One flow that somebody went through.
package struct FlowLeg: Sendable, Hashable {
  package let flow: String
  package let moves: [FlowMove]
}

/// A session as it begins, or as it has grown by step-ups since.
package struct SessionState: Sendable {
  /// What somebody did to get it, in order.
  package var legs: [FlowLeg]
  /// Every provider that was passed, in order, each once.
  package var passed: [ProviderName]
  /// What had to be true of the account and the device. The account's are those of the moment before the first flow.
  package var facts: KnownFacts
  /// Whether the account was made by the first flow.
  package let isNewAccount: Bool
  /// Kinds of the identifiers that the first flow proved.
  let verified: [IdentifierKind]
  /// The providers whose secrets the first flow set.
  let keeps: [ProviderName]
  /// Whether the first flow was told an address that nobody has proved.
  let claimsEmail: Bool
  /// How long ago a provider that was passed can have been passed at most, while the session lives.
  package let oldest: Duration

  /// How many acts it took.
  var acts: Int { legs.map { leg in leg.moves.count(where: \.isAct) }.reduce(0, +) }
}

extension SessionDemand {
  /// Whether a session that passed these providers satisfies it.
  /// - Parameter age: how long ago a provider that was passed can have been passed at most.
  package func isMet(_ passed: [ProviderName], age: (ProviderName) -> Duration) -> Bool {
    if let factors, Set(passed).count < factors { return false }
    guard !self.passed.isEmpty else { return true }
    return self.passed.contains { provider in
      guard passed.contains(provider) else { return false }
      return within.map { age(provider) <= $0 } ?? true
    }
  }
}
