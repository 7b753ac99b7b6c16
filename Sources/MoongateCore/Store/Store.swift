import MoongateSDK

/// Everything that a store must provide: a few operations, each of them atomic and durable when it returns.
package protocol Store: LedgerStore, FlowStore, AccountStore, SessionStore, AccessTokenStore, AuditStore, AuditSearch,
  AuditCursorStore, NodeStore,
  ProviderValueStore, LeaseStore, RecheckStore, GroupStore, InvitationStore, AccountImportStore, AppStore
{
  /// The latest time that the store has recorded. The clock starts no earlier.
  func latestMoment() async throws(StoreFault) -> Timestamp

  /// Tests whether writes succeed, if one has failed since the last test. Otherwise it does nothing.
  /// - Throws: why a write fails, for example because the disk is full.
  func demandWrites(at now: Timestamp) async throws(StoreFault)

  /// Applies all changes in one transaction, or none of them.
  /// - Parameter query: what to read after the changes, at the end of the same transaction.
  /// - Returns: `applied` with the locks that settlements began, or the first conflict, with nothing changed.
  func apply(_ changes: [Change], reading query: LedgerQuery?, at now: Timestamp) async throws(StoreFault)
    -> ApplyResult

  /// Deletes rows that have been expired for long enough, and settles imports of accounts (`settleImport`), a bounded
  /// number per call.
  /// - Returns: whether there is more to delete.
  func prune(at now: Timestamp) async throws(StoreFault) -> Bool
}

extension Store {
  package func apply(_ changes: [Change], at now: Timestamp) async throws(StoreFault) -> ApplyResult {
    try await apply(changes, reading: nil, at: now)
  }
}

/// Stores attempts and their counters.
package protocol LedgerStore: Sendable {
  /// Charges one attempt against all limits or against none, in one transaction that first locks the counters in sorted
  /// order.
  func reserve(_ request: ReservationRequest) async throws(StoreFault) -> ReservationResult
  /// The current state of counters and, if given, a timer. Charges nothing.
  func ledgerState(_ query: LedgerQuery, at now: Timestamp) async throws(StoreFault) -> LedgerState
  /// The active locks.
  func locks(at now: Timestamp) async throws(StoreFault) -> [LockRecord]
  /// The active locks that failed attempts at a user's account or identifiers led to, oldest first.
  /// - Parameter traces: the user's `FailedAttempt.account` and `FailedAttempt.identifier` values.
  func locks(about traces: [String], at now: Timestamp) async throws(StoreFault) -> [LockRecord]
  /// The stored failed attempts of counters, newest first for each counter.
  func failedAttempts(at counters: [[UInt8]]) async throws(StoreFault) -> [FailedAttempt]
  /// Ends a lock (or re-enables what was disabled) now. Its limit restarts from zero.
  /// - Returns: false if the lock does not exist.
  func liftLock(_ id: String, at now: Timestamp) async throws(StoreFault) -> Bool
}

extension LedgerStore {
  /// The counters' states, in the order of the limits.
  package func counters(_ limits: [ResolvedLimit], at now: Timestamp) async throws(StoreFault) -> [CounterState] {
    try await ledgerState(LedgerQuery(limits), at: now).counters
  }
}

/// The counters and the timer whose state is asked for.
package struct LedgerQuery: Sendable, Equatable {
  package let limits: [ResolvedLimit]
  package let timer: ResendTimer?

  package init(_ limits: [ResolvedLimit], _ timer: ResendTimer? = nil) {
    self.limits = limits
    self.timer = timer
  }
}

/// The state of counters and a timer.
package struct LedgerState: Sendable, Equatable {
  /// In the order of the requested limits.
  package let counters: [CounterState]
  /// When the timer allows the next send; nil if it is not running.
  package let resendAt: Timestamp?

  package init(counters: [CounterState], resendAt: Timestamp?) {
    self.counters = counters
    self.resendAt = resendAt
  }
}

