import MoongateCore
import MoongateSDK

/// A store that records which limits are charged and which refuse.
struct RecordingStore: Store {
  let base: any Store
  let record: CoverageRecord

  func reserve(_ request: ReservationRequest) async throws(StoreFault) -> ReservationResult {
    let result = try await base.reserve(request)
    switch result {
    case .reserved: record.charged(request.limits)
    case .refused(let refusal): if let limit = refusal.limit { record.refused(limit) }
    case .filledByPending, .barred, .flowChanged: break
    }
    return result
  }

  func apply(_ changes: [Change], reading query: LedgerQuery?, at now: Timestamp) async throws(StoreFault)
    -> ApplyResult
  {
    let result = try await base.apply(changes, reading: query, at: now)
    if case .applied(let locks, _) = result { for lock in locks { record.refused(lock.limit) } }
    return result
  }

  // MARK: forwarded calls

  func latestMoment() async throws(StoreFault) -> Timestamp { try await base.latestMoment() }
  func demandWrites(at now: Timestamp) async throws(StoreFault) { try await base.demandWrites(at: now) }
  func prune(at now: Timestamp) async throws(StoreFault) -> Bool { try await base.prune(at: now) }
  func answers(to fingerprint: [UInt8]) async throws(StoreFault) -> Bool { try await base.answers(to: fingerprint) }
  func recordHeartbeat(_ node: ServingNode) async throws(StoreFault) -> [ServingNode] {
    try await base.recordHeartbeat(node)
  }
  func nodes(at now: Timestamp) async throws(StoreFault) -> [ServingNode] { try await base.nodes(at: now) }
  func leave(_ id: String, at now: Timestamp) async throws(StoreFault) { try await base.leave(id, at: now) }
  func ledgerState(_ query: LedgerQuery, at now: Timestamp) async throws(StoreFault) -> LedgerState {
    try await base.ledgerState(query, at: now)
  }
  func locks(at now: Timestamp) async throws(StoreFault) -> [LockRecord] { try await base.locks(at: now) }
  func locks(about traces: [String], at now: Timestamp) async throws(StoreFault) -> [LockRecord] {
    try await base.locks(about: traces, at: now)
  }
  func failedAttempts(at counters: [[UInt8]]) async throws(StoreFault) -> [FailedAttempt] {
    try await base.failedAttempts(at: counters)
  }
  func events(matching filter: AuditFilter, limit: Int) async throws(StoreFault) -> [AuditEvent] {
    try await base.events(matching: filter, limit: limit)
  }
  func auditCursor(of sink: String, at now: Timestamp) async throws(StoreFault) -> AuditPosition {
    try await base.auditCursor(of: sink, at: now)
  }
  func events(after position: AuditPosition, limit: Int) async throws(StoreFault) -> [PositionedEvent] {
    try await base.events(after: position, limit: limit)
  }
  func moveAuditCursor(
    of sink: String, to position: AuditPosition, under lease: Lease, at now: Timestamp
  ) async throws(StoreFault) -> Bool {
    try await base.moveAuditCursor(of: sink, to: position, under: lease, at: now)
  }
  func auditBacklog(after position: AuditPosition) async throws(StoreFault) -> AuditBacklog {
    try await base.auditBacklog(after: position)
  }
  func forgetAuditCursors(unusedSince moment: Timestamp, except sinks: [String], at now: Timestamp)
    async throws(StoreFault)
  {
    try await base.forgetAuditCursors(unusedSince: moment, except: sinks, at: now)
  }
  func renewLease(_ lease: Lease, for length: Duration, at now: Timestamp) async throws(StoreFault) -> Lease? {
    try await base.renewLease(lease, for: length, at: now)
  }
  func liftLock(_ id: String, at now: Timestamp) async throws(StoreFault) -> Bool {
    try await base.liftLock(id, at: now)
  }
  func flow(_ id: TokenHash) async throws(StoreFault) -> FlowRecord? { try await base.flow(id) }
  func recentFlow(_ id: TokenHash) -> FlowRecord? { base.recentFlow(id) }
  func flow(_ id: TokenHash, withHolderOf identifier: Identifier) async throws(StoreFault) -> (
    flow: FlowRecord?, holder: Account?
  ) { try await base.flow(id, withHolderOf: identifier) }
  func evictFlows(beyond bound: FlowBound, at now: Timestamp) async throws(StoreFault) -> Int {
    try await base.evictFlows(beyond: bound, at: now)
  }
  func account(_ id: String) async throws(StoreFault) -> Account? { try await base.account(id) }
  func accounts(after id: String?, limit: Int) async throws(StoreFault) -> [Account] {
    try await base.accounts(after: id, limit: limit)
  }
  func accounts(naming identifier: Identifier) async throws(StoreFault) -> [Account] {
    try await base.accounts(naming: identifier)
  }
  func account(holding identifier: Identifier) async throws(StoreFault) -> Account? {
    try await base.account(holding: identifier)
  }
  func accounts(claiming identifier: Identifier, having provider: ProviderName?, limit: Int) async throws(StoreFault)
    -> [String]
  {
    try await base.accounts(claiming: identifier, having: provider, limit: limit)
  }
  func providerRecord(of account: String, for provider: ProviderName) async throws(StoreFault) -> [UInt8]? {
    try await base.providerRecord(of: account, for: provider)
  }
  func importedHashes(of provider: ProviderName) async throws(StoreFault) -> Set<HashWork> {
    try await base.importedHashes(of: provider)
  }
  func factors(of account: String) async throws(StoreFault) -> [StoredFactor] {
    try await base.factors(of: account)
  }
  func devices(of account: String, at now: Timestamp) async throws(StoreFault) -> [TrustedDevice] {
    try await base.devices(of: account, at: now)
  }
  func session(replacing token: TokenHash, at now: Timestamp) async throws(StoreFault) -> Session? {
    try await base.session(replacing: token, at: now)
  }
  func groupCounts() async throws(StoreFault) -> [GroupName: Int] { try await base.groupCounts() }
  func members(of group: GroupName, after account: String?, limit: Int) async throws(StoreFault) -> [GroupMember] {
    try await base.members(of: group, after: account, limit: limit)
  }
  func memberships(of account: String) async throws(StoreFault) -> [GroupMember] {
    try await base.memberships(of: account)
  }
  func expireUnverified(unusedSince moment: Timestamp, at now: Timestamp) async throws(StoreFault) -> ExpiredAccounts {
    try await base.expireUnverified(unusedSince: moment, at: now)
  }
  func events(about account: String, traces: [String], limit: Int) async throws(StoreFault) -> [AuditEvent] {
    try await base.events(about: account, traces: traces, limit: limit)
  }
  func providerValue(at place: ProviderValuePlace, at now: Timestamp) async throws(StoreFault) -> [UInt8]? {
    try await base.providerValue(at: place, at: now)
  }
  func putProviderValue(_ value: ProviderValue, _ rule: ProviderValueRule, at now: Timestamp) async throws(StoreFault)
    -> ProviderValueOutcome
  {
    try await base.putProviderValue(value, rule, at: now)
  }
  func takeProviderValue(
    at place: ProviderValuePlace, under lease: Lease?, at now: Timestamp
  ) async throws(StoreFault) -> TakenProviderValue {
    try await base.takeProviderValue(at: place, under: lease, at: now)
  }
  func acquireLease(_ name: String, by holder: String, for length: Duration, at now: Timestamp) async throws(StoreFault)
    -> LeaseAnswer
  {
    try await base.acquireLease(name, by: holder, for: length, at: now)
  }
  func releaseLease(_ lease: Lease, dueAt due: Timestamp, at now: Timestamp) async throws(StoreFault) {
    try await base.releaseLease(lease, dueAt: due, at: now)
  }
  func providerValues(after place: ProviderValuePlace?, limit: Int) async throws(StoreFault) -> [ProviderValue] {
    try await base.providerValues(after: place, limit: limit)
  }
  func replaceProviderValue(_ old: ProviderValue, by new: ProviderValue, at now: Timestamp) async throws(StoreFault) {
    try await base.replaceProviderValue(old, by: new, at: now)
  }
  func session(_ token: TokenHash) async throws(StoreFault) -> SessionSnapshot? { try await base.session(token) }
  func sessions(of account: String) async throws(StoreFault) -> [Session] { try await base.sessions(of: account) }
  func touch(_ uses: [TokenHash: SessionUse]) async throws(StoreFault) { try await base.touch(uses) }
  func sessionChanges(after sequence: Int64) async throws(StoreFault) -> SessionChanges {
    try await base.sessionChanges(after: sequence)
  }
  func accessToken(hashed hashes: [[UInt8]]) async throws(StoreFault) -> FoundAccessToken? {
    try await base.accessToken(hashed: hashes)
  }
  func accessToken(_ id: String) async throws(StoreFault) -> FoundAccessToken? { try await base.accessToken(id) }
  func accessTokens(of account: String?) async throws(StoreFault) -> [AccessToken] {
    try await base.accessTokens(of: account)
  }
  func accessTokensByKey() async throws(StoreFault) -> [String: Int] { try await base.accessTokensByKey() }
  func rehashAccessToken(
    _ id: String, from old: AccessTokenHash, to new: AccessTokenHash, at now: Timestamp
  ) async throws(StoreFault) { try await base.rehashAccessToken(id, from: old, to: new, at: now) }
  func recordAccessTokenUses(_ uses: [AccessTokenUse]) async throws(StoreFault) {
    try await base.recordAccessTokenUses(uses)
  }
  func endedAccessTokens(at now: Timestamp, limit: Int) async throws(StoreFault) -> [AccessToken] {
    try await base.endedAccessTokens(at: now, limit: limit)
  }
  func append(_ events: [AuditEvent]) async throws(StoreFault) { try await base.append(events) }
  func events(limit: Int) async throws(StoreFault) -> [AuditEvent] { try await base.events(limit: limit) }
  func event(_ id: DecisionID) async throws(StoreFault) -> AuditEvent? { try await base.event(id) }
}
