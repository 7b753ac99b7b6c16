import MoongateSDK

/// What an operator wants to know of a person at a glance.
package struct AccountOverview: Sendable {
  package let account: Account
  /// The locks of limits that stand.
  package let locks: [NamedLock]
  /// What providers keep for the account, without what it is.
  package let factors: [StoredFactor]
  /// The devices that are signed in: its sessions, newest first. (A device that is known and signed out carries its own
  /// token, and is stored nowhere.)
  package let devices: [Session]
  /// The tokens that the person has made for programs, without their secrets.
  package let tokens: [AccessToken]
  /// The last sign-ins, newest first.
  package let signIns: [AuditEvent]

  /// So many sign-ins are told.
  package static let signInsTold = 5
}

extension AccountAdministration {
  /// All that is known of an account.
  package func overview(of account: Account, in generation: any PolicyGeneration) async throws(StoreFault)
    -> AccountOverview
  {
    let filter = AuditFilter(people: .init(accounts: [account.id]), kinds: [.sessionStarted])
    return AccountOverview(
      account: account, locks: try await locks(of: account, in: generation),
      factors: try await store.factors(of: account.id),
      devices: try await sessions(of: account.id),
      tokens: try await store.accessTokens(of: account.id),
      signIns: try await store.events(matching: filter, limit: AccountOverview.signInsTold))
  }

  /// Whom a text names in the audit trail: accounts, and identifiers that nobody has.
  package func people(named text: String, region: String) async throws(StoreFault) -> AuditFilter.People {
    var people = AuditFilter.People(traces: traces(named: text, region: region))
    // The id of an account that is gone still finds the line that says so.
    if text.hasPrefix("ac_") { people.accounts.insert(text) }
    for account in try await accounts(named: text, region: region) {
      people.accounts.insert(account.id)
      people.traces.formUnion(
        account.identifiers.filter { $0.verifiedAt != nil }.map { keys.logHash($0.identifier.value) })
    }
    return people
  }

  /// The forms in which the audit trail names identifiers that a text may mean.
  package func traces(named text: String, region: String) -> Set<String> {
    Set(identifiers(named: text, region: region).map { keys.logHash($0.value) })
  }

  /// The events that a filter asks for, newest first.
  package func events(matching filter: AuditFilter, limit: Int) async throws(StoreFault) -> [AuditEvent] {
    try await store.events(matching: filter, limit: limit)
  }

  /// Everything that is stored about a person. That it was given out is told in the audit trail.
  /// - Returns: nil where there is no such account.
  package func export(_ id: String) async throws(StoreFault) -> AccountExport? {
    guard let account = try await store.account(id) else { return nil }
    let now = clock.now()
    let export = try await AccountExport(of: account, in: store, keys: keys, at: now)
    try await store.append([event(.accountExported, id, at: now)])
    return export
  }
}