/// Stores flows that were begun.
package protocol FlowStore: Sendable {
  /// The flow, open or not, until it is pruned.
  func flow(_ id: TokenHash) async throws(StoreFault) -> FlowRecord?
  /// The flow as this process stored it last, if it is still in memory. Another process may have changed it since.
  func recentFlow(_ id: TokenHash) -> FlowRecord?
  /// The flow, and the account that has verified the identifier, both as of one moment. Without the flow, no account.
  func flow(_ id: TokenHash, withHolderOf identifier: Identifier) async throws(StoreFault) -> (
    flow: FlowRecord?, holder: Account?
  )
  /// Deletes flows without any proof if there are more than the bound allows. (The bound per address is applied when a
  /// flow is stored.)
  /// - Returns: the number of deleted flows.
  @discardableResult
  func evictFlows(beyond bound: FlowBound, at now: Timestamp) async throws(StoreFault) -> Int
}

/// Stores accounts.
package protocol AccountStore: Sendable {
  func account(_ id: String) async throws(StoreFault) -> Account?
  /// Accounts in the order of their IDs.
  /// - Parameters:
  ///   - id: the last ID of the previous page; nil for the first page.
  ///   - limit: the maximum number, 1 or more.
  func accounts(after id: String?, limit: Int) async throws(StoreFault) -> [Account]
  /// All accounts with the identifier, verified or only claimed. The account that has verified it comes first, then the
  /// newest.
  func accounts(naming identifier: Identifier) async throws(StoreFault) -> [Account]
  /// The account that has verified the identifier.
  func account(holding identifier: Identifier) async throws(StoreFault) -> Account?
  /// The IDs of the accounts that claim the identifier without having verified it, oldest first.
  /// - Parameters:
  ///   - provider: only accounts for which this provider stores a record; nil: all.
  ///   - limit: the maximum number, 1 or more.
  func accounts(claiming identifier: Identifier, having provider: ProviderName?, limit: Int) async throws(StoreFault)
    -> [String]
  /// Whether an account has the exclusive identifier (`IdentifierKind.isExclusive`) or one that looks like it.
  func isTaken(_ identifier: Identifier) async throws(StoreFault) -> Bool
  /// A full provider's sealed record for the account; nil if none exists. `Account.credentials` lists the providers
  /// that have one.
  func providerRecord(of account: String, for provider: ProviderName) async throws(StoreFault) -> [UInt8]?
  /// The kinds of imported hash that the provider's records hold.
  func importedHashes(of provider: ProviderName) async throws(StoreFault) -> Set<HashWork>
  /// The providers that have a record for the account, sorted by name, with their times.
  func factors(of account: String) async throws(StoreFault) -> [StoredFactor]
  /// The account's trusted devices whose tokens have not expired, the one that was seen last first.
  func devices(of account: String, at now: Timestamp) async throws(StoreFault) -> [TrustedDevice]
  /// Deletes accounts without any verified or exclusive identifier that have not been used since a certain time, with
  /// everything that belongs to them, a bounded number per call. Audit events are not changed; the audit trail removes
  /// them in due course.
  func expireUnverified(unusedSince moment: Timestamp, at now: Timestamp) async throws(StoreFault) -> ExpiredAccounts
}

/// The result of one call to remove unverified accounts.
package struct ExpiredAccounts: Sendable, Equatable {
  package let removed: Int
  /// Whether there may be more to remove.
  package let hasMore: Bool

  package init(removed: Int, hasMore: Bool) {
    self.removed = removed
    self.hasMore = hasMore
  }
}

