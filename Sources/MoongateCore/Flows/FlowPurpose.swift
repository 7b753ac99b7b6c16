import MoongateSDK

/// What a flow is for. Its *name* says so (policy.md, "flows/NAME.lua"): an operator chooses the steps, the core what completing them does.
package enum FlowPurpose: String, Sendable, CaseIterable {
  case registerEmail = "register_email"
  case verifyEmail = "verify_email"
  case changeEmail = "change_email"
  case changePhone = "change_phone"
  case joinPhone = "join_phone"
  case passwordReset = "password_reset"
  case pinSet = "pin_set"
  case pinChange = "pin_change"
  case pinUnlock = "pin_unlock"
  case pinReset = "pin_reset"
  case pinDisable = "pin_disable"
  case stepUp = "step_up"
  /// Every other name, `login` and an operator's own included.
  case signIn = ""

  package init(flow name: String) { self = Self(rawValue: name) ?? .signIn }

  /// Whether the flow is an account's own: it is begun with a session, and completing it gives that session a new token.
  package var needsSession: Bool {
    switch self {
    case .signIn, .registerEmail, .passwordReset: false
    default: true
    }
  }

  /// What a provider's step in the flow is to do.
  package func step(of provider: ProviderName) -> StepPurpose {
    switch (self, provider.rawValue) {
    case (.pinSet, "pin"), (.pinReset, "pin"), (.registerEmail, "password"), (.passwordReset, "password"): .set
    case (.pinChange, "pin"): .change
    case (.pinDisable, "pin"): .disable
    default: .prove
    }
  }

  /// The kind of identifier that the account is given by the flow: a code of that kind is for one that it does not have yet.
  var given: IdentifierKind? {
    switch self {
    case .changeEmail: .email
    case .changePhone, .joinPhone: .phone
    default: nil
    }
  }

  /// Whether what an account holds may be proved by a code in this flow.
  ///
  /// Attack: an address that was only claimed must not count as a factor where one is asked for, as in a step-up.
  func accepts(_ held: HeldIdentifier) -> Bool {
    switch self {
    case .verifyEmail: held.verifiedAt == nil
    case .signIn, .registerEmail, .passwordReset, .pinReset: true
    default: held.verifiedAt != nil
    }
  }

  /// The one of an account's identifiers that is meant where a code is asked for without saying where to: verified before claimed.
  func meant(of kinds: [IdentifierKind], in account: Account) -> Identifier? {
    let held = account.identifiers.filter { kinds.contains($0.identifier.kind) && accepts($0) }
    return (held.first { $0.verifiedAt != nil } ?? held.first)?.identifier
  }
}

extension FlowDefinition {
  /// Whether it is an account's own flow, begun with a session: by its name, or because its first step (a PIN alone) tells nobody's name.
  package func needsSession(by providers: ProviderRegistry) -> Bool { FlowPurpose(flow: name).needsSession || !identifies(by: providers) }

  private func identifies(by providers: ProviderRegistry) -> Bool {
    guard let first = steps.first else { return false }
    return first.choices.contains { providers[$0].map { !$0.descriptor.identifierKinds.isEmpty } ?? false }
  }
}
