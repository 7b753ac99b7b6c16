import Logging
import MoongateSDK

// Lists the individual items that a provider stores for an account, such as passkeys, for the account's owner.

extension FlowEngine {
  /// The maximum number of items listed per provider.
  private static var maxHoldings: Int { 64 }

  /// The items that providers with the role `keepsSeveral` store for the session's account. Records of other providers
  /// are not opened.
  package func holdings(client: ClientContext) async -> Result<[ProviderName: [HeldItem]], Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let own = try request.liveSession()
      var found: [ProviderName: [HeldItem]] = [:]
      for name in own.account.credentials.sorted() {
        guard let provider = itemProvider(name, request),
          let record = try await storedRecord(of: provider, for: own.account.id, request)
        else { continue }
        do {
          found[name] = Array(try provider.holdings(in: record).prefix(Self.maxHoldings))
        } catch {
          logUnreadable(name, error, request)
        }
      }
      return found
    }
  }

  /// The provider, if it can store several items for an account and is configured.
  private func itemProvider(_ name: ProviderName, _ request: RequestContext) -> (any FullProvider)? {
    guard request.generation.policies[name] != nil, let provider = registry(request)[name] as? any FullProvider,
      provider.descriptor.role.contains(.keepsSeveral)
    else { return nil }
    return provider
  }

  /// The provider's record of the account in the newest format; nil if it has none.
  private func storedRecord(of provider: any FullProvider, for account: String, _ request: RequestContext)
    async throws(FlowError) -> [UInt8]?
  {
    let name = provider.descriptor.name
    let sealed = try await asking { () async throws(StoreFault) in
      try await store.providerRecord(of: account, for: name)
    }
    guard let sealed else { return nil }
    let record = try parts.seals.open(sealed, of: name, for: account)
    return try await calls.upgrade(
      record, by: provider, for: account, calls.redaction(of: name, nil, [], request), request)
      ?? record.bytes
  }

  /// Logs an error that a provider threw when it read its record. The items of the other providers are still listed.
  private func logUnreadable(_ name: ProviderName, _ error: any Error, _ request: RequestContext) {
    let redaction = calls.redaction(of: name, nil, [], request)
    logger.error(
      "a provider could not read its record",
      metadata: ["decision": "\(request.client.decision)", "provider": "\(name)", "fault": "\(redaction("\(error)"))"])
  }
}
