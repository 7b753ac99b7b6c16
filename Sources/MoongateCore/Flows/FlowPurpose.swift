import MoongateSDK

/// What a flow is for. Its *name* says so (policy.md, "flows/NAME.lua"): an operator chooses the steps, the core what completing them does.
///
/// A flow of the name of a provider with `_set`, `_change`, `_disable` or `_reset` behind it (`totp_set`) is where an account makes, changes,
/// removes or makes anew what that provider proves.
package enum FlowPurpose: RawRepresentable, Sendable, Hashable, CaseIterable {
  case registerEmail
  case verifyEmail, changeEmail, changePhone, joinPhone
  case passwordReset
  case pinSet, pinChange, pinUnlock, pinReset, pinDisable
  case stepUp
  /// What else a provider keeps for an account.
  case secret(ProviderName, SecretAct)
  /// Every other name, `login` and an operator's own included.
  case signIn

  /// What becomes of a secret.
  package enum SecretAct: String, Sendable, CaseIterable {
    case set, change, disable
    /// Made anew by who has forgotten it and has proved something else.
    case reset
  }

  /// Those that have a name of their own.
  package static let allCases: [Self] = [
    .registerEmail, .verifyEmail, .changeEmail, .changePhone, .joinPhone, .passwordReset, .pinSet, .pinChange, .pinUnlock, .pinReset, .pinDisable,
    .stepUp, .signIn,
  ]

  /// The flow's name; empty for `signIn`, which has many.
  package var rawValue: String {
    switch self {
    case .registerEmail: "register_email"
    case .verifyEmail: "verify_email"
    case .changeEmail: "change_email"
    case .changePhone: "change_phone"
    case .joinPhone: "join_phone"
    case .passwordReset: "password_reset"
    case .pinSet: "pin_set"
    case .pinChange: "pin_change"
    case .pinUnlock: "pin_unlock"
    case .pinReset: "pin_reset"
    case .pinDisable: "pin_disable"
    case .stepUp: "step_up"
    case .secret(let provider, let act): "\(provider)_\(act.rawValue)"
    case .signIn: ""
    }
  }

  package init?(rawValue: String) {
    if let named = Self.allCases.first(where: { $0.rawValue == rawValue }) {
      self = named
      return
    }
    guard let end = rawValue.lastIndex(of: "_"), let act = SecretAct(rawValue: String(rawValue[rawValue.index(after: end)...])),
      let provider = ProviderName(rawValue: String(rawValue[..<end]))
    else { return nil }
    self = .secret(provider, act)
  }

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
    case (.secret(let own, .set), _) where own == provider, (.secret(let own, .reset), _) where own == provider: .set
    case (.secret(let own, .change), _) where own == provider: .change
    case (.secret(let own, .disable), _) where own == provider: .disable
    default: .prove
    }
  }

  /// Whether it makes anew a secret that was forgotten.
  var isReset: Bool {
    switch self {
    case .passwordReset, .pinReset, .secret(_, .reset): true
    default: false
    }
  }

  /// The provider whose secret a session's flow makes where there is none; nil in every other flow.
  var setSecret: ProviderName? {
    switch self {
    case .pinSet: "pin"
    case .secret(let provider, .set): provider
    default: nil
    }
  }

  /// The provider whose secret a session's flow makes anew; nil in every other flow.
  var resetSecret: ProviderName? {
    switch self {
    case .pinReset: "pin"
    case .secret(let provider, .reset): provider
    default: nil
    }
  }

  /// Whether it adds or changes an identifier or a factor of an account whose owner proves nothing of the account in it. It begins only after a
  /// recent proof of something that is held already (`FlowEngine.demandHeldProof`). `NAME_change` and `NAME_disable` prove the current factor themselves, and a
  /// reset proves what it resets by.
  package var needsHeldProof: Bool {
    switch self {
    case .changeEmail, .changePhone, .joinPhone, .pinSet, .secret(_, .set): true
    default: false
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
    case .signIn, .registerEmail, .passwordReset: true
    default: held.verifiedAt != nil
    }
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
