import MoongateSDK

/// All that a store must do: a few verbs, each of them atomic and durable when it returns.
package protocol Store: LedgerStore, FlowStore, AccountStore, SessionStore, AccessTokenStore, AuditStore, AuditSearch,
  AuditCursorStore, NodeStore,
  ProviderValueStore, LeaseStore, GroupStore
{
  /// The latest moment that the store has recorded: the clock begins no earlier.
  func latestMoment() async throws(StoreFault) -> Timestamp

  /// Applies all changes in one transaction, or none of them.
  /// - Returns: `applied` with the locks that settlements began, or the first conflict, with nothing changed.
  func apply(_ changes: [Change], at now: Timestamp) async throws(StoreFault) -> ApplyResult

  /// Removes what has been dead for long enough, a bounded number of rows at a time.
  /// - Returns: whether there is more to remove.
  func prune(at now: Timestamp) async throws(StoreFault) -> Bool
}

/// The tries.
package protocol LedgerStore: Sendable {
  /// Charges one try against all limits, or none: in one transaction that locks the counters first, in sorted order.
  func reserve(_ request: ReservationRequest) async throws(StoreFault) -> ReservationResult
  /// How counters stand, and a timer where one is given, at one moment. Charges nothing.
  func standing(_ limits: [ResolvedLimit], _ timer: ResendTimer?, at now: Timestamp) async throws(StoreFault)
    -> LedgerStanding
  /// The locks that stand.
  func locks(at now: Timestamp) async throws(StoreFault) -> [LockRecord]
  /// The locks that stand and that failed attempts of a person led to, oldest first.
  /// - Parameter traces: `FailedAttempt.account` and `FailedAttempt.identifier` of the person.
  func locks(about traces: [String], at now: Timestamp) async throws(StoreFault) -> [LockRecord]
  /// The failed attempts that are remembered at counters, for each of them newest first.
  func failedAttempts(at counters: [[UInt8]]) async throws(StoreFault) -> [FailedAttempt]
  /// Ends a lock (or a disabling) now; its limit starts from zero.
  /// - Returns: false where there is no such lock.
  func liftLock(_ id: String, at now: Timestamp) async throws(StoreFault) -> Bool
}

extension LedgerStore {
  /// The counters' states, in the order of the limits.
  package func counters(_ limits: [ResolvedLimit], at now: Timestamp) async throws(StoreFault) -> [CounterState] {
    try await standing(limits, nil, at: now).counters
  }
}

/// What has been counted so far.
package struct LedgerStanding: Sendable, Equatable {
  /// In the order of the limits that were asked for.
  package let counters: [CounterState]
  /// When the timer lets the next send through; nil where none runs.
  package let resendAt: Timestamp?

  package init(counters: [CounterState], resendAt: Timestamp?) {
    self.counters = counters
    self.resendAt = resendAt
  }
}

/// The flows that were begun.
package protocol FlowStore: Sendable {
  /// The flow, dead or alive, until it is pruned.
  func flow(_ id: TokenHash) async throws(StoreFault) -> FlowRecord?
  /// Removes flows in which nobody has proved anything, where there are more of them than the bound says. (Those of one
  /// address are bounded when one is stored.)
  /// - Returns: how many were removed.
  @discardableResult
  func evictFlows(beyond bound: FlowBound, at now: Timestamp) async throws(StoreFault) -> Int
}

/// The people.
package protocol AccountStore: Sendable {
  func account(_ id: String) async throws(StoreFault) -> Account?
  /// Accounts in the order of their ids.
  /// - Parameters:
  ///   - id: the one before the first of them; nil: from the beginning.
  ///   - limit: at most so many, 1 or more.
  func accounts(after id: String?, limit: Int) async throws(StoreFault) -> [Account]
  /// All accounts that have the identifier, proved or only claimed: the one that holds it verified first, then the
  /// newest.
  func accounts(naming identifier: Identifier) async throws(StoreFault) -> [Account]
  /// The account that holds the identifier verified.
  func account(holding identifier: Identifier) async throws(StoreFault) -> Account?
  /// The ids of the accounts that claim the identifier without having proved it, oldest first.
  /// - Parameters:
  ///   - provider: only those for which this provider keeps something; nil: all.
  ///   - limit: at most so many, 1 or more.
  func accounts(claiming identifier: Identifier, having provider: ProviderName?, limit: Int) async throws(StoreFault)
    -> [String]
  /// What a full provider keeps for the account, sealed; nil where it keeps nothing. `Account.credentials` are the
  /// providers that do.
  func providerRecord(of account: String, for provider: ProviderName) async throws(StoreFault) -> [UInt8]?
  /// The providers that keep something for the account, by name, each with its times.
  func factors(of account: String) async throws(StoreFault) -> [StoredFactor]
  /// Removes accounts that never proved an identifier and that nobody has used since a moment, with all that belongs to
  /// them, a bounded number at a time. Lines of the audit trail stay as they are: the trail forgets them by itself.
  func expireUnverified(unusedSince moment: Timestamp, at now: Timestamp) async throws(StoreFault) -> ExpiredAccounts
}

