import MoongateCore
import MoongateSDK

/// An event on a path through a flow, with the line that allows it.
package enum FlowPathEvent: Sendable, Hashable {
  /// A step of the flow, or one that a policy function or accounts.lua added, was passed.
  case passed(ProviderName, at: SourceLocation)
  /// A secret was set, which passes nothing.
  case chose(ProviderName, at: SourceLocation)
  /// An identifier was verified that is new to the account, which passes nothing.
  case introduced(ProviderName, at: SourceLocation)
  /// A skippable step was skipped.
  case skipped([ProviderName], at: SourceLocation)
  /// A step did not apply. Its `when` returned false, or is assumed to because it reads facts with unbounded values.
  case excused([ProviderName], at: SourceLocation, when: SourceLocation, isAssumed: Bool)

  /// Whether it takes an action of the user.
  var isAct: Bool { if case .excused = self { false } else { true } }
}

/// One flow on the path to a session.
package struct CompletedFlow: Sendable, Hashable {
  package let flow: String
  package let events: [FlowPathEvent]
}

/// A session when it begins, or after step-ups.
package struct SessionState: Sendable {
  /// The flows that led to it, in order.
  package var completedFlows: [CompletedFlow]
  /// The distinct providers that were passed, in order.
  package var passed: [ProviderName]
  /// The facts of the device, and of the account before the first flow, that the path requires.
  package var facts: KnownFacts
  /// Whether the first flow created the account.
  package let isNewAccount: Bool
  /// The kinds of the identifiers that the first flow verified.
  let verified: [IdentifierKind]
  /// The providers whose secrets the first flow set.
  let keeps: [ProviderName]
  /// The kinds of the unverified identifiers that the first flow received.
  let claims: [IdentifierKind]
  /// The maximum time since a provider was passed, while the session is valid, also of a user who stays signed in.
  package let oldest: Duration

  /// The number of user actions.
  var acts: Int { completedFlows.map { completed in completed.events.count(where: \.isAct) }.reduce(0, +) }
}

extension SessionDemand {
  /// The passed providers without those that another one of them implies (`implied`).
  package func independent(_ passed: [ProviderName]) -> [ProviderName] {
    var left = Set(passed)
    for provider in left.sorted() where !left.subtracting([provider]).isDisjoint(with: implied[provider] ?? []) {
      left.remove(provider)
    }
    return left.sorted()
  }

  /// Whether a session that passed these providers meets the demand.
  /// - Parameter age: the maximum time since a provider was passed; nil: there is none.
  package func isMet(_ passed: [ProviderName], age: (ProviderName) -> Duration?) -> Bool {
    if let factors, independent(passed).count < factors { return false }
    guard !self.passed.isEmpty else { return true }
    return self.passed.contains { provider in
      guard passed.contains(provider) else { return false }
      guard let within else { return true }
      return age(provider).map { $0 <= within } ?? false
    }
  }
}
