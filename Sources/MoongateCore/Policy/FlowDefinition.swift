import MoongateSDK

/// The definition of a flow, from flows/NAME.lua.
package struct FlowDefinition: Sendable {
  package let name: String
  package let purpose: FlowPurpose
  package let account: AccountRule
  /// The providers of identities elsewhere by which a flow for existing accounts also creates accounts.
  package let registers: Set<ProviderName>
  package let steps: [StepRule]
  package let lifetime: Duration
  package let session: SessionRule
  package let next: NextPaths
  package let location: SourceLocation
  /// The source location of each step.
  package let stepLocations: [SourceLocation]

  /// More than five parameters: one for each field.
  package init(
    name: String, purpose: FlowPurpose, account: AccountRule, steps: [StepRule], lifetime: Duration,
    session: SessionRule, next: NextPaths,
    location: SourceLocation,
    registers: Set<ProviderName> = [], stepLocations: [SourceLocation] = []
  ) {
    self.name = name
    self.purpose = purpose
    self.account = account
    self.registers = registers
    self.steps = steps
    self.lifetime = lifetime
    self.session = session
    self.next = next
    self.location = location
    self.stepLocations = stepLocations
  }
}

extension FlowDefinition {
  /// Whether the flow is for users who have no account. One that also registers by an identity elsewhere (`registers`)
  /// is not.
  package var isForNewAccounts: Bool {
    if case .register = purpose { return true }
    return purpose.letsIn && account != .existing
  }
}

extension AccountRules {
  /// Whether a user without an account and without an invitation can create one by the flow, with an identifier or a
  /// secret.
  package func creates(accountsBy flow: FlowDefinition) -> Bool {
    flow.isForNewAccounts && registration.refusal(of: .new, isInvited: false) == nil
  }
}

/// Which accounts the flow may end in.
package enum AccountRule: String, Sendable, Codable, CaseIterable {
  case existing
  case new
  case any
}

/// One step of a flow: any of its choices, if its condition holds.
package struct StepRule: Sendable, Hashable, Codable {
  /// At least one; passing any of them is enough. Providers that gateway.lua does not configure are left out.
  package let choices: [ProviderName]
  package let isSkippable: Bool
  package let when: FunctionName?
  /// What the step does if `accounts.lua` or the account requires it; nil for a step of the flow itself.
  package let requirement: AccountStep?
  /// Whether the choices are a `fallback`, in order: the first one sends a code, and each further one if the one before
  /// it cannot deliver or the user asks for it.
  package let isFallback: Bool

  /// The same step, which cannot be skipped.
  package var required: StepRule {
    StepRule(choices: choices, isSkippable: false, when: when, requirement: requirement, isFallback: isFallback)
  }

  package init(
    choices: [ProviderName], isSkippable: Bool, when: FunctionName?, requirement: AccountStep? = nil,
    isFallback: Bool = false
  ) {
    self.choices = choices
    self.isFallback = isFallback
    self.isSkippable = isSkippable
    self.when = when
    self.requirement = requirement
  }
}

/// What a step does that `accounts.lua` (`SignInRequirement`) or the account itself requires.
package enum AccountStep: String, Sendable, Codable {
  /// The user proves a factor that the account has.
  case prove
  /// The account has none of the factors, and the user sets one up.
  case enroll
  /// The account must replace a secret that it has (`Account.dueChanges`), and the user sets another one.
  case replace
}

extension FlowDefinition {
  /// Whether users may choose to stay signed in. A session in which a flow begins keeps its times.
  package func offersRemembering(by providers: ProviderRegistry) -> Bool {
    session.remember != nil && !needsSession(by: providers)
  }
}

/// How long a session lives.
package struct SessionRule: Sendable, Hashable, Codable {
  package let lifetime: Duration
  /// The maximum time without a request.
  package let idle: Duration
  /// The times of a session whose user chose to stay signed in; nil: the flow does not offer that.
  package let remember: RememberedTimes?

  package init(lifetime: Duration, idle: Duration, remember: RememberedTimes? = nil) {
    self.lifetime = lifetime
    self.idle = idle
    self.remember = remember
  }

  /// The longest time that a session may live.
  package var longestLifetime: Duration { max(lifetime, remember?.lifetime ?? .zero) }
}

/// How long a session lives whose user chose to stay signed in.
package struct RememberedTimes: Sendable, Hashable, Codable {
  package let lifetime: Duration
  /// The maximum time without a request.
  package let idle: Duration

  package init(lifetime: Duration, idle: Duration) {
    self.lifetime = lifetime
    self.idle = idle
  }
}

/// Where a user goes when a flow completes.
package struct NextPaths: Sendable, Hashable, Codable {
  package let new: String
  package let returning: String

  package init(new: String, returning: String) {
    self.new = new
    self.returning = returning
  }
}