/// What a step of removing unverified accounts came to.
package struct ExpiredAccounts: Sendable, Equatable {
  package let removed: Int
  /// Whether there may be more to remove.
  package let hasMore: Bool

  package init(removed: Int, hasMore: Bool) {
    self.removed = removed
    self.hasMore = hasMore
  }
}

/// The sessions.
package protocol SessionStore: Sendable {
  /// The session with its account, whatever its times say; nil where there is none. Found by its own token, or by one
  /// for a further root domain, which has `Session.domain` and what was passed when it was made.
  func session(_ token: TokenHash) async throws(StoreFault) -> SessionSnapshot?
  /// An account's sessions, newest first.
  func sessions(of account: String) async throws(StoreFault) -> [Session]
  /// Moves the last activity of sessions forward, never back.
  func touch(_ seen: [TokenHash: Timestamp]) async throws(StoreFault)
  /// What has happened to sessions and accounts since the given number, by whichever process.
  func sessionChanges(after sequence: Int64) async throws(StoreFault) -> SessionChanges
}

/// The audit trail.
package protocol AuditStore: Sendable {
  func append(_ events: [AuditEvent]) async throws(StoreFault)
  /// Newest first.
  /// - Parameter limit: at most so many, 1 or more.
  func events(limit: Int) async throws(StoreFault) -> [AuditEvent]
  func event(_ id: DecisionID) async throws(StoreFault) -> AuditEvent?
}

/// What the audit trail tells of one person. Apart from `AuditStore`, whose other users write and list.
package protocol AuditSearch: Sendable {
  /// The events of an account, or about one of its identifiers, newest first.
  /// - Parameters:
  ///   - traces: `KeyRing.logHash` of the identifiers.
  ///   - limit: at most so many, 1 or more.
  func events(about account: String, traces: [String], limit: Int) async throws(StoreFault) -> [AuditEvent]
  /// The events that a filter asks for, newest first.
  /// - Parameter limit: at most so many, 1 or more.
  func events(matching filter: AuditFilter, limit: Int) async throws(StoreFault) -> [AuditEvent]
}