/// Stores sessions.
package protocol SessionStore: Sendable {
  /// The session with its account, expired or not; nil if none exists. Found by its own token, or by a token for
  /// another root domain. The latter has `Session.domain` and the steps that had passed when it was created.
  func session(_ token: TokenHash) async throws(StoreFault) -> SessionSnapshot?
  /// An account's sessions, newest first.
  func sessions(of account: String) async throws(StoreFault) -> [Session]
  /// The sessions of any account that were opened by a session at another site.
  /// - Parameters:
  ///   - siteSession: `PassedStep.siteSession`.
  ///   - limit: the maximum number, 1 or more.
  func sessions(openedBy siteSession: String, limit: Int) async throws(StoreFault) -> [Session]
  /// The session that had this token before its current one; nil if there is none, or if the token was replaced too
  /// long ago.
  func session(replacing token: TokenHash, at now: Timestamp) async throws(StoreFault) -> Session?
  /// Updates the last activity of sessions and its address. It only moves forward.
  func touch(_ uses: [TokenHash: SessionUse]) async throws(StoreFault)
  /// The changes of sessions and accounts since the given number, by any process.
  func sessionChanges(after sequence: Int64) async throws(StoreFault) -> SessionChanges
}

/// Stores the audit trail.
package protocol AuditStore: Sendable {
  func append(_ events: [AuditEvent]) async throws(StoreFault)
  /// The latest events, newest first.
  /// - Parameter limit: the maximum number, 1 or more.
  func events(limit: Int) async throws(StoreFault) -> [AuditEvent]
  func event(_ id: DecisionID) async throws(StoreFault) -> AuditEvent?
}

/// Searches the audit trail. Separate from `AuditStore`, whose other users only write and list.
package protocol AuditSearch: Sendable {
  /// The events of an account or one of its identifiers, newest first.
  /// - Parameters:
  ///   - traces: `KeyRing.logHash` of the identifiers.
  ///   - limit: the maximum number, 1 or more.
  func events(about account: String, traces: [String], limit: Int) async throws(StoreFault) -> [AuditEvent]
  /// The events that match a filter, newest first.
  /// - Parameter limit: the maximum number, 1 or more.
  func events(matching filter: AuditFilter, limit: Int) async throws(StoreFault) -> [AuditEvent]
}

