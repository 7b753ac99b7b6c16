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
  /// A factor that is about to be replaced. It authorises nothing until then.
  var replaced: ProviderName?

  /// The account's second factors: secrets kept for the account that do not also identify it, as an email address with
  /// a password does.
  var factors: Set<ProviderName> {
    account.credentials.filter { $0 != replaced && descriptors[$0]?.isSecondFactor ?? false }
  }

  /// The same authority while one of the account's factors is being replaced.
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
    guard account.isResetUntil(provider, rules, at: now) == nil else { return false }
    guard factors.isEmpty else { return factors.contains(provider) }
    guard let descriptor = descriptors[provider] else { return false }
    if account.credentials.contains(provider) { return true }
    return trusted.contains { descriptor.signInKinds.contains($0.identifier.kind) }
  }

  /// Whether a step that the session has passed is recent enough and authorises a change.
  func accepts(_ step: PassedStep) -> Bool { now < step.at + rules.changeWithin && authorises(step) }

  /// Whether a step that the session has passed, at any time, is of a kind that authorises a change.
  ///
  /// Attack: someone who has the SIM alone resets the PIN, passes it, and changes the number. A factor that was reset
  /// remains the factor that the account has, so nothing else authorises in its place.
  func authorises(_ step: PassedStep) -> Bool {
    guard step.tooNewUntil == nil, account.isResetUntil(step.provider, rules, at: now) == nil else { return false }
    let factors = factors
    return factors.isEmpty ? isHeld(step) : factors.contains(step.provider)
  }

  /// Whether the account still holds what the step proved, and has held it long enough to replace a secret.
  func isHeld(_ step: PassedStep) -> Bool {
    guard step.tooNewUntil == nil else { return false }
    guard let proved = step.identifier else { return account.credentials.contains(step.provider) }
    return trusted.contains { keys.proofHash(of: $0.identifier) == proved }
  }

  /// The verified identifiers that are past `recovery_delay`.
  var trusted: [HeldIdentifier] {
    account.identifiers.filter { $0.verifiedAt != nil && account.isTooNewUntil($0, rules, at: now) == nil }
  }

  /// When the first of the identifiers and factors that are too new stops being so; nil if none is too new.
  var firstTrustedAt: Timestamp? {
    let resets = factors.compactMap { account.isResetUntil($0, rules, at: now) }
    return (resets + account.identifiers.compactMap { account.isTooNewUntil($0, rules, at: now) }).min()
  }
}

extension Account {
  /// Until when a factor that was reset may sign in, but not authorise changes or count as a further factor; nil if it
  /// may do so now. Something else that the account holds has replaced it, such as a code to its number, and until then
  /// it proves no more than that.
  func isResetUntil(_ provider: ProviderName, _ rules: AccountRules, at now: Timestamp) -> Timestamp? {
    guard let reset = resets[provider], now < reset + rules.recoveryDelay else { return nil }
    return reset + rules.recoveryDelay
  }

  /// Until when a step that proves the identifier, or the provider's factor if nil, signs in and counts for nothing
  /// else; nil if it counts. An identifier that the step verifies counts as verified now.
  func isTooNewUntil(
    _ proved: Identifier?, by provider: ProviderName, _ rules: AccountRules, at now: Timestamp
  ) -> Timestamp? {
    guard let proved else { return isResetUntil(provider, rules, at: now) }
    guard let held = identifiers.first(where: { $0.identifier == proved }) else { return nil }
    return isTooNewUntil(
      HeldIdentifier(identifier: proved, verifiedAt: held.verifiedAt ?? now, waitsUntil: held.waitsUntil), rules,
      at: now)
  }

  /// Until when the identifier may sign in but not authorise changes or resets; nil if it may authorise them now.
  ///
  /// Attack: a thief who holds a session for a minute adds a number of their own, and replaces the PIN and the password
  /// with it. For `recovery_delay` only identifiers that were there before can authorise changes. An account without
  /// other verified identifiers is exempt. The oldest identifier of an account that is itself younger than the delay is
  /// also exempt: refusing it would protect no older one. A name that nobody else can have is as old as the account.
  func isTooNewUntil(_ held: HeldIdentifier, _ rules: AccountRules, at now: Timestamp) -> Timestamp? {
    if let waiting = held.waitsUntil, now < waiting { return waiting }
    guard let verifiedAt = held.verifiedAt, createdAt < verifiedAt, now < verifiedAt + rules.recoveryDelay else {
      return nil
    }
    let others = identifiers.filter { $0.identifier != held.identifier }.compactMap { other in
      other.identifier.kind.isExclusive ? createdAt : other.verifiedAt
    }
    guard let oldest = others.min() else { return nil }
    if verifiedAt <= oldest, now < createdAt + rules.recoveryDelay { return nil }
    return verifiedAt + rules.recoveryDelay
  }
}
