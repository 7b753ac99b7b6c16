import MoongateSDK

/// Deletes an account, for an operator or for the user.
///
/// Deleted are the account, its identifiers, names, records and sessions, and its running flows. Audit events stay,
/// without account, identifier, address and facts. Counters and timers are rows with keyed hashes that cannot be linked
/// to a person; they stay until they expire, so that deleting an account does not escape a lock. The details of failed
/// attempts, which tell operators whose lock it is, are deleted. A grant of an app, which has the account's ID, stays
/// until the app has its notice that the session has ended, for a day at most.
struct AccountDeletion: Sendable {
  let store: any Store
  let keys: KeyRing
  let random: any RandomSource
  /// The operator's details, if an operator deletes the account.
  var detail: [String: String] = [:]

  /// Deletes the account.
  /// - Returns: false if it no longer exists.
  func delete(_ account: Account, at now: Timestamp) async throws(StoreFault) -> Bool {
    var traces = [keys.accountTrace(account.id)]
    for held in account.identifiers {
      // Attack: the owner of an account that claims another user's address deletes that account, and with it every
      // audit event about the other's address, such as those of an attack on it.
      if held.verifiedAt == nil,
        try await store.accounts(naming: held.identifier).contains(where: { $0.id != account.id })
      {
        continue
      }
      traces.append(keys.logHash(held.identifier.value))
    }
    let event = AuditEvent(id: DecisionID(from: random), at: now, kind: .accountDeleted, detail: detail)
    return try await store.apply([.deleteAccount(account.id, traces: traces), .audit(event)], at: now)
      == .applied(locks: [])
  }
}