/// A failure of the store, described for the log. Clients get 503 `store_unavailable`.
package struct StoreFault: Error, Sendable, Equatable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// A change in a transaction.
package enum Change: Sendable {
  case settle(Settlement)
  /// Stores the record as version `record.version + 1` if the stored version is `record.version` (0: the flow is new).
  case putFlow(FlowRecord)
  /// Deletes the flow. If a version is given, only if that is the stored version.
  case deleteFlow(TokenHash, version: Int? = nil)
  /// Creates an account. Conflicts if another account holds one of its verified identifiers, or has an exclusive one
  /// that looks like one of its own. Other accounts lose their claims on those identifiers, their sessions, and the
  /// records of the named providers.
  case createAccount(Account, forgetting: Set<ProviderName> = [])
  /// Marks the identifier as verified by the account now. Unverified claims of other accounts on it are removed as
  /// above. Until the given time it signs nobody in. Conflicts if another account has verified it.
  case verifyIdentifier(
    account: String, Identifier, forgetting: Set<ProviderName> = [], waitingUntil: Timestamp? = nil)
  /// Replaces the display, the attributes and the groups of a verified identifier of the account. Announced to every
  /// process like a session's change, because facts of the account's sessions depend on them. No effect if the account
  /// has not verified the identifier.
  case renewIdentifier(account: String, Identifier)
  /// Says when the site of a verified identity of the account is asked about it again; nil: no longer. Without a sealed
  /// state, the provider's stored one stays; if there is none, after a proof the empty one is stored. No effect if the
  /// account has not verified the identity.
  /// - Parameter fence: that of the claim under which the site was asked. Conflicts if the identity was removed, proved
  ///   or claimed since. nil: after a proof, which ends every claim.
  case putRecheck(account: String, Identifier, StoredRecheck?, under: Int64?)
  /// Replaces a full provider's record for the account; nil removes it. Sealed by the core.
  case putProviderRecord(account: String, ProviderName, sealed: [UInt8]?)
  /// Says which imported hash the provider's record for the account holds; nil: none. It stays when the record is
  /// replaced, until it is said anew. No effect without the record.
  case markImportedHash(account: String, ProviderName, HashWork?)
  /// Says that the account must replace what the provider's record holds before its next session; nil: it need not. It
  /// stays when the record is replaced, until it is said anew. No effect without the record.
  case setDueChange(account: String, ProviderName, DueChange?)
  /// Records that a factor of the account was reset now by something else that the account holds. The time stays if the
  /// factor is changed, or removed and set anew. Conflicts if the account does not exist.
  case recordReset(account: String, ProviderName)
  /// Requires that the hash of the account's sealed record of the provider is this one; nil: that it has no record.
  /// Otherwise the transaction has no effect.
  case requireProviderRecord(account: String, ProviderName, TokenHash?)
  /// Requires the account to be in this epoch (`Account.epoch`). Otherwise the transaction has no effect.
  case requireEpoch(AccountVersion)
  /// Invalidates everything that was proved for the account before: `Account.epoch` increases by one. Its personal
  /// access tokens end, unless they are kept.
  case raiseEpoch(account: String, keepsTokens: Bool = false)
  /// Adds the identifier to the account as unverified, so that it cannot be used to sign in by itself. No effect if the
  /// account already has it. Conflicts if it is exclusive and taken.
  case claimIdentifier(account: String, Identifier)
  /// Removes everything from the account except the identifier and the records of some providers: other identifiers,
  /// other records, groups and all sessions. Conflicts if the account has not verified the identifier, or has verified
  /// another one, because then someone else has proved to be its owner.
  case reclaimAccount(String, by: Identifier, keeping: Set<ProviderName>)
  /// Removes all identifiers of a kind from the account, except their replacement.
  case dropIdentifiers(account: String, IdentifierKind, except: Identifier)
  /// Sets names that the account does not have yet; nil leaves a name unchanged.
  case nameAccount(account: String, firstName: String?, lastName: String?)
  /// Sets the language of messages to the account, as a BCP 47 tag.
  case setLanguage(account: String, String)
  /// Replaces the names of the account; nil removes a name.
  case renameAccount(account: String, firstName: String?, lastName: String?)
  /// Removes an identifier from the account. Conflicts if the account does not have it.
  case removeIdentifier(account: String, Identifier)
  /// Merges the first account into the second. Verified identifiers move to the second account, where they count as
  /// verified now, unless it already has a verified one of that kind (several federated identities are allowed). Until
  /// the given time they sign nobody in. The first account is deleted with everything that belongs to it, including its
  /// groups. Conflicts if either account does not exist or is locked.
  case absorbAccount(String, into: String, waitingUntil: Timestamp? = nil)
  /// Ends these counters' locks and deletes their events, because what they count was replaced.
  case clearCounters([ResolvedLimit])
  /// Updates the time of the account's last use.
  case recordUse(account: String)
  /// Locks the account for an operator and ends all its sessions, or unlocks it. Conflicts if it does not exist.
  case setLocked(account: String, Bool)
  /// Adds the account to a group, or removes it. No effect if that is the case already. Announced to every process like
  /// a session's change. Conflicts if the account does not exist.
  case setGroupMembership(account: String, GroupName, Bool)
  /// Deletes the account with its identifiers, records and sessions, and the flows that refer to it. Events of the
  /// account, or with one of the traces (`KeyRing.logHash` of its identifiers, `KeyRing.accountTrace`), are kept
  /// without account, identifier, address and facts. Conflicts if it does not exist.
  case deleteAccount(String, traces: [String])
  /// Stores a session with a new ID and a new token. Conflicts if the account does not exist or an operator has locked
  /// it, or if the site has ended the session there that opened it (`endSiteSession`).
  case putSession(Session)
  /// Replaces the session with this token. Conflicts if that session has ended, so that a step-up cannot revive it. For
  /// a while, the replaced token still ends the session (`endSession`).
  case replaceSession(TokenHash, by: Session)
  /// Stores a session's token for another root domain and invalidates its previous one for that domain. Conflicts if
  /// the session has ended or has a new token.
  case putDomainToken(NewDomainToken)
  /// Ends the session with this token, which may be its own, one for another root domain or a replaced one, with all
  /// its tokens.
  case endSession(TokenHash)
  /// Remembers that a session at another site (`PassedStep.siteSession`) has ended there. From then on, a session that
  /// it has opened by a step that passed before cannot be stored: `epochChanged`. Sessions that exist stay.
  case endSiteSession(String)
  /// Ends all sessions of an account except one, and all tokens for other root domains, including those of that
  /// session.
  case endSessions(account: String, except: TokenHash?)
  /// Trusts a device for its account, or updates when it was seen. Beyond `TrustedDevice.mostPerAccount`, the devices
  /// that were unseen for the longest time are dropped. Conflicts if the account does not exist.
  case trustDevice(TrustedDevice)
  /// No longer trusts a device for the account. No effect if it is not trusted.
  case forgetDevice(account: String, id: String)
  /// No longer trusts any device for the account, except one.
  case forgetDevices(account: String, except: String?)
  /// Marks a one-time code as used. Conflicts if it was used before.
  /// - Parameter until: how long that is remembered. Longer than the code is valid.
  case spendCode(TokenHash, until: Timestamp)
  /// Stores a new token. Conflicts if another token has its name, if its owner does not exist or is locked, or if the
  /// owner has `most` tokens already.
  case putAccessToken(AccessToken, most: Int? = nil)
  /// Marks a token as superseded by a new secret. The old one stays valid until then at most. Conflicts if it does not
  /// exist or was superseded before.
  case supersedeAccessToken(String, until: Timestamp)
  /// Deletes a token. Conflicts if it does not exist.
  case endAccessToken(String)
  /// Records that the token's expiry was reported. Conflicts if it was reported before or the token does not exist.
  case noteAccessTokenExpired(String)
  /// Stores a new invitation.
  case putInvitation(Invitation)
  /// Uses up the invitation with this code, which then names nobody any more. Conflicts if it was used or revoked
  /// before, or has expired.
  case useInvitation(TokenHash)
  /// Revokes the invitation with this ID, which then names nobody any more. Conflicts if it was used or revoked before,
  /// or does not exist.
  case endInvitation(String)
  /// Requires that the lease is held. Otherwise the transaction has no effect.
  case requireLease(Lease)
  /// Stores an account of an import, which is locked until the import is complete. Conflicts if its ID, a verified
  /// identifier or an exclusive one is taken.
  case importAccount(StoredImport)
  /// Completes the import under this lease: from now on, `settleImport` lets its accounts be used and removes the
  /// claims of others on their verified identifiers, with the records of these providers.
  case completeImport(Lease, forgetting: Set<ProviderName>)
  /// Stores a new grant. Conflicts if its account does not exist or is locked, if the account is in another epoch, if
  /// its session has ended, or if the account has not been connected to the app ever since the grant's creation.
  case putAppGrant(AppGrant)
  /// Replaces the refresh token of a grant; the replaced one becomes the previous one. Conflicts if the current one is
  /// another, or if the grant has ended. Updates the last use of its connection.
  case rotateAppGrant(String, from: TokenHash, to: TokenHash, usedAt: Timestamp, expiresAt: Timestamp)
  /// Ends a grant with all its tokens. No effect if it has ended or does not exist.
  case endAppGrant(String)
  /// Stores that the account uses the app, or replaces the scopes, the last use and the agreement of the stored one.
  /// Conflicts if the account does not exist.
  case putAppConnection(AppConnection)
  /// Deletes the connection of the account and the app, and ends their grants.
  case endAppConnection(account: String, app: String)
  /// Stores a request of a device. Conflicts if the app has `most` unexpired ones from the address, or if the
  /// letters are in use.
  case putDeviceRequest(DeviceRequest, most: Int)
  /// Stores the user's decision. Conflicts unless the request is pending and has not expired.
  case decideDevice(user: TokenHash, DeviceRequest.Outcome)
  /// Records when a device asked, and how long it must wait now, in seconds.
  case pollDevice(TokenHash, at: Timestamp, interval: Int)
  /// Deletes a request of a device that was decided. Conflicts if it does not exist.
  case takeDevice(TokenHash)
  /// Says when the notice of a grant is due again, after one more attempt; nil: never.
  case settleAppNotice(String, nextDue: Timestamp?)
  /// Clears the resend timer after a success.
  case clearTimer([UInt8])
  case audit(AuditEvent)
}

