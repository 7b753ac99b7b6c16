import MoongateSDK

/// flows/NAME.lua, typed.
package struct FlowDefinition: Sendable {
  package let name: String
  package let account: AccountRule
  package let steps: [StepRule]
  package let lifetime: Duration
  package let session: SessionRule
  package let next: NextPaths
  package let location: SourceLocation

  package init(
    name: String, account: AccountRule, steps: [StepRule], lifetime: Duration, session: SessionRule, next: NextPaths, location: SourceLocation
  ) {
    self.name = name
    self.account = account
    self.steps = steps
    self.lifetime = lifetime
    self.session = session
    self.next = next
    self.location = location
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
  /// At least one; those that gateway.lua does not configure are left out already.
  package let choices: [ProviderName]
  package let isSkippable: Bool
  package let when: FunctionName?

  package init(choices: [ProviderName], isSkippable: Bool, when: FunctionName?) {
    self.choices = choices
    self.isSkippable = isSkippable
    self.when = when
  }
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
