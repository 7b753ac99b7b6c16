import MoongateCore
import MoongateSDK

/// A statement of guarantees.lua. Every generation must be proved to satisfy it before it becomes active.
package struct Guarantee: Sendable, Equatable {
  /// The sessions that a statement covers.
  package enum Scope: Sendable, Equatable {
    /// Every session when it begins, of accounts and devices with these facts.
    case sessions(KnownFacts)
    /// Every session that is accepted by a route that matches paths of the pattern.
    case route(host: String?, PathPattern)
    /// Every session by which a user signs in to the app with this client id.
    case app(String)
  }

  /// The operator's own words.
  package let statement: String
  package let scope: Scope
  package var demand: SessionDemand
  package let location: SourceLocation

  package init(statement: String, scope: Scope, demand: SessionDemand, location: SourceLocation) {
    self.statement = statement
    self.scope = scope
    self.demand = demand
    self.location = location
  }
}

/// The demands of a guarantee on a session. All of them must hold.
package struct SessionDemand: Sendable, Equatable {
  /// One of these must have been passed; empty if none is named.
  package let passed: [ProviderName]
  /// The least number of different providers that must have been passed.
  package let factors: Int?
  /// The maximum time since one of `passed` was passed, checked at each request. The interval is half-open: exactly
  /// this time is too long.
  package let within: Duration?
  /// The groups of which the account must belong to at least one; nil if none is named.
  package var group: GroupRequirement?
  /// The providers each of which can, alone, reset the factor of a provider: whoever passes one of them can pass the
  /// other, too. It counts as no further factor beside them.
  package var implied: [ProviderName: Set<ProviderName>] = [:]

  package init(passed: [ProviderName], factors: Int?, within: Duration?, group: GroupRequirement? = nil) {
    self.group = group
    self.passed = passed
    self.factors = factors
    self.within = within
  }
}