/// The result of a transaction.
package enum ApplyResult: Sendable, Equatable {
  /// `ledgerState` is the state that was to be read; nil if it was not, or if it takes another read
  /// (`LedgerStore.ledgerState`) because events have left a window.
  case applied(locks: [LockBegun], ledgerState: LedgerState? = nil)
  case conflict(Conflict)

  /// Why nothing was applied: what the changes relied on is no longer so.
  package enum Conflict: Sendable, Equatable {
    /// Another request changed the flow. Its code was used or replaced.
    case flowChanged
    case identifierTaken
    case accountUnavailable
    /// The session to be replaced has ended.
    case sessionEnded
    /// The code was used before.
    case codeSpent
    /// The provider's record differs from the one that the proof was judged by.
    case recordChanged
    /// The account has changed since the flow identified it.
    case epochChanged
    /// Another token has the name.
    case tokenNameTaken
    /// The account has the maximum number of tokens.
    case tooManyTokens
    /// The token does not exist.
    case tokenGone
    /// The invitation was used, was revoked or has expired.
    case invitationGone
    /// The lease has expired, or somebody else holds it.
    case leaseLost
    /// The grant has another refresh token, or has ended.
    case appGrantChanged
    /// The app has the maximum number of requests of devices.
    case tooManyDeviceRequests
  }
}

