import MoongateSDK

extension Account {
  /// The facts about the account that policies see.
  /// - Parameter generation: only its providers count. A credential of a provider that was removed from gateway.lua
  ///   cannot be used and is not a factor.
  package func facts(at now: Timestamp, in generation: any PolicyGeneration) -> AccountFacts {
    let factors = credentials.intersection(generation.policies.keys)
    return AccountFacts(
      exists: true, id: id, age: now - createdAt, idle: now - lastSeenAt,
      hasPIN: !factors.isDisjoint(with: generation.pads),
      hasEmail: identifier(.email) != nil, isEmailVerified: identifier(.email)?.verifiedAt != nil,
      isPhoneVerified: identifier(.phone)?.verifiedAt != nil, factors: factors, identities: identities(in: generation))
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
