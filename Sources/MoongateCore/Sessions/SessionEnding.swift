/// Ends sessions and writes the audit event in the same transaction.
package struct SessionEnding: Sendable {
  private let store: any Store
  private let clock: any GatewayClock
  private let random: any RandomSource

  package init(store: any Store, clock: any GatewayClock, random: any RandomSource) {
    self.store = store
    self.clock = clock
    self.random = random
  }

  /// Ends one session.
  /// - Parameter address: the client that requested it.
  package func end(_ session: Session, by address: ClientAddress) async throws(StoreFault) {
    let now = clock.now()
    let event = AuditEvent(
      id: DecisionID(from: random), at: now, kind: .sessionEnded, account: session.account,
      address: address.description,
      detail: ["session": session.id])
    _ = try await store.apply([.endSession(session.token), .audit(event)], at: now)
  }

  /// Signs the account out everywhere, or everywhere else. Sign-ins and resets that are in progress end too, and codes
  /// that were sent before stop working.
  /// - Parameters:
  ///   - kept: the session to keep; nil to end all.
  ///   - address: the client that requested it.
  package func endAll(of account: String, except kept: Session? = nil, by address: ClientAddress)
    async throws(StoreFault)
  {
    let now = clock.now()
    let event = AuditEvent(
      id: DecisionID(from: random), at: now, kind: .sessionEnded, account: account, address: address.description,
      detail: ["sessions": kept == nil ? "all" : "all others"])
    _ = try await store.apply(
      [.raiseEpoch(account: account), .endSessions(account: account, except: kept?.token), .audit(event)], at: now)
  }
}
