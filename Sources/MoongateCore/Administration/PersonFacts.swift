import MoongateSDK

/// The facts about a user that a provider's policy would see outside of any request, for operators.
package struct PersonFacts: Sendable {
  private let policy: ProviderPolicy
  private let generation: any PolicyGeneration
  private let keys: KeyRing
  private let now: Timestamp

  /// - Parameter policy: a policy of the generation.
  package init(_ policy: ProviderPolicy, in generation: any PolicyGeneration, keys: KeyRing, at now: Timestamp) {
    self.policy = policy
    self.generation = generation
    self.keys = keys
    self.now = now
  }

  /// The facts without counters.
  /// - Parameters:
  ///   - account: nil if none exists.
  ///   - address: the client address; nil if unknown.
  package func facts(of identifier: Identifier, _ account: Account?, from address: ClientAddress?) -> Facts {
    Facts(
      now: now, action: .send, provider: policy.provider, identifier: identifier,
      account: account?.facts(at: now, in: generation) ?? AccountFacts(),
      client: ClientFacts(address: address ?? .unspecified, place: place(of: address)))
  }

  /// The facts with the counters of limits that count by user or globally and, if an address is given, by address.
  /// - Throws: `StoreFault`; a `PolicyFault` if a function that chooses a number fails.
  package func facts(of identifier: Identifier, _ account: Account?, from address: ClientAddress?, in store: any Store)
    async throws -> Facts
  {
    var facts = facts(of: identifier, account, from: address)
    var subject = StepSubject(
      provider: policy.provider, identifier: identifier, account: account?.id,
      conceals: policy.unknownAccount == .conceal,
      flow: TokenHash(bytes: []), challenge: nil, address: address ?? .unspecified)
    subject.place = place(of: address)
    let limits = try limits(of: subject, facts).filter { limit in
      switch limit.key {
      case .flow, .device, .challenge: false
      case .ip, .network, .clientCountry, .asn: address != nil
      case .phone, .email, .identifier, .account, .country, .prefix, .provider, .global: true
      }
    }
    let states = try await store.counters(limits, at: now)
    facts.limits = zip(limits, states).map { limit, state in
      LimitFacts(limit, state, at: now)
    }
    return facts
  }

  private func place(of address: ClientAddress?) -> ClientPlace {
    address.map(generation.gateway.place) ?? ClientPlace()
  }

  private func limits(of subject: StepSubject, _ facts: Facts) throws -> [ResolvedLimit] {
    let evaluator = try generation.makeEvaluator()
    var limits: [ResolvedLimit] = []
    for action in LimitAction.allCases {
      limits += try policy.resolve(
        action, for: subject, keys: keys,
        number: { varying throws(PolicyFault) in try evaluator.value(of: varying, given: facts) },
        duration: { varying throws(PolicyFault) in try evaluator.value(of: varying, given: facts) })
    }
    return limits
  }
}
