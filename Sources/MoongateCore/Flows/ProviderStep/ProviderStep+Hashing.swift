import MoongateSDK

// The hashing permits of steps.

/// The hashing permit of a step.
struct HashingGrant: Sendable {
  var hasher: (any SecretHasher)?
  /// Whether the account that the step creates was counted for it.
  var isRegistration = false
}

extension ProviderStep {
  /// The hasher for a step. If the provider declares that it hashes, the permit is acquired before the attempt is
  /// charged, so that `busy` costs no attempt.
  ///
  /// Attack: an unlimited number of registrations, each of which costs a hash. If the hash is for a new account, the
  /// account is counted first, and registrations over the limit do not wait for a permit.
  func hashingPermit(_ attempt: ProviderAttempt, _ context: StepContext, _ flow: FlowTransaction)
    async throws(FlowError) -> HashingGrant
  {
    let (provider, request) = (attempt.provider, flow.request)
    let address = request.client.address.countingKey
    guard provider.descriptor.hashesSecrets else {
      return HashingGrant(
        hasher: HasherOnDemand(
          hashing: hashing, address: address, salt: salt(for: provider, context)))
    }
    guard hashing.hasRoom else { throw request.refusal(.busy) }
    var grant = HashingGrant()
    if flow.record.makesAccount(setting: attempt.step) {
      grant.isRegistration = try await admission.countRegistration(by: attempt.policy, attempt.step.identifier, flow)
    }
    grant.hasher = await hashing.acquirePermit(for: address, salt: salt(for: provider, context))
    guard grant.hasher != nil else { throw request.refusal(.busy) }
    return grant
  }

  /// The salt for hashes at one address, shared by all accounts that claim it, so that one hash suffices to compare a
  /// password with all of them. The salt is keyed: it cannot be computed outside, and differs for each address. nil for
  /// secrets that belong to no identifier.
  func salt(for provider: any FullProvider, _ capabilities: StepContext) -> [UInt8]? {
    let kinds = provider.descriptor.identifierKinds
    let own = capabilities.identifier ?? capabilities.account?.identifiers.first { kinds.contains($0.kind) }
    guard let own, kinds.contains(own.kind) else { return nil }
    let parts = ["shared salt", provider.descriptor.name.rawValue, own.kind.rawValue, own.value]
    return Array(keys.counterKey(parts.map { Array($0.utf8) }).prefix(16))
  }
}
