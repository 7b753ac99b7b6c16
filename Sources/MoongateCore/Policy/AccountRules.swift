import MoongateSDK

/// The rules for accounts, independent of flows: `accounts.lua`.
///
/// A flow file defines how a user signs in. These rules apply to every flow.
package struct AccountRules: Sendable, Equatable {
  /// `registration`: who can create an account.
  package var registration: RegistrationRule
  /// `admit`: the function that decides whether a flow may open a session; nil: every flow may.
  package var admit: FunctionName?
  /// `reasons`: the sentences that users see for `deny "reason"`.
  package var reasons: [String: String]
  /// `sign_in`: the requirements for a session of an existing account, in the order of the file.
  package var signIn: [SignInRequirement]
  /// `offer`: the factors that users are offered after a sign-in on the hosted pages, in the order of the file.
  package var offers: [FactorOffer]
  /// How recently a session must have proved something that the account already holds before it changes an identifier
  /// or a factor, or exports or deletes the account.
  package var changeWithin: Duration
  /// How long a newly added phone number or email address, or a factor that was reset, counts for nothing but signing
  /// in: it authorises no changes and resets, and satisfies no route.
  package var recoveryDelay: Duration
  /// How long an account without any verified identifier is kept after it was last used.
  package var unverifiedLifetime: Duration
  /// `groups`: the defined groups, by name.
  package var groups: [GroupName: GroupDefinition]
  /// `claims`: the defined claims, each with its function.
  package var claims: [String: FunctionName]
  /// The source location of each value, by its path (`change_within`, `sign_in[1].when`). Missing paths have their
  /// defaults.
  package var locations: [String: SourceLocation]

  /// More than five parameters: one for each field.
  package init(
    registration: RegistrationRule = .open, admit: FunctionName? = nil, reasons: [String: String] = [:],
    signIn: [SignInRequirement] = [], offers: [FactorOffer] = [],
    changeWithin: Duration = .seconds(600),
    recoveryDelay: Duration = .seconds(86_400),
    unverifiedLifetime: Duration = .seconds(30 * 86_400), groups: [GroupName: GroupDefinition] = [:],
    claims: [String: FunctionName] = [:],
    locations: [String: SourceLocation] = [:]
  ) {
    self.registration = registration
    self.admit = admit
    self.reasons = reasons
    self.signIn = signIn
    self.offers = offers
    self.changeWithin = changeWithin
    self.recoveryDelay = recoveryDelay
    self.unverifiedLifetime = unverifiedLifetime
    self.groups = groups
    self.claims = claims
    self.locations = locations
  }

  /// The rules without an `accounts.lua`.
  package static let standard = AccountRules()
}

/// An entry of `sign_in`: a step that every session of an existing account requires, in every flow.
///
/// The engine checks it once a flow's own steps have passed and the account is known (`SignInRequirements`).
package struct SignInRequirement: Sendable, Hashable {
  /// At least one; passing any of them is enough. Providers that gateway.lua does not configure are left out.
  package let choices: [ProviderName]
  /// Decides by the facts of the flow whether the entry applies; nil: always.
  package let when: FunctionName?
  /// Whether an account that has none of the choices sets one up during the sign-in. Otherwise it is refused.
  package let enroll: Bool
  /// The start of the entry.
  package let location: SourceLocation

  package init(choices: [ProviderName], when: FunctionName? = nil, enroll: Bool = false, location: SourceLocation) {
    self.choices = choices
    self.when = when
    self.enroll = enroll
    self.location = location
  }
}

/// An entry of `offer`: a factor that a user who does not have it is offered after a sign-in. The user may skip it.
package struct FactorOffer: Sendable, Hashable {
  package let provider: ProviderName
  /// The minimum time between two offers to one account.
  package let every: Duration
  /// Decides by the facts of the flow whether the entry applies; nil: always.
  package let when: FunctionName?
  /// The start of the entry.
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
