import MoongateSDK

/// A store that passes its calls on to other stores, except those that it declares itself.
///
/// Every operation but `reserve` has a forwarding version here. The compiler asks for that of a new operation, and asks
/// each of these stores what it does with `reserve`.
package protocol ForwardingStore: Store {
  /// The store that answers a call.
  /// - Parameter call: the operation, such as `account(holding:)`.
  func store(for call: String) -> any Store
}

extension ForwardingStore {
  private func next(_ call: String = #function) -> any Store { store(for: call) }

  package func apply(_ changes: [Change], reading query: LedgerQuery?, at now: Timestamp) async throws(StoreFault)
    -> ApplyResult
  {
    try await next().apply(changes, reading: query, at: now)
  }
  package func latestMoment() async throws(StoreFault) -> Timestamp { try await next().latestMoment() }
  package func demandWrites(at now: Timestamp) async throws(StoreFault) { try await next().demandWrites(at: now) }
  package func prune(at now: Timestamp) async throws(StoreFault) -> Bool { try await next().prune(at: now) }
  package func answers(to fingerprint: [UInt8]) async throws(StoreFault) -> Bool {
    try await next().answers(to: fingerprint)
  }
  package func recordHeartbeat(_ node: ServingNode) async throws(StoreFault) -> [ServingNode] {
    try await next().recordHeartbeat(node)
  }
  package func nodes(at now: Timestamp) async throws(StoreFault) -> [ServingNode] { try await next().nodes(at: now) }
  package func leave(_ id: String, at now: Timestamp) async throws(StoreFault) { try await next().leave(id, at: now) }
  package func ledgerState(_ query: LedgerQuery, at now: Timestamp) async throws(StoreFault) -> LedgerState {
    try await next().ledgerState(query, at: now)
  }
  package func locks(at now: Timestamp) async throws(StoreFault) -> [LockRecord] { try await next().locks(at: now) }
  package func locks(about traces: [String], at now: Timestamp) async throws(StoreFault) -> [LockRecord] {
    try await next().locks(about: traces, at: now)
  }
  package func failedAttempts(at counters: [[UInt8]]) async throws(StoreFault) -> [FailedAttempt] {
    try await next().failedAttempts(at: counters)
  }
  package func events(matching filter: AuditFilter, limit: Int) async throws(StoreFault) -> [AuditEvent] {
    try await next().events(matching: filter, limit: limit)
  }
  package func auditCursor(of sink: String, at now: Timestamp) async throws(StoreFault) -> AuditPosition {
    try await next().auditCursor(of: sink, at: now)
  }
  package func events(after position: AuditPosition, limit: Int) async throws(StoreFault) -> [PositionedEvent] {
    try await next().events(after: position, limit: limit)
  }
  package func moveAuditCursor(
    of sink: String, to position: AuditPosition, under lease: Lease, at now: Timestamp
  ) async throws(StoreFault) -> Bool {
    try await next().moveAuditCursor(of: sink, to: position, under: lease, at: now)
  }
  package func auditBacklog(after position: AuditPosition) async throws(StoreFault) -> AuditBacklog {
    try await next().auditBacklog(after: position)
  }
  package func forgetAuditCursors(unusedSince moment: Timestamp, except sinks: [String], at now: Timestamp)
    async throws(StoreFault)
  {
    try await next().forgetAuditCursors(unusedSince: moment, except: sinks, at: now)
  }
  package func renewLease(_ lease: Lease, for length: Duration, at now: Timestamp) async throws(StoreFault) -> Lease? {
    try await next().renewLease(lease, for: length, at: now)
  }
  package func liftLock(_ id: String, at now: Timestamp) async throws(StoreFault) -> Bool {
    try await next().liftLock(id, at: now)
  }
  package func flow(_ id: TokenHash) async throws(StoreFault) -> FlowRecord? { try await next().flow(id) }
  package func recentFlow(_ id: TokenHash) -> FlowRecord? { next().recentFlow(id) }
  package func flow(_ id: TokenHash, withHolderOf identifier: Identifier) async throws(StoreFault) -> (
    flow: FlowRecord?, holder: Account?
  ) { try await next().flow(id, withHolderOf: identifier) }
  package func evictFlows(beyond bound: FlowBound, at now: Timestamp) async throws(StoreFault) -> Int {
    try await next().evictFlows(beyond: bound, at: now)
  }
  package func account(_ id: String) async throws(StoreFault) -> Account? { try await next().account(id) }
  package func accounts(after id: String?, limit: Int) async throws(StoreFault) -> [Account] {
    try await next().accounts(after: id, limit: limit)
  }
  package func accounts(naming identifier: Identifier) async throws(StoreFault) -> [Account] {
    try await next().accounts(naming: identifier)
  }
  package func account(holding identifier: Identifier) async throws(StoreFault) -> Account? {
    try await next().account(holding: identifier)
  }
  package func isTaken(_ identifier: Identifier) async throws(StoreFault) -> Bool {
    try await next().isTaken(identifier)
  }

  package func accounts(claiming identifier: Identifier, having provider: ProviderName?, limit: Int)
    async throws(StoreFault)
    -> [String]
  {
    try await next().accounts(claiming: identifier, having: provider, limit: limit)
  }
  package func providerRecord(of account: String, for provider: ProviderName) async throws(StoreFault) -> [UInt8]? {
    try await next().providerRecord(of: account, for: provider)
  }
  package func importedHashes(of provider: ProviderName) async throws(StoreFault) -> Set<HashWork> {
    try await next().importedHashes(of: provider)
  }
  package func factors(of account: String) async throws(StoreFault) -> [StoredFactor] {
    try await next().factors(of: account)
  }
  package func devices(of account: String, at now: Timestamp) async throws(StoreFault) -> [TrustedDevice] {
    try await next().devices(of: account, at: now)
  }
  package func session(replacing token: TokenHash, at now: Timestamp) async throws(StoreFault) -> Session? {
    try await next().session(replacing: token, at: now)
  }
  package func groupCounts() async throws(StoreFault) -> [GroupName: Int] { try await next().groupCounts() }
  package func members(of group: GroupName, after account: String?, limit: Int) async throws(StoreFault)
    -> [GroupMember]
  {
    try await next().members(of: group, after: account, limit: limit)
  }
  package func memberships(of account: String) async throws(StoreFault) -> [GroupMember] {
    try await next().memberships(of: account)
  }
  package func invitation(_ code: TokenHash) async throws(StoreFault) -> Invitation? {
    try await next().invitation(code)
  }
  package func invitations(after id: String?, limit: Int, at now: Timestamp) async throws(StoreFault) -> [Invitation] {
    try await next().invitations(after: id, limit: limit, at: now)
  }
  package func existing(_ names: ImportedNames) async throws(StoreFault) -> ImportedNames {
    try await next().existing(names)
  }
  package func beginImport(at now: Timestamp) async throws(StoreFault) -> Lease? {
    try await next().beginImport(at: now)
  }
  package func settleImport(at now: Timestamp) async throws(StoreFault) -> Bool {
    try await next().settleImport(at: now)
  }
  package func expireUnverified(unusedSince moment: Timestamp, at now: Timestamp) async throws(StoreFault)
    -> ExpiredAccounts
  {
    try await next().expireUnverified(unusedSince: moment, at: now)
  }
  package func events(about account: String, traces: [String], limit: Int) async throws(StoreFault) -> [AuditEvent] {
    try await next().events(about: account, traces: traces, limit: limit)
  }
  package func providerValue(at place: ProviderValuePlace, at now: Timestamp) async throws(StoreFault) -> [UInt8]? {
    try await next().providerValue(at: place, at: now)
  }
  package func putProviderValue(_ value: ProviderValue, _ rule: ProviderValueRule, at now: Timestamp)
    async throws(StoreFault)
    -> ProviderValueOutcome
  {
    try await next().putProviderValue(value, rule, at: now)
  }
  package func takeProviderValue(
    at place: ProviderValuePlace, under lease: Lease?, at now: Timestamp
  ) async throws(StoreFault) -> TakenProviderValue {
    try await next().takeProviderValue(at: place, under: lease, at: now)
  }
  package func acquireLease(_ name: String, by holder: String, for length: Duration, at now: Timestamp)
    async throws(StoreFault)
    -> LeaseAnswer
  {
    try await next().acquireLease(name, by: holder, for: length, at: now)
  }
  package func claimRechecks(limit: Int, until end: Timestamp, at now: Timestamp) async throws(StoreFault)
    -> [ClaimedRecheck]
  {
    try await next().claimRechecks(limit: limit, until: end, at: now)
  }
  package func releaseLease(_ lease: Lease, dueAt due: Timestamp, at now: Timestamp) async throws(StoreFault) {
    try await next().releaseLease(lease, dueAt: due, at: now)
  }
  package func providerValues(after place: ProviderValuePlace?, limit: Int) async throws(StoreFault) -> [ProviderValue]
  {
    try await next().providerValues(after: place, limit: limit)
  }
  package func replaceProviderValue(_ old: ProviderValue, by new: ProviderValue, at now: Timestamp)
    async throws(StoreFault)
  {
    try await next().replaceProviderValue(old, by: new, at: now)
  }
  package func session(_ token: TokenHash) async throws(StoreFault) -> SessionSnapshot? {
    try await next().session(token)
  }
  package func sessions(of account: String) async throws(StoreFault) -> [Session] {
    try await next().sessions(of: account)
  }
  package func sessions(openedBy siteSession: String, limit: Int) async throws(StoreFault) -> [Session] {
    try await next().sessions(openedBy: siteSession, limit: limit)
  }
  package func touch(_ uses: [TokenHash: SessionUse]) async throws(StoreFault) { try await next().touch(uses) }
  package func sessionChanges(after sequence: Int64) async throws(StoreFault) -> SessionChanges {
    try await next().sessionChanges(after: sequence)
  }
  package func accessToken(hashed hashes: [[UInt8]]) async throws(StoreFault) -> FoundAccessToken? {
    try await next().accessToken(hashed: hashes)
  }
  package func accessToken(_ id: String) async throws(StoreFault) -> FoundAccessToken? {
    try await next().accessToken(id)
  }
  package func accessTokens(of account: String?) async throws(StoreFault) -> [AccessToken] {
    try await next().accessTokens(of: account)
  }
  package func accessTokensByKey() async throws(StoreFault) -> [String: Int] { try await next().accessTokensByKey() }
  package func rehashAccessToken(
    _ id: String, from old: AccessTokenHash, to new: AccessTokenHash, at now: Timestamp
  ) async throws(StoreFault) { try await next().rehashAccessToken(id, from: old, to: new, at: now) }
  package func recordAccessTokenUses(_ uses: [AccessTokenUse]) async throws(StoreFault) {
    try await next().recordAccessTokenUses(uses)
  }
  package func endedAccessTokens(at now: Timestamp, limit: Int) async throws(StoreFault) -> [AccessToken] {
    try await next().endedAccessTokens(at: now, limit: limit)
  }
  package func appGrant(_ id: String, at now: Timestamp) async throws(StoreFault) -> LiveAppGrant? {
    try await next().appGrant(id, at: now)
  }
  package func appGrant(refresh hash: TokenHash, at now: Timestamp) async throws(StoreFault) -> LiveAppGrant? {
    try await next().appGrant(refresh: hash, at: now)
  }
  package func appConnections(of account: String) async throws(StoreFault) -> [AppConnection] {
    try await next().appConnections(of: account)
  }
  package func deviceRequest(device: TokenHash) async throws(StoreFault) -> DeviceRequest? {
    try await next().deviceRequest(device: device)
  }
  package func deviceRequest(user: TokenHash, at now: Timestamp) async throws(StoreFault) -> DeviceRequest? {
    try await next().deviceRequest(user: user, at: now)
  }
  package func claimAppNotices(limit: Int, until end: Timestamp, at now: Timestamp) async throws(StoreFault)
    -> [AppNotice]
  {
    try await next().claimAppNotices(limit: limit, until: end, at: now)
  }
  package func append(_ events: [AuditEvent]) async throws(StoreFault) { try await next().append(events) }
  package func events(limit: Int) async throws(StoreFault) -> [AuditEvent] { try await next().events(limit: limit) }
  package func event(_ id: DecisionID) async throws(StoreFault) -> AuditEvent? { try await next().event(id) }
}
