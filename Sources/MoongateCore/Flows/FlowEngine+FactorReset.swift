import MoongateSDK

/// The result of removing a factor from an account.
package enum FactorReset: Sendable, Equatable {
  /// The factor was removed and all sessions of the account ended.
  case done
  /// The account does not exist.
  case unknown
  /// The account has no record of the provider. Lists the providers that have one.
  case none(kept: [ProviderName])
}

extension FlowEngine {
  /// Removes a provider's record from an account when the user has lost the factor, together with its attempt counters
  /// and locks. All sessions end, no device is trusted any more, earlier proofs become invalid, and the user is
  /// notified.
  /// - Parameter identity: the operator, for the audit trail.
  package func resetFactor(
    _ provider: ProviderName, of id: String, by identity: OperatorIdentity, client: ClientContext
  ) async throws(StoreFault) -> FactorReset {
    let request = RequestContext(client: client, now: clock.now(), generation: generations.current)
    guard let account = try await store.account(id) else { return .unknown }
    guard account.credentials.contains(provider) else { return .none(kept: account.credentials.sorted()) }
    var event = AuditEvent(
      id: DecisionID(from: random), at: request.now, kind: .factorRemoved, provider: provider, account: id,
      detail: identity.detail)
    event.address = identity.address
    event.detail["reason"] = "reset by an operator"
    let changes: [Change] = [
      .putProviderRecord(account: id, provider, sealed: nil),
      .clearCounters(
        PersonalLimits(keys: keys, providers: providers).limits(
          [.verify], of: account, at: provider, in: request.generation)),
      .endSessions(account: id, except: nil), .forgetDevices(account: id, except: nil), .raiseEpoch(account: id),
      .audit(event),
    ]
    guard case .applied = try await store.apply(changes, at: request.now) else { return .unknown }
    parts.notices.notifyOfRemoval(provider, account, request)
    return .done
  }
}
