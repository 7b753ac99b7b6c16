import MoongateSDK

// What people do with their whole account (account-security.md section 3, rule 10). Both need a recent proof of something that the account holds: a
// session that was left open, or stolen, must not take everything away.

extension FlowEngine {
  /// Everything that is stored about the person of the session.
  /// - Returns: `step_up_required` without a recent proof; `busy` while too many others are exported.
  package func exportAccount(client: ClientContext) async -> Result<AccountExport, Refusal> {
    await answer(client, flow: nil) { visit throws(Halt) in
      let account = try held(visit)
      // Attack: exports without end: each looks through the whole audit trail.
      guard exports.enter() else { throw visit.refusal(.busy) }
      defer { exports.leave() }
      let traces = account.identifiers.filter { $0.verifiedAt != nil }.map { keys.logHash($0.identifier.value) }
      return try await asking { () async throws(StoreFault) in
        AccountExport(
          account: account, factors: try await store.factors(of: account.id),
          sessions: try await store.sessions(of: account.id).filter { visit.now < $0.deadline },
          events: try await store.events(about: account.id, traces: traces, limit: AccountExport.mostEvents))
      }
    }
  }

  /// Removes the account of the session, and all that tells of the person.
  package func deleteAccount(client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: nil) { visit throws(Halt) in
      let account = try held(visit)
      let deletion = AccountDeletion(store: store, keys: keys, random: random)
      let isDone = try await asking { () async throws(StoreFault) in try await deletion.delete(account, at: visit.now) }
      guard isDone else { throw visit.refusal(.unauthenticated) }
    }
  }

  /// The account of the session that has proved enough just before.
  private func held(_ visit: Visit) throws(Halt) -> Account {
    guard let own = visit.client.session, own.isLive(at: visit.now) else { throw visit.refusal(.unauthenticated) }
    try demandHeldProof(of: own, visit)
    return own.account
  }
}
