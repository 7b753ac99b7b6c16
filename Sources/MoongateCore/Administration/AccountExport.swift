import MoongateSDK

/// Everything that the gateway stores about a user, for that user. Contains no tokens, hashes, codes or keys.
///
/// Not included: running flows, which expire soon, and counters, whose keys cannot be linked to a person.
package struct AccountExport: Sendable, Equatable {
  package let account: Account
  /// What providers store for the account, by name.
  package let factors: [StoredFactor]
  /// The groups that an operator added the account to.
  package let groups: [GroupMember]
  /// Newest first.
  package let sessions: [Session]
  /// The trusted devices, the one that was seen last first.
  package let devices: [TrustedDevice]
  /// The user's personal access tokens, without their secrets.
  package let tokens: [AccessToken]
  /// The apps that the user has signed in to.
  package let apps: [AppConnection]
  /// The account's audit events, newest first, at most `maxEvents`.
  package let events: [AuditEvent]

  package static let maxEvents = 10_000
}

extension AccountExport {
  /// Reads everything that is stored about the account's user.
  /// - Parameters:
  ///   - keys: the keys by which the audit trail refers to the account's identifiers.
  ///   - now: sessions that have ended by this time are left out.
  init(of account: Account, in store: any Store, keys: KeyRing, at now: Timestamp) async throws(StoreFault) {
    let traces = account.identifiers.filter(\.isOwn).map { keys.logHash($0.identifier.value) }
    self.init(
      account: account, factors: try await store.factors(of: account.id),
      groups: try await store.memberships(of: account.id),
      sessions: try await store.liveSessions(of: account.id, at: now),
      devices: try await store.devices(of: account.id, at: now),
      tokens: try await store.accessTokens(of: account.id), apps: try await store.appConnections(of: account.id),
      events: try await store.events(about: account.id, traces: traces, limit: Self.maxEvents))
  }
}
