import Logging
import MoongateSDK

// The single things that a provider keeps for an account, such as each of its passkeys: listed for their owner.

extension FlowEngine {
  /// So many of a provider are listed.
  private static var mostHoldings: Int { 64 }

  /// What providers with the role `keepsSeveral` keep for the session's account. Records of all others stay closed.
  package func holdings(client: ClientContext) async -> Result<[ProviderName: [HeldItem]], Refusal> {
    await answer(client, flow: nil) { visit throws(Halt) in
      guard let own = visit.client.session, own.isLive(at: visit.now) else { throw visit.refusal(.unauthenticated) }
      var found: [ProviderName: [HeldItem]] = [:]
      for name in own.account.credentials.sorted() {
        guard let provider = keeper(name, visit), let kept = try await kept(by: provider, for: own.account.id, visit) else { continue }
        do {
          found[name] = Array(try provider.holdings(in: kept).prefix(Self.mostHoldings))
        } catch {
          logUnreadable(name, error, visit)
        }
      }
      return found
    }
  }

  /// A provider that keeps several things for an account and can be used now.
  private func keeper(_ name: ProviderName, _ visit: Visit) -> (any FullProvider)? {
    guard visit.generation.policies[name] != nil, let provider = registry(visit)[name] as? any FullProvider,
      provider.descriptor.role.contains(.keepsSeveral)
    else { return nil }
    return provider
  }

  /// The provider's record of the account in its newest form; nil where there is none.
  private func kept(by provider: any FullProvider, for account: String, _ visit: Visit) async throws(Halt) -> [UInt8]? {
    let name = provider.descriptor.name
    let sealed = try await asking { () async throws(StoreFault) in try await store.providerRecord(of: account, for: name) }
    guard let sealed else { return nil }
    let record = try open(sealed, of: name, for: account)
    return try await upgrade(record, by: provider, for: account, redaction(of: name, nil, [], visit), visit) ?? record.bytes
  }

  /// What a provider has thrown at its record is the operator's to read; the lists of the others are shown all the same.
  private func logUnreadable(_ name: ProviderName, _ error: any Error, _ visit: Visit) {
    let redaction = redaction(of: name, nil, [], visit)
    logger.error(
      "a provider could not read its record",
      metadata: ["decision": "\(visit.client.decision)", "provider": "\(name)", "fault": "\(redaction("\(error)"))"])
  }
}
