import MoongateSDK

/// Everything that the gateway stores about a person, for themselves: no token, no hash, no code, no key.
///
/// Not in it: flows under way, which are forgotten within their lifetime, and counters, whose keys name nobody. Devices
/// are not stored: a device carries its own token.
package struct AccountExport: Sendable, Equatable {
  package let account: Account
  /// What providers keep for the account, by name.
  package let factors: [StoredFactor]
  /// The groups that an operator added the account to.
  package let groups: [GroupMember]
  /// Newest first.
  package let sessions: [Session]
  /// The tokens that the person has made for programs, without their secrets.
  package let tokens: [AccessToken]
  /// What happened to the account, newest first, as far back as the audit trail goes; at most `mostEvents`.
  package let events: [AuditEvent]

  package static let mostEvents = 10_000
}

extension AccountExport {
  /// Reads everything that is stored about the account's person.
  /// - Parameters:
  ///   - keys: by which the audit trail names the account's identifiers.
  ///   - now: sessions that have ended by then are left out.
  init(of account: Account, in store: any Store, keys: KeyRing, at now: Timestamp) async throws(StoreFault) {
    let traces = account.identifiers.filter { $0.verifiedAt != nil }.map { keys.logHash($0.identifier.value) }
    self.init(
      account: account, factors: try await store.factors(of: account.id),
      groups: try await store.memberships(of: account.id),
      sessions: try await store.sessions(of: account.id).filter { now < $0.deadline },
      tokens: try await store.accessTokens(of: account.id),
      events: try await store.events(about: account.id, traces: traces, limit: Self.mostEvents))
  }
}
