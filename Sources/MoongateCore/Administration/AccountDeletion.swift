import MoongateSDK

/// How an account is removed, by an operator or by the person themselves.
///
/// What goes: the account, identifiers, names, records, sessions and flows under way. Lines of the audit trail stay
/// without account, identifier, address and facts. Counters and timers are rows of keyed hashes that name nobody; they
/// stay until they expire, since to be deleted must not be a way out of a lock. What failed attempts say of the person,
/// so that an operator knows whose lock it is, goes.
struct AccountDeletion: Sendable {
  let store: any Store
  let keys: KeyRing
  let random: any RandomSource
  /// Who does it, where an operator does.
  var detail: [String: String] = [:]

  /// Removes the account.
  /// - Returns: false where it is gone already.
  func delete(_ account: Account, at now: Timestamp) async throws(StoreFault) -> Bool {
    var traces = [keys.accountTrace(account.id)]
    for held in account.identifiers {
      // Attack: an account that claims the address of another is deleted by whoever made it, and with it every line
      // about the other's address that the audit trail has, such as those of an attack on it.
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