/// A lock, or a disabling, that a settlement began.
package struct LockBegun: Sendable, Equatable {
  package let limit: ResolvedLimit
  /// nil: disabled.
  package let until: Timestamp?

  package init(limit: ResolvedLimit, until: Timestamp?) {
    self.limit = limit
    self.until = until
  }
}

/// A lock as an operator sees it.
package struct LockRecord: Sendable, Equatable, Codable {
  /// The counter in base64url. Identifies the lock in `DELETE /locks/{id}`.
  package let id: String
  package let provider: ProviderName
  package let limit: String
  package let since: Timestamp
  /// nil: until an operator lifts it.
  package let until: Timestamp?

  /// The counter that `id` stands for.
  package var counter: [UInt8] { Base64URL.decode(id).map(Array.init) ?? [] }

  package init(id: String, provider: ProviderName, limit: String, since: Timestamp, until: Timestamp?) {
    self.id = id
    self.provider = provider
    self.limit = limit
    self.since = since
    self.until = until
  }
}

/// The changes of sessions and accounts.
package struct SessionChanges: Sendable, Equatable {
  /// The number to continue from at the next call.
  package let latest: Int64
  /// Sessions that ended or changed.
  package let tokens: [TokenHash]
  /// Accounts that changed, or all of whose sessions did.
  package let accounts: [String]
  /// Whether older changes may have been missed. If true, trust no cached session.
  package let isIncomplete: Bool

  package init(latest: Int64, tokens: [TokenHash], accounts: [String], isIncomplete: Bool) {
    self.latest = latest
    self.tokens = tokens
    self.accounts = accounts
    self.isIncomplete = isIncomplete
  }
}
