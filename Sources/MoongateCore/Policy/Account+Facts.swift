import MoongateSDK

extension Account {
  /// What policies may know of it.
  /// - Parameter generation: whose providers count. What another one keeps of the account, from before it was taken out
  ///   of gateway.lua, can't be asked for and is no factor.
  package func facts(at now: Timestamp, in generation: any PolicyGeneration) -> AccountFacts {
    let factors = credentials.intersection(generation.policies.keys)
    return AccountFacts(
      exists: true, id: id, age: now - createdAt, idle: now - lastSeenAt,
      hasPIN: !factors.isDisjoint(with: generation.pads),
      hasEmail: identifier(.email) != nil, isEmailVerified: identifier(.email)?.verifiedAt != nil,
      isPhoneVerified: identifier(.phone)?.verifiedAt != nil, factors: factors)
  }
}
