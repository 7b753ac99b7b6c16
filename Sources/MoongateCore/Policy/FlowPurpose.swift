import MoongateSDK

/// What completing a flow does, as flows/NAME.lua declares it with `purpose`, `provider` and `identifier`.
///
/// The operator chooses a flow's steps. Its purpose decides whether it needs a session, what a provider's steps do, and
/// what changes when it completes.
package enum FlowPurpose: Sendable, Hashable {
  /// Signs a user in, or creates an account if the flow's account rule allows it.
  case signIn
  /// Creates an account. `setting` names the provider whose secret is set in the flow, such as a password; nil for
  /// none.
  case register(setting: ProviderName?)
  /// Authenticates the user of a session again.
  case stepUp
  /// Verifies an identifier that the account claims.
  case verify(IdentifierKind)
  /// Replaces the account's identifier of a kind by one that is verified in the flow.
  case change(IdentifierKind)
  /// Adds an identifier of a kind. If another account has verified the phone number, the two accounts are merged. An
  /// identity at another site that belongs to another account is refused.
  case join(IdentifierKind)
  /// Sets, changes or removes the factor that a provider stores for an account.
  case factor(ProviderName, FactorOperation)

  /// What a flow does to a factor.
  package enum FactorOperation: String, Sendable, CaseIterable {
    /// The account has no factor and sets one.
    case set
    /// The current factor is proved and replaced.
    case change
    /// The current factor is proved and removed.
    case disable
    /// Replaces a forgotten factor within a session. The user first proves something else that the account holds.
    case reset
    /// Replaces a forgotten factor without a session: the flow itself identifies the account.
    case recover
    /// The factor is proved, and the session continues with a new token.
    case unlock
  }

  /// Whether flows of this purpose let a user in with nothing but a phone number or an address.
  package var letsIn: Bool { self == .signIn || self == .register(setting: nil) }
}

// MARK: - Derived properties
//
// The compiler asks the `switch`es about a new purpose. `letsIn` and the properties with `if case` must be looked at.

extension FlowPurpose {
  /// Whether the flow begins with a session of its account. Completing it gives that session a new token.
  package var needsSession: Bool {
    switch self {
    case .signIn, .register, .factor(_, .recover): false
    case .stepUp, .verify, .change, .join: true
    case .factor(_, .set), .factor(_, .change), .factor(_, .disable), .factor(_, .reset), .factor(_, .unlock): true
    }
  }

  /// The purpose as providers and operators name it.
  package var kind: FlowPurposeKind {
    switch self {
    case .signIn: .signIn
    case .register: .register
    case .stepUp: .stepUp
    case .verify: .verify
    case .change, .factor(_, .change): .change
    case .join: .join
    case .factor(_, .set): .set
    case .factor(_, .disable): .disable
    case .factor(_, .reset), .factor(_, .recover): .reset
    case .factor(_, .unlock): .unlock
    }
  }

  /// The provider whose factor the flow is about; nil if it is about no factor.
  package var provider: ProviderName? {
    switch self {
    case .register(let provider): provider
    case .factor(let provider, _): provider
    case .signIn, .stepUp, .verify, .change, .join: nil
    }
  }

  /// What a provider's step in the flow does.
  package func step(of provider: ProviderName) -> StepPurpose {
    guard self.provider == provider else { return .prove }
    return switch self {
    case .register, .factor(_, .set), .factor(_, .reset), .factor(_, .recover): .set
    case .factor(_, .change): .change
    case .factor(_, .disable): .disable
    case .factor(_, .unlock), .signIn, .stepUp, .verify, .change, .join: .prove
    }
  }

  /// Whether it replaces a forgotten factor.
  package var isReset: Bool { resetProvider != nil || recoveredProvider != nil }

  /// Whether it creates an account and sets its factor.
  package var registersFactor: Bool { if case .register(.some) = self { true } else { false } }

