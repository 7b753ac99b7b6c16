import MoongateCore
import MoongateSDK

/// One statement of guarantees.lua, which every generation is proved against before it is switched on.
package struct Guarantee: Sendable, Equatable {
  /// What sessions the statement is about.
  package enum Scope: Sendable, Equatable {
    /// Every session at the moment it begins, of accounts and devices with these facts.
    case sessions(KnownFacts)
    /// Every session that passes a route which takes paths of the pattern.
    case route(host: String?, PathPattern)
  }

  /// The operator's own words.
  package let statement: String
  package let scope: Scope
  package let demand: SessionDemand
  package let location: SourceLocation

  package init(statement: String, scope: Scope, demand: SessionDemand, location: SourceLocation) {
    self.statement = statement
    self.scope = scope
    self.demand = demand
    self.location = location
  }
}

/// What a guarantee demands of a session. All of it must hold.
package struct SessionDemand: Sendable, Equatable {
  /// One of these was passed; empty where none is named.
  package let passed: [ProviderName]
  /// How many different providers were passed at least.
  package let factors: Int?
  /// How long ago one of `passed` was passed at most, at each request. Half-open: exactly as long ago is too long.
  package let within: Duration?
  /// The groups of which every requester is in one; nil where none is named.
  package var group: GroupRequirement?

  package init(passed: [ProviderName], factors: Int?, within: Duration?, group: GroupRequirement? = nil) {
    self.group = group
    self.passed = passed
    self.factors = factors
    self.within = within
  }
}

extension PolicyGeneration {
  /// The statements of guarantees.lua, in the order of the file.
  package var guarantees: [Guarantee] {
    switch self {
    case let generation as Generation: generation.guarantees
    case let observed as ObservedGeneration: observed.observed.guarantees
    case let played as DryRunGeneration: played.base.guarantees
    default: []
    }
  }
}
