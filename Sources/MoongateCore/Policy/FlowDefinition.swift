import MoongateSDK

/// flows/NAME.lua, typed.
package struct FlowDefinition: Sendable {
  package let name: String
  package let purpose: FlowPurpose
  package let account: AccountRule
  package let steps: [StepRule]
  package let lifetime: Duration
  package let session: SessionRule
  package let next: NextPaths
  package let location: SourceLocation
  /// Whether the purpose follows from the flow's name, since the file does not declare it.
  package let isPurposeImplied: Bool
  /// Where each of `steps` was said.
  package let stepLocations: [SourceLocation]

  package init(
    name: String, purpose: FlowPurpose, account: AccountRule, steps: [StepRule], lifetime: Duration,
    session: SessionRule, next: NextPaths,
    location: SourceLocation,
    isPurposeImplied: Bool = false, stepLocations: [SourceLocation] = []
  ) {
    self.name = name
    self.purpose = purpose
    self.account = account
    self.steps = steps
    self.lifetime = lifetime
    self.session = session
    self.next = next
    self.location = location
    self.isPurposeImplied = isPurposeImplied
    self.stepLocations = stepLocations
  }
}

/// Whose flow it may be.
package enum AccountRule: String, Sendable, Codable, CaseIterable {
  case existing
  case new
  case any
}

/// One step: any of its choices, when its condition holds.
package struct StepRule: Sendable, Hashable, Codable {
  /// At least one; passing any of them is enough. Those that gateway.lua does not configure are left out already.
  package let choices: [ProviderName]
  package let isSkippable: Bool
  package let when: FunctionName?
  /// What the step is to do where `accounts.lua` requires it; nil for a step of the flow itself.
  package let requirement: AccountStep?
  /// Whether the choices are a `fallback`: the first sends a code, and each of the others where the one before it
  /// cannot deliver, or the person asks for it. nil: no. (An older gateway stored none, and reads such a step as one
  /// with several choices.)
  private let fallback: Bool?

  /// Whether the choices are a `fallback`, in order.
  package var isFallback: Bool { fallback ?? false }

  package init(
    choices: [ProviderName], isSkippable: Bool, when: FunctionName?, requirement: AccountStep? = nil,
    isFallback: Bool = false
  ) {
    self.choices = choices
    fallback = isFallback ? true : nil
    self.isSkippable = isSkippable
    self.when = when
    self.requirement = requirement
  }
}

/// What a step does that `accounts.lua` requires (`SignInRequirement`).
package enum AccountStep: String, Sendable, Codable {
  /// The account proves a factor that it has.
  case prove
  /// The account has none of the factors, and sets one up.
  case enroll
}

/// How long a session lives.
package struct SessionRule: Sendable, Hashable, Codable {
  package let lifetime: Duration
  /// Without a request.
  package let idle: Duration

  package init(lifetime: Duration, idle: Duration) {
    self.lifetime = lifetime
    self.idle = idle
  }
}

/// Where a person goes when a flow completes.
package struct NextPaths: Sendable, Hashable, Codable {
  package let new: String
  package let returning: String

  package init(new: String, returning: String) {
    self.new = new
    self.returning = returning
  }
}
