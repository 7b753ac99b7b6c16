import MoongateSDK

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
  /// - Parameters:
  ///   - address: the client that requested it.
  ///   - provider: whose site has made the client do so; nil: the user has.
  package func end(_ session: Session, by address: ClientAddress, for provider: ProviderName? = nil)
    async throws(StoreFault)
  {
    let now = clock.now()
    let reason = provider == nil ? [:] : Reason.site.detail
    let event = AuditEvent(
      id: DecisionID(from: random), at: now, kind: .sessionEnded, provider: provider, account: session.account,
      address: address.description,
      detail: reason.merging(["session": session.id]) { known, _ in known })
    _ = try await store.apply([.endSession(session.token), .audit(event)], at: now)
  }

  /// Ends the sessions of any account that a session at another site has opened.
  ///
  /// Attack: a sign-in that was proved before, and that waits for another step or for the app to redeem its code, opens
  /// a session after the site has ended it. Once the end is stored, no session is.
  /// - Parameter siteSession: a hash by `KeyRing.siteSessionHash`.
  /// - Returns: how many have ended.
  package func end(openedBy siteSession: String, at provider: ProviderName) async throws(StoreFault) -> Int {
    let now = clock.now()
    _ = try await store.apply([.endSiteSession(siteSession)], at: now)
    var count = 0
    while true {
      let sessions = try await store.sessions(openedBy: siteSession, limit: Self.mostAtOnce)
      let all = sessions.flatMap { changes(ending: $0, of: provider, .site, at: now) }
      guard !all.isEmpty, case .applied = try await store.apply(all, at: now) else { return count }
      count += sessions.count
    }
  }

  /// How many sessions end in one transaction.
  private static let mostAtOnce = 100

  private func changes(ending session: Session, of provider: ProviderName, _ reason: Reason, at now: Timestamp)
    -> [Change]
  {
    let event = AuditEvent(
      id: DecisionID(from: random), at: now, kind: .sessionEnded, provider: provider, account: session.account,
      detail: reason.detail.merging(["session": session.id]) { known, _ in known })
    return [.endSession(session.token), .audit(event)]
  }

  /// Ends the sessions of the account that holds an identity, in which its provider has proved it.
  ///
  /// Attack: a sign-in that the user began before, and that waits for another step or for the app to redeem its code,
  /// opens a session after the site has ended it. Flows of the account must therefore begin again. One that completes
  /// meanwhile is found by reading again.
  /// - Parameters:
  ///   - siteSession: a hash by `KeyRing.siteSessionHash`: only sessions of this one, of any account, and those of the
  ///     identity's account whose session at the site is unknown; nil: all of that account.
  ///   - reason: of the event.
  /// - Returns: how many have ended; 0 if the reason no longer holds.
  package func end(
    of identity: Identifier, provedBy provider: ProviderName, siteSession: String?, because reason: Reason = .site
  ) async throws(StoreFault) -> Int {
    // Attack: the session belongs to another account by now, such as after two were merged.
    let opened = if let siteSession { try await end(openedBy: siteSession, at: provider) } else { 0 }
    let now = clock.now()
    guard let account = try await store.account(holding: identity) else { return opened }
    var ended: Set<String> = []
    // A user who signs out at the site keeps the tokens of their scripts. One who is gone there does not.
    let keepsTokens = siteSession != nil || reason.keepsTokens
    var changes: [Change] = reason.changes + [.raiseEpoch(account: account.id, keepsTokens: keepsTokens)]
    for _ in 0..<Self.mostReads {
      let sessions = try await store.sessions(of: account.id).filter { session in
        session.passed.contains { step in
          step.provider == provider
            && (siteSession == nil || step.siteSession == nil || step.siteSession == siteSession)
        }
      }
      changes += sessions.flatMap { self.changes(ending: $0, of: provider, reason, at: now) }
      guard !changes.isEmpty, case .applied = try await store.apply(changes, at: now) else { break }
      ended.formUnion(sessions.map(\.id))
      changes = []
    }
    return opened + ended.count
  }

  /// How often sessions are read, at most. Since the first time, no flow that was begun before opens one.
  private static let mostReads = 8

  /// Why the sessions of an identity end.
  package enum Reason: Sendable {
    /// The site says so, by a webhook or to a maintenance.
    case site
    /// A recheck has not confirmed the identity. The first changes are part of the transaction: if they conflict, no
    /// session ends.
    case recheck(because: String, keepsTokens: Bool, first: [Change])

    fileprivate var detail: [String: String] {
      switch self {
      case .site: ["by": "site"]
      case .recheck(let because, _, _): ["by": "recheck", "because": because]
      }
    }

    fileprivate var keepsTokens: Bool { if case .recheck(_, let keeps, _) = self { keeps } else { false } }

    fileprivate var changes: [Change] { if case .recheck(_, _, let first) = self { first } else { [] } }
  }

  /// Ends the session that had this token before its current one.
  ///
  /// Attack: a thief has the session's token replaced. The owner signs out with the old one, is told that it worked,
  /// and the thief's session lives on.
  /// - Returns: false if there is no such session.
  package func end(replaced token: TokenHash, by address: ClientAddress) async throws(StoreFault) -> Bool {
    guard let session = try await store.session(replacing: token, at: clock.now()) else { return false }
    try await end(session, by: address)
    return true
  }
}
