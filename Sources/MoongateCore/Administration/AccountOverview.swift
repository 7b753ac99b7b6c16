import MoongateSDK

/// A summary of an account for operators.
package struct AccountOverview: Sendable {
  package let account: Account
  /// The event of an operator's lock. nil if the account is not locked, or the audit trail no longer has the event.
  package let operatorLock: AuditEvent?
  /// The account's active locks.
  package let locks: [NamedLock]
  /// What providers store for the account, without the secrets.
  package let factors: [StoredFactor]
  /// The sessions, newest first.
  package let sessions: [Session]
  /// The trusted devices, the one that was seen last first.
  package let devices: [TrustedDevice]
  /// The user's personal access tokens, without their secrets.
  package let tokens: [AccessToken]
  /// The last sign-ins, newest first.
  package let signIns: [AuditEvent]

  /// The number of sign-ins included.
  package static let signInsTold = 5
}

extension AccountAdministration {
  /// The summary of an account.
  package func overview(of account: Account, in generation: any PolicyGeneration) async throws(StoreFault)
    -> AccountOverview
  {
    let filter = AuditFilter(people: .init(accounts: [account.id]), kinds: [.sessionStarted])
    return AccountOverview(
      account: account, operatorLock: account.isLocked ? try await lastLock(of: account.id) : nil,
      locks: try await locks(of: account, in: generation),
      factors: try await store.factors(of: account.id),
      sessions: try await sessions(of: account.id), devices: try await devices(of: account.id),
      tokens: try await store.accessTokens(of: account.id),
      signIns: try await store.events(matching: filter, limit: AccountOverview.signInsTold))
  }

  /// The accounts and unowned identifiers that a text may refer to in the audit trail.
  package func people(named text: String, region: String) async throws(StoreFault) -> AuditFilter.People {
    var people = AuditFilter.People(traces: traces(named: text, region: region))
    // The ID of a deleted account still finds the event of its deletion.
    if text.hasPrefix("ac_") { people.accounts.insert(text) }
    for account in try await accounts(named: text, region: region) {
      people.accounts.insert(account.id)
      people.traces.formUnion(
        account.identifiers.filter(\.isOwn).map { keys.logHash($0.identifier.value) })
    }
    return people
  }

  /// The keyed hashes of the identifiers that a text may refer to.
  package func traces(named text: String, region: String) -> Set<String> {
    Set(identifiers(named: text, region: region).map { keys.logHash($0.value) })
  }

  /// The events that match a filter, newest first.
  package func events(matching filter: AuditFilter, limit: Int) async throws(StoreFault) -> [AuditEvent] {
    // Several processes append their events in batches.
    try await store.events(matching: filter, limit: limit).sorted { $0.at > $1.at }
  }

  /// Records that the operator is about to export all accounts. It comes first, so that an interrupted export is
  /// recorded too.
  /// - Parameter secrets: what is exported beside the accounts: `hashes` or `records`; nil: nothing.
  package func noteExport(with secrets: String?) async throws(StoreFault) {
    var event = event(.accountExported, nil, at: clock.now())
    event.detail["accounts"] = "all"
    event.detail["with"] = secrets
    try await store.append([event])
  }

  /// Exports everything that is stored about a user, and records the export in the audit trail.
  /// - Returns: nil if the account does not exist.
  package func export(_ id: String) async throws(StoreFault) -> AccountExport? {
    guard let account = try await store.account(id) else { return nil }
    let now = clock.now()
    let export = try await AccountExport(of: account, in: store, keys: keys, at: now)
    try await store.append([event(.accountExported, id, at: now)])
    return export
  }
}
