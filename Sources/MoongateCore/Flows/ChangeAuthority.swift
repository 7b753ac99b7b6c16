import MoongateSDK

/// Decides which proofs may authorise a change of an account: of its identifiers and factors, its export and its
/// deletion (`accounts.lua`, `change_within` and `recovery_delay`).
///
/// An account that has factors of its own (a PIN, an authenticator app) takes one of them. Any other account takes a
/// code to a verified identifier, its password, or its identity elsewhere.
struct ChangeAuthority: Sendable {
  let account: Account
  let rules: AccountRules
  /// The providers that can be used now: those of the registry that have a policy.
  let descriptors: [ProviderName: ProviderDescriptor]
  let keys: KeyRing
  let now: Timestamp
  /// A factor that is about to be made anew, and says nothing until then.
  var replaced: ProviderName?

  /// The account's own factors: secrets that are kept for it and that do not also say who it is, as an email address
  /// beside a password does.
  var factors: Set<ProviderName> {
    account.credentials.filter { $0 != replaced && descriptors[$0]?.isSecondFactor ?? false }
  }

  /// The same where one of the account's factors is about to be made anew.
  init(replacing factor: ProviderName, in authority: ChangeAuthority) {
    self = authority
    replaced = factor
  }

  init(
    account: Account, rules: AccountRules, descriptors: [ProviderName: ProviderDescriptor], keys: KeyRing,
    now: Timestamp
  ) {
    self.account = account
    self.rules = rules
    self.descriptors = descriptors
    self.keys = keys
    self.now = now
  }

  /// Whether a step by the provider can authorise a change at this moment.
  func canAuthorise(_ provider: ProviderName) -> Bool {
    let factors = factors
    guard factors.isEmpty else { return factors.contains(provider) }
    guard let descriptor = descriptors[provider] else { return false }
    if account.credentials.contains(provider) { return true }
    let kinds = Set(descriptor.identifierKinds)
    // What tells of an identity elsewhere proves that identity; the address that comes with it is not asked for by
    // itself.
    let proved = kinds.contains(.federated) ? [.federated] : kinds
    return trusted.contains { proved.contains($0.identifier.kind) }
  }

  /// Whether a step that a session has passed is recent enough and authorises a change.
  func accepts(_ step: PassedStep) -> Bool { now < step.at + rules.changeWithin && authorises(step) }

  /// Whether a step that a session has passed, however long ago, is one of those that authorise a change.
  func authorises(_ step: PassedStep) -> Bool {
    let factors = factors
    return factors.isEmpty ? isHeld(step) : factors.contains(step.provider)
  }

  /// Whether what the step proved is still the account's, and old enough to be believed where a secret is replaced.
  func isHeld(_ step: PassedStep) -> Bool {
    guard let proved = step.identifier else { return account.credentials.contains(step.provider) }
    return trusted.contains { keys.proofHash(of: $0.identifier) == proved }
  }

  /// The verified identifiers that are not too new.
  var trusted: [HeldIdentifier] {
    account.identifiers.filter { $0.verifiedAt != nil && account.isTooNewUntil($0, rules, at: now) == nil }
  }

  /// When the first of the identifiers that are too new stops being so; nil where none is.
  var firstTrustedAt: Timestamp? { account.identifiers.compactMap { account.isTooNewUntil($0, rules, at: now) }.min() }
}

extension Account {
  /// Until when the identifier may sign in and authorise nothing; nil where it may authorise changes and resets now.
  ///
  /// Attack: a thief who holds a session for a minute adds a number of their own, and with it replaces the PIN and the
  /// password. For `recovery_delay` only what was there before can do that. An account that has nothing else is exempt,
  /// and so is the oldest identifier of an account that is itself younger than the delay: nothing older could be
  /// protected by refusing it.
  func isTooNewUntil(_ held: HeldIdentifier, _ rules: AccountRules, at now: Timestamp) -> Timestamp? {
    guard let verifiedAt = held.verifiedAt, createdAt < verifiedAt, now < verifiedAt + rules.recoveryDelay else {
      return nil
    }
    let others = identifiers.filter { $0.identifier != held.identifier }.compactMap(\.verifiedAt)
    guard let oldest = others.min() else { return nil }
    if verifiedAt <= oldest, now < createdAt + rules.recoveryDelay { return nil }
    return verifiedAt + rules.recoveryDelay
  }
}