  /// The provider whose missing factor a session's flow sets; nil in every other flow.
  package var setProvider: ProviderName? { if case .factor(let provider, .set) = self { provider } else { nil } }

  /// The provider whose forgotten factor a session's flow replaces; nil in every other flow.
  package var resetProvider: ProviderName? { if case .factor(let provider, .reset) = self { provider } else { nil } }

  /// The provider whose forgotten factor is replaced without a session; nil in every other flow.
  package var recoveredProvider: ProviderName? {
    if case .factor(let provider, .recover) = self { provider } else { nil }
  }

  /// Whether it adds or changes an identifier or a factor without proving anything that the account already holds. Such
  /// a flow begins only after a recent proof (`AccountChecks.demandRecentProof`). Changing or disabling a factor proves
  /// that factor; a reset proves something else first.
  package var needsHeldProof: Bool {
    switch self {
    case .change, .join, .factor(_, .set): true
    case .signIn, .register, .stepUp, .verify: false
    case .factor(_, .change), .factor(_, .disable), .factor(_, .reset), .factor(_, .recover), .factor(_, .unlock): false
    }
  }

  /// The kind of identifier that the flow adds to the account. A code of that kind goes to an identifier that the
  /// account does not have yet.
  package var newIdentifier: IdentifierKind? {
    switch self {
    case .change(let kind), .join(let kind): kind
    case .signIn, .register, .stepUp, .verify, .factor: nil
    }
  }

  /// Whether it merges two accounts if the verified identifier belongs to another account.
  package var joinsAccounts: Bool { if case .join(let kind) = self { kind != .federated } else { false } }

  /// Whether it adds an identity at another site by which the user can then sign in.
  package var connectsSite: Bool { self == .join(.federated) }

  /// Whether a code may prove this identifier of the account in the flow.
  ///
  /// Attack: an address that was only claimed must not count as a factor when one is required, as in a step-up.
  package func accepts(_ held: HeldIdentifier) -> Bool {
    switch self {
    case .verify: held.verifiedAt == nil
    case .signIn, .register, .factor(_, .recover): true
    case .stepUp, .change, .join: held.verifiedAt != nil
    case .factor(_, .set), .factor(_, .change), .factor(_, .disable), .factor(_, .reset), .factor(_, .unlock):
      held.verifiedAt != nil
    }
  }

  /// Whether a code to an identifier that is too new (`recovery_delay`) is refused: what it would prove authorises
  /// nothing. In a sign-in it is accepted, and counts for nothing else.
  package var refusesTooNew: Bool { isReset || needsSession }

  /// Whether completing the flow authorises changes to the account afterwards: it proves what the account holds and
  /// does nothing else.
  package var isProofAlone: Bool {
    switch self {
    case .signIn, .stepUp, .factor(_, .unlock): true
    case .register, .verify, .change, .join: false
    case .factor(_, .set), .factor(_, .change), .factor(_, .disable), .factor(_, .reset), .factor(_, .recover): false
    }
  }
}

// MARK: - As text

/// The stored form: the purpose, then what it is about (`set pin`, `change phone`).
extension FlowPurpose: RawRepresentable, Codable {
  package var rawValue: String {
    switch self {
    case .signIn: "sign_in"
    case .register(let provider): provider.map { "register \($0)" } ?? "register"
    case .stepUp: "step_up"
    case .verify(let kind): "verify \(kind.rawValue)"
    case .change(let kind): "change \(kind.rawValue)"
    case .join(let kind): "join \(kind.rawValue)"
    case .factor(let provider, let operation): "factor \(operation.rawValue) \(provider)"
    }
  }

