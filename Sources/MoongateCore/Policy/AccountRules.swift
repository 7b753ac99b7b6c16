import MoongateSDK

/// What belongs to an account rather than to a flow: `accounts.lua`.
///
/// A flow file says how a person gets in; these rules say what holds whichever flow that was.
package struct AccountRules: Sendable, Equatable {
  /// What a session of an existing account requires, in the order of the file: `sign_in`.
  package var signIn: [SignInRequirement]
  /// What people are offered to set up after a sign-in on the hosted pages, in the order of the file: `offer`.
  package var offers: [FactorOffer]
  /// How recently a session must have proved something that the account already holds before it changes an identifier
  /// or a factor, or exports or deletes the account.
  package var changeWithin: Duration
  /// How long a newly added phone number or email address cannot authorise changes and resets. It may sign in.
  package var recoveryDelay: Duration
  /// How long an account without any verified identifier is kept after it was last used.
  package var unverifiedLifetime: Duration
  /// The groups that there are, by name: `groups`.
  package var groups: [GroupName: GroupDefinition]
  /// The claims that there are, each with its function: `claims`.
  package var claims: [String: FunctionName]
  /// Where each value was said, by its path (`change_within`, `sign_in[1].when`). A value that is not here has its
  /// default.
  package var locations: [String: SourceLocation]

  package init(
    signIn: [SignInRequirement] = [], offers: [FactorOffer] = [], changeWithin: Duration = .seconds(600),
    recoveryDelay: Duration = .seconds(86_400),
    unverifiedLifetime: Duration = .seconds(30 * 86_400), groups: [GroupName: GroupDefinition] = [:],
    claims: [String: FunctionName] = [:],
    locations: [String: SourceLocation] = [:]
  ) {
    self.signIn = signIn
    self.offers = offers
    self.changeWithin = changeWithin
    self.recoveryDelay = recoveryDelay
    self.unverifiedLifetime = unverifiedLifetime
    self.groups = groups
    self.claims = claims
    self.locations = locations
  }

  /// What holds without an `accounts.lua`.
  package static let standard = AccountRules()
}

/// One entry of `sign_in`: a step that every session of an existing account requires, whichever flow opens it.
///
/// The engine asks when a flow's own steps have passed and the account is known (`FlowEngine+SignInRequirements`).
package struct SignInRequirement: Sendable, Hashable {
  /// At least one; passing any of them is enough. Those that gateway.lua does not configure are left out already.
  package let choices: [ProviderName]
  /// Whether it applies, by the facts of a flow; nil: always.
  package let when: FunctionName?
  /// Whether an account that has none of the choices sets one up on the way; without it, that account is refused.
  package let enroll: Bool
  /// Where the entry begins.
  package let location: SourceLocation

  package init(choices: [ProviderName], when: FunctionName? = nil, enroll: Bool = false, location: SourceLocation) {
    self.choices = choices
    self.when = when
    self.enroll = enroll
    self.location = location
  }
}

/// One entry of `offer`: a factor that a person who has none of it is offered to set up after a sign-in, and may skip.
package struct FactorOffer: Sendable, Hashable {
  package let provider: ProviderName
  /// The least time between two offers of it to one account.
  package let every: Duration
  /// Whether it applies, by the facts of a flow; nil: always.
  package let when: FunctionName?
  /// Where the entry begins.
  package let location: SourceLocation

  package init(
    provider: ProviderName, every: Duration = .seconds(30 * 86_400), when: FunctionName? = nil, location: SourceLocation
  ) {
    self.provider = provider
    self.every = every
    self.when = when
    self.location = location
  }
}