/// A store that could not do its work. Says what for the log; clients get 503 `store_unavailable`.
package struct StoreFault: Error, Sendable, Equatable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// One change among those of a transaction.
package enum Change: Sendable {
  case settle(Settlement)
  /// Stores the record as version `record.version + 1`, if the stored version is `record.version` (0: there is none
  /// yet).
  case putFlow(FlowRecord)
  /// Removes the flow; where a version is given, only if it is the stored one.
  case deleteFlow(TokenHash, version: Int? = nil)
  /// Conflicts where one of its verified identifiers is held by another account. Other accounts lose their claims on
  /// those identifiers, their sessions, and what the named providers keep for them.
  case createAccount(Account, forgetting: Set<ProviderName> = [])
  /// Marks the identifier as the account's own, proved now; unverified claims of others on it go, as above.
  /// Conflicts where another account holds it verified.
  case verifyIdentifier(account: String, Identifier, forgetting: Set<ProviderName> = [])
  /// Replaces what a full provider keeps for the account; nil removes it. Sealed by the core.
  case putProviderRecord(account: String, ProviderName, sealed: [UInt8]?)
  /// The account's record of the provider must still be the one whose sealed bytes have this hash; nil: there must be
  /// none. Otherwise nothing of the transaction is done.
  case demandProviderRecord(account: String, ProviderName, TokenHash?)
  /// The account must still be of this epoch (`Account.epoch`). Otherwise nothing of the transaction is done.
  case demandEpoch(AccountVersion)
  /// What was proved to the account before is worth nothing from now on: `Account.epoch` grows by one.
  case raiseEpoch(account: String)
  /// Holds the identifier as the account's own word: unverified, it opens nothing. Nothing where the account has it
  /// already.
  case claimIdentifier(account: String, Identifier)
  /// Leaves the account nothing but the identifier and the records of some providers: other identifiers, other records,
  /// groups and all sessions go. Conflicts where the account does not hold the identifier verified, or holds another
  /// one verified: somebody else has proved to be its owner.
  case reclaimAccount(String, by: Identifier, keeping: Set<ProviderName>)
  /// Takes all identifiers of a kind from the account, but for the one that takes their place.
  case dropIdentifiers(account: String, IdentifierKind, except: Identifier)
  /// Fills in names that the account does not have; nil leaves a name as it is.
  case nameAccount(account: String, firstName: String?, lastName: String?)
  /// The language of messages to the account from now on, by its tag (BCP 47).
  case speak(account: String, String)
  /// Replaces the names of the account; nil removes a name.
  case renameAccount(account: String, firstName: String?, lastName: String?)
  /// Takes an identifier from the account. Conflicts where the account does not have it.
  case removeIdentifier(account: String, Identifier)
  /// Makes one person of two accounts: what the first holds verified moves to the second, where it counts as verified
  /// now, unless the second has something verified of that kind (identities elsewhere it may have several of); and the
  /// first is gone with all that belongs to it, its groups included. Conflicts where either is gone or locked.
  case absorbAccount(String, into: String)
  /// Ends these counters' locks and forgets their events: what they count has been replaced.
  case clearCounters([ResolvedLimit])
  /// The account was here.
  case seen(account: String)
  /// An operator locks the account, and all its sessions end; or lets people in again. Conflicts where it is gone.
  case setLocked(account: String, Bool)
  /// Adds the account to a group, or removes it from one; nothing where that is so already. Every process of the store
  /// learns of it as of a session's change. Conflicts where the account is gone.
  case setGroupMembership(account: String, GroupName, Bool)
  /// Removes the account with identifiers, records, sessions, and the flows that name it. Events of it, or of one of
  /// the traces (`KeyRing.logHash` of its identifiers, `KeyRing.accountTrace`), stay without account, identifier,
  /// address and facts. Conflicts where it is gone.
  case deleteAccount(String, traces: [String])
  /// Conflicts where the account is gone or locked by an operator.
  case putSession(Session)
  /// Stores the session in place of the one with the token. Conflicts where that one has ended meanwhile: a step-up
  /// revives nothing.
  case replaceSession(TokenHash, by: Session)
  /// Stores a session's token for a further root domain; the one that the session had for it before is dead. Conflicts
  /// where the session has ended, or has another token of its own by now.
  case putDomainToken(NewDomainToken)
  /// Ends the session with this token, whether that is its own or one of a further root domain, and all tokens of it.
  case endSession(TokenHash)
  /// Ends all sessions of an account but for one, and all tokens for further root domains, that one's too.
  case endSessions(account: String, except: TokenHash?)
  /// Spends a code that is good once. Conflicts where it was spent before.
  /// - Parameter until: how long that is remembered, longer than the code is good.
  case spendCode(TokenHash, until: Timestamp)
  /// Stores a new token. Conflicts where another one holds its name, where its owner is gone or locked, or has so many
  /// already.
  case putAccessToken(AccessToken, most: Int? = nil)
  /// Another secret takes the place of this one, which is good until then at most. Conflicts where it is gone, or was
  /// superseded before.
  case supersedeAccessToken(String, until: Timestamp)
  /// Removes a token. Conflicts where it is gone.
  case endAccessToken(String)
  /// Notes that people were told of the token's end. Conflicts where they were told before, or it is gone.
  case noteAccessTokenExpired(String)
  /// A success clears the resend timer.
  case clearTimer([UInt8])
  case audit(AuditEvent)
}

/// What came of a transaction.
package enum ApplyResult: Sendable, Equatable {
  case applied(locks: [LockBegun])
  case conflict(Conflict)

  package enum Conflict: Sendable, Equatable {
    /// Someone else changed the flow: its code is spent or replaced.
    case flowChanged
    case identifierTaken
    case accountUnavailable
    /// The session that was to be replaced is over.
    case sessionEnded
    /// The code was spent before.
    case codeSpent
    /// A provider's record is another one than a proof was judged by.
    case recordChanged
    /// The account has changed since it became known.
    case epochChanged
    /// Another token holds the name.
    case tokenNameTaken
    /// The account has as many tokens as it may have.
    case tooManyTokens
    /// The token is gone.
    case tokenGone
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
  /// The counter in base64url: names the lock in `DELETE /locks/{id}`.
  package let id: String
  package let provider: ProviderName
  package let limit: String
  package let since: Timestamp
  /// nil: until an operator lifts it.
  package let until: Timestamp?

  /// The counter that `id` names.
  package var counter: [UInt8] { Base64URL.decode(id).map(Array.init) ?? [] }

  package init(id: String, provider: ProviderName, limit: String, since: Timestamp, until: Timestamp?) {
    self.id = id
    self.provider = provider
    self.limit = limit
    self.since = since
    self.until = until
  }
}

/// What happened to sessions and accounts.
package struct SessionChanges: Sendable, Equatable {
  /// To ask from the next time.
  package let latest: Int64
  /// Sessions that ended or changed.
  package let tokens: [TokenHash]
  /// Accounts that changed, or all of whose sessions did.
  package let accounts: [String]
  /// Whether changes older than the store keeps may have been missed: believe no cached session.
  package let isIncomplete: Bool

  package init(latest: Int64, tokens: [TokenHash], accounts: [String], isIncomplete: Bool) {
    self.latest = latest
    self.tokens = tokens
    self.accounts = accounts
    self.isIncomplete = isIncomplete
  }
}