  package init?(rawValue: String) {
    let words = rawValue.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    let kind = words.count == 2 ? IdentifierKind(rawValue: words[1]).flatMap { $0.canBeVerified ? $0 : nil } : nil
    switch (words[0], kind, words.count) {
    case ("sign_in", _, 1): self = .signIn
    case ("step_up", _, 1): self = .stepUp
    case ("register", _, 1): self = .register(setting: nil)
    case ("register", _, 2):
      guard let provider = ProviderName(rawValue: words[1]) else { return nil }
      self = .register(setting: provider)
    case ("verify", let kind?, _): self = .verify(kind)
    case ("change", let kind?, _): self = .change(kind)
    case ("join", let kind?, _): self = .join(kind)
    case ("factor", _, 3):
      guard let operation = FactorOperation(rawValue: words[1]), let provider = ProviderName(rawValue: words[2]) else {
        return nil
      }
      self = .factor(provider, operation)
    default: return nil
    }
  }
}

// MARK: - Names of flows

extension FlowPurpose {
  /// The usual name of a flow with this purpose, which is preferred if several flows have the same purpose.
  package var usualName: String {
    switch self {
    case .signIn: "login"
    case .register(let provider): provider == nil ? "register" : "register_email"
    case .stepUp: "step_up"
    case .verify(let kind): "verify_\(kind.rawValue)"
    case .change(let kind): "change_\(kind.rawValue)"
    case .join(let kind): "join_\(kind.rawValue)"
    case .factor(let provider, .recover): "\(provider)_reset"
    case .factor(let provider, let operation): "\(provider)_\(operation.rawValue)"
    }
  }
}

extension FlowDefinition {
  /// Whether it begins with a session: because of its purpose, or because its first step (such as a PIN alone) does not
  /// identify anyone.
  package func needsSession(by providers: ProviderRegistry) -> Bool {
    purpose.needsSession || !identifies(by: providers)
  }

  private func identifies(by providers: ProviderRegistry) -> Bool {
    guard let first = steps.first else { return false }
    return first.choices.contains { name in
      providers.descriptor(name).map { !$0.identifierKinds.isEmpty || $0.role.contains(.findsAccount) } ?? false
    }
  }
}

extension [String: FlowDefinition] {
  /// As `PolicyGeneration.flow(for:)`.
  package func flow(for purpose: FlowPurpose) -> FlowDefinition? {
    if let usual = self[purpose.usualName], usual.purpose == purpose { return usual }
    return values.filter { $0.purpose == purpose }.min { $0.name < $1.name }
  }
}

extension PolicyGeneration {
  /// Whether a user without an account can create one with an identifier of a kind that the provider takes.
  package func registers(identifiersOf provider: ProviderName, by providers: ProviderRegistry) -> Bool {
    var kinds = Set(providers.descriptor(provider)?.identifierKinds ?? [])
    // Without an invitation, only an address of one of the domains creates an account.
    if accounts.registration != .open { kinds.formIntersection([.email]) }
    return flows.values.filter(accounts.creates).flatMap { $0.steps.first?.choices ?? [] }.contains { name in
      let own = Set(providers.descriptor(name)?.identifierKinds ?? [])
      return !own.contains(.federated) && !own.isDisjoint(with: kinds)
    }
  }

  /// The purpose of the named flow; `signIn` if the flow does not exist.
  package func purpose(of flow: String) -> FlowPurpose { flows[flow]?.purpose ?? .signIn }

  /// The flow for a purpose. If there are several, the one with the usual name, otherwise the first by name.
  package func flow(for purpose: FlowPurpose) -> FlowDefinition? { flows.flow(for: purpose) }

  /// The name of the flow for a purpose; without one, its usual name, which no flow of this purpose has.
  package func flowName(for purpose: FlowPurpose) -> String { flow(for: purpose)?.name ?? purpose.usualName }

  /// The flow that connects an account to a provider's site. If there are several, the first by name.
  package func flow(connecting provider: ProviderName) -> FlowDefinition? {
    flows.values.filter { $0.purpose.connectsSite && $0.steps.first?.choices.contains(provider) ?? false }.min {
      $0.name < $1.name
    }
  }
}
