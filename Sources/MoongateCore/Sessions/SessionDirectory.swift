/// Finds and ends sessions.
package struct SessionDirectory: Sendable {
  private let store: any SessionStore
  private let clock: any GatewayClock

  package init(store: any SessionStore, clock: any GatewayClock) {
    self.store = store
    self.clock = clock
  }

  /// The session, if it is live and its account is not locked.
  package func find(_ token: TokenHash) async throws(StoreFault) -> SessionSnapshot? {
    guard let found = try await store.session(token), found.isLive(at: clock.now()) else { return nil }
    return found
  }

  /// The live sessions of an account, newest first.
  package func sessions(of account: String) async throws(StoreFault) -> [Session] {
    try await store.liveSessions(of: account, at: clock.now())
  }
}

extension SessionStore {
  /// The sessions of an account that have not ended, newest first.
  func liveSessions(of account: String, at now: Timestamp) async throws(StoreFault) -> [Session] {
    try await sessions(of: account).filter { now < $0.deadline }
  }
}

extension SessionSnapshot {
  /// Whether the session is live. It is no longer live at its deadline.
  package func isLive(at now: Timestamp) -> Bool { now < session.deadline && !account.isLocked }
}
