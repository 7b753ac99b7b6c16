import MoongateSDK

extension Account {
  /// The facts about the account that policies see.
  /// - Parameter generation: only its providers count. A credential of a provider that was removed from gateway.lua
  ///   cannot be used and is not a factor.
  package func facts(at now: Timestamp, in generation: any PolicyGeneration) -> AccountFacts {
    let factors = credentials.intersection(generation.policies.keys)
    var facts = AccountFacts(
      exists: true, id: id, age: now - createdAt, idle: now - lastSeenAt,
      hasPIN: !factors.isDisjoint(with: generation.pads),
      hasEmail: identifier(.email) != nil, isEmailVerified: identifier(.email)?.verifiedAt != nil,
      isPhoneVerified: identifier(.phone)?.verifiedAt != nil, factors: factors, identities: identities(in: generation))
    facts.groups = GroupFacts(listed: groups, identifiers: verifiedIdentifiers)
    return facts
  }

  /// `f.session` of the account.
  /// - Parameter passed: when each provider was last passed, by the steps that count.
  func sessionFacts(
    passed: [ProviderName: Timestamp], age: Duration, aal: Int, _ entitlements: Entitlements = .none
  ) -> SessionFacts {
    SessionFacts(
      account: id, passed: passed, age: age, aal: aal, email: verified(.email)?.value,
      phone: verified(.phone)?.value, entitlements: entitlements)
  }

  /// The verified identifiers that functions of groups and claims see: one of each kind.
  package var verifiedIdentifiers: [Identifier] { [.phone, .email, .federated].compactMap(verified) }

  /// The verified identifier of a kind.
  package func verified(_ kind: IdentifierKind) -> Identifier? {
    identifiers.first { $0.identifier.kind == kind && $0.verifiedAt != nil }?.identifier
  }

  /// The account with what other sites have said about its identities in a flow.
  /// - Parameter proved: the identifiers that were proved in the flow.
  func renewed(by proved: [Identifier]) -> Account {
    var account = self
    for identity in proved where identity.kind == .federated {
      guard let index = identifiers.firstIndex(where: { $0.identifier == identity && $0.verifiedAt != nil }) else {
        continue
      }
      account.identifiers[index].identifier = identity
    }
    return account
  }

  /// The verified federated identities by the provider that proves them. An account has at most one of each.
  private func identities(in generation: any PolicyGeneration) -> [ProviderName: Identifier] {
    var found: [ProviderName: Identifier] = [:]
    for held in identifiers where held.identifier.kind == .federated && held.verifiedAt != nil {
      guard let provider = generation.identityProvers.prover(of: held.identifier), found[provider] == nil else {
        continue
      }
      found[provider] = held.identifier
    }
    return found
  }
}
