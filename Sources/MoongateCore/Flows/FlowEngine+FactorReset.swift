import MoongateSDK

/// What came of removing a factor of an account.
package enum FactorReset: Sendable, Equatable {
  /// It is gone, and so are the account's sessions.
  case done
  /// There is no such account.
  case unknown
  /// The provider keeps nothing for the account. Those that do.
  case none(kept: [ProviderName])
}

extension FlowEngine {
  /// Removes what a provider keeps for an account, for a person who has lost it: the record, and the attempts and locks
  /// that were counted for it. All sessions end, proofs of before are worth nothing, and the person is told by a
  /// message.
  /// - Parameter identity: for the audit trail: who did it, and by what.
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
      .endSessions(account: id, except: nil), .raiseEpoch(account: id), .audit(event),
    ]
    guard case .applied = try await store.apply(changes, at: request.now) else { return .unknown }
    tellOfRemoval(provider, account, request)
    return .done
  }
}
