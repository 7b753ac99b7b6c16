import MoongateSDK

/// The limits that count one user's attempts from any device. Only their counters matter; their numbers are
/// placeholders.
package struct PersonalLimits: Sendable {
  let keys: KeyRing
  let providers: ProviderRegistry

  /// Longer than any window of a limit.
  private static let longestWindow: Duration = .seconds(400 * 86_400)

  /// The limits of a provider's policy.
  /// - Parameter actions: the actions that the limits count.
  func limits(
    _ actions: [LimitAction], of account: Account, at provider: ProviderName, in generation: any PolicyGeneration
  ) -> [ResolvedLimit] {
    guard let policy = generation.policies[provider] else { return [] }
    let registry = generation.registry ?? providers
    let kinds = registry.descriptor(provider)?.identifierKinds ?? []
    let identifiers = account.identifiers.map(\.identifier).filter { kinds.contains($0.kind) }
    var found: [ResolvedLimit] = []
    // Attempts by a name are counted as those of an unknown user, whose account no other identifier leads to.
    let named = identifiers.filter(\.kind.isExclusive).map { (identifier: Optional($0), account: String?.none) }
    let counted =
      ([nil] + identifiers.map(Optional.some)).map { (identifier: $0, account: Optional(account.id)) } + named
    for (identifier, id) in counted {
      var subject = StepSubject(
        provider: provider, identifier: identifier, account: id, conceals: policy.unknownAccount == .conceal,
        flow: TokenHash(of: [UInt8]()), challenge: nil, address: .unspecified)
      subject.isClaimed = id == nil
      for action in actions {
        let limits =
          (try? policy.resolve(
            action, for: subject, keys: keys, number: { _ in 1 }, duration: { _ in Self.longestWindow })) ?? []
        for limit in limits where limit.key.isPersonal && !found.contains(where: { $0.counter == limit.counter }) {
          found.append(limit)
        }
      }
    }
    return found
  }

  /// The limits of a provider's policy that count attempts by the account's ID, its names and its verified identifiers.
  ///
  /// Attack: an account claims somebody else's address, and each reset of its own secret gives further guesses at the
  /// secret of that address. What is counted by a claimed address is not among them.
  func ownLimits(
    _ actions: [LimitAction], of account: Account, at provider: ProviderName, in generation: any PolicyGeneration
  ) -> [ResolvedLimit] {
    var owned = account
    owned.identifiers.removeAll { !$0.isOwn }
    return limits(actions, of: owned, at: provider, in: generation)
  }

  /// The limits of all policies.
  func limits(of account: Account, in generation: any PolicyGeneration) -> [ResolvedLimit] {
    generation.policies.keys.sorted().flatMap { limits(LimitAction.allCases, of: account, at: $0, in: generation) }
  }
}
