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
  /// Removes what a provider keeps for an account, for a person who has lost it: the record, and the attempts and locks that were counted for it. All
  /// sessions end, proofs of before are worth nothing, and the person is told by a message.
  /// - Parameter origin: for the audit trail: who did it, and by what.
  package func resetFactor(
    _ provider: ProviderName, of id: String, by origin: [String: String], client: ClientContext
  ) async throws(StoreFault) -> FactorReset {
    let visit = Visit(client: client, now: clock.now(), generation: generations.current)
    guard let account = try await store.account(id) else { return .unknown }
    guard account.credentials.contains(provider) else { return .none(kept: account.credentials.sorted()) }
    var event = AuditEvent(id: DecisionID(from: random), at: visit.now, kind: .factorRemoved, provider: provider, account: id, detail: origin)
    event.detail["reason"] = "reset by an operator"
    let changes: [Change] = [
      .putProviderRecord(account: id, provider, sealed: nil), .clearCounters(countedPersonally(at: provider, account, visit)),
      .endSessions(account: id, except: nil), .raiseEpoch(account: id), .audit(event),
    ]
    guard case .applied = try await store.apply(changes, at: visit.now) else { return .unknown }
    tellOfRemoval(provider, account, visit)
    return .done
  }

  /// The counters of attempts at the account's factor. Only their names count: by them they are cleared, whatever their numbers are.
  private func countedPersonally(at provider: ProviderName, _ account: Account, _ visit: Visit) -> [ResolvedLimit] {
    guard let policy = visit.generation.policies[provider] else { return [] }
    let kinds = registry(visit).descriptor(provider)?.identifierKinds ?? []
    let identifiers = account.identifiers.map(\.identifier).filter { kinds.contains($0.kind) }
    var found: [ResolvedLimit] = []
    for identifier in [nil] + identifiers.map(Optional.some) {
      let subject = subject(policy, identifier, account: account.id, flow: TokenHash(of: [UInt8]()), visit)
      let limits = (try? policy.resolve(.verify, for: subject, keys: keys, number: { _ in 1 }, duration: { _ in Self.longestWindow })) ?? []
      for limit in limits where limit.key.isPersonal && !found.contains(where: { $0.counter == limit.counter }) { found.append(limit) }
    }
    return found
  }

  /// Longer than any window that counts.
  private static let longestWindow: Duration = .seconds(400 * 86_400)
}
