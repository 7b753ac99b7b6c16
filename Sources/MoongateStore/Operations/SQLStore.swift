import MoongateCore
import MoongateSDK

/// A store in an SQL database. It defines tables and transactions; the meaning of limits, locks and timers is defined
/// in the core.
///
/// A protocol instead of a generic class: when called through `any Store`, the methods of a generic class are never
/// specialised for a database, but the witnesses of a concrete type are.
package protocol SQLStore: Store {
  /// The kind of database.
  associatedtype Database: SQLDatabase

  var database: Database { get }
  /// State that is kept between transactions.
  var memory: SQLStoreMemory { get }
}

/// The result of assigning a store to another key.
package enum FingerprintReplacement: Sendable, Equatable {
  /// The store belongs to the new key, since now or before.
  case replaced
  /// Gateways are serving from it and use the old key for counters. Nothing was changed.
  case served([ServingNode])
  /// The store belongs to neither key. Nothing was changed.
  case notTheirs
}

/// State that a store keeps between transactions. It only affects performance, never results: what is only remembered
/// (`recentFlow`) is checked before it counts.
package struct SQLStoreMemory: Sendable {
  let pruner = Pruner()
  let decoded = DecodedFlows()
  let origins = FlowOrigins()
  let timing = StoreTiming()
  /// Adds to audit events where their addresses are.
  package let places = EventPlaces()
  /// Announces which audit events this process has stored.
  package let recorded = RecordedEvents()
  /// Announces this process's own changes of sessions before `apply` returns.
  package let committed = CommittedSessionChanges()

  package init() {}
}

extension SQLStore {
  /// Refuses new work, and closes the database once running work has ended.
  package func close() throws(StoreFault) { try database.close() }

  package func demandWrites(at now: Timestamp) async throws(StoreFault) {
    guard memory.timing.writesAreInDoubt else { return }
    // As much as a sign-in needs, and then a row without this text.
    for holder in [String(repeating: "-", count: 65_536), "-"] {
      _ = try await write(at: now) { rows in
        try LeaseRows.acquire("write test", by: holder, for: .zero, at: now, rows)
      }
    }
    memory.timing.writesAreInDoubt = false
  }

  package func latestMoment() async throws(StoreFault) -> Timestamp {
    try await read { rows in try MetaRows.latestMoment(rows) }
  }

  /// Assigns the store to another master key, for `moongate keys retire`.
  /// - Parameters:
  ///   - old: `KeyRing.fingerprint` of the key that the store belongs to.
  ///   - new: the fingerprint of the new key.
  package func replaceFingerprint(_ old: [UInt8], with new: [UInt8], at now: Timestamp) async throws(StoreFault)
    -> FingerprintReplacement
  {
    try await write(at: now) { rows in
      let nodes = try NodeRows.all(at: now, rows)
      guard nodes.isEmpty else { return .served(nodes) }
      return try MetaRows.replaceFingerprint(old, with: new, rows) ? .replaced : .notTheirs
    }
  }

  package func apply(_ changes: [Change], reading query: LedgerQuery?, at now: Timestamp) async throws(StoreFault)
    -> ApplyResult
  {
    let changes = memory.places.located(changes)
    do {
      let prepared = try await removingUsersFromTrail(of: changes.map(PreparedChange.init), at: now)
      let stateAtCommit = LedgerStateAtCommit()
      let (locks, sessions) = try await memory.timing.record(.write) {
        try await database.write(at: now) { rows in
          let applied = try PreparedChange.apply(prepared, at: now, rows)
          try query?.read(into: stateAtCommit, at: now, rows)
          return applied
        }
      }
      await memory.committed.notify(sessions)
      for traces in prepared.compactMap(\.traces) { try await delete(traces, at: now) }
      if prepared.contains(where: { $0.forgotten != nil }) { await database.forgetDeleted() }
      for change in prepared {
        guard let (record, encoded) = change.flow else { continue }
        memory.decoded.keep(record, encoded: encoded)
        if record.version == 1, let origin = record.unverifiedOrigin { try await bound(origin, at: now) }
      }
      memory.recorded.notify(changes.compactMap { if case .audit(let event) = $0 { event } else { nil } })
      return .applied(locks: locks, ledgerState: stateAtCommit.value)
    } catch let error as ChangeConflict {
      return .conflict(error.conflict)
    } catch {
      throw StoreFault(error)
    }
  }

  /// Deletes surplus flows of an address after a flow without any proof was stored.
  private func bound(_ origin: String, at now: Timestamp) async throws {
    guard memory.origins.isDue(origin) else { return }
    memory.origins.know(origin, count: try await database.write(at: now) { rows in try FlowRows.bound(origin, rows) })
  }

  /// Removes users who are about to be deleted from the audit trail, in batches: searching all of it in the deleting
  /// transaction would block all other writers. If this is interrupted, too much was removed about a user whose
  /// deletion was requested anyway.
  private func removingUsersFromTrail(of changes: [PreparedChange], at now: Timestamp) async throws -> [PreparedChange]
  {
    var changes = changes
    for index in changes.indices {
      guard let trail = changes[index].forgotten else { continue }
      // If the account no longer exists, there is nothing to do. The transaction reports that.
      guard let names = try await database.read({ rows in try AccountDeletionRows.names(of: trail.account, rows) })
      else {
        continue
      }
      changes[index].traces = try FlowTraces(account: trail.account, names: names)
      guard let bounds = try await database.read({ rows in try Trail.bounds(rows) }) else { continue }
      for first in stride(from: bounds.lowerBound, through: bounds.upperBound, by: Int(Trail.stretch)) {
        let last = first + Trail.stretch - 1
        guard try await database.read({ rows in try !trail.blanks(from: first, to: last, rows).isEmpty }) else {
          continue
        }
        try await database.write(at: now) { rows in try trail.blank(from: first, to: last, rows) }
      }
      changes[index].trailFrom = bounds.upperBound - Trail.underWay
    }
    return changes
  }

  /// Deletes the flows of users who were just deleted. No new flow can refer to them, and each flow expires within its
  /// lifetime, so an interruption leaves nothing for long.
  private func delete(_ traces: FlowTraces, at now: Timestamp) async throws {
    var last = Int64.min
    while true {
      let (end, isThere) = try await database.read { [last] rows in try traces.search(after: last, rows) }
      if isThere {
        try await database.write(at: now) { [last] rows in try traces.delete(after: last, to: end ?? .max, rows) }
      }
      guard let end else { return }
      last = end
    }
  }

  package func prune(at now: Timestamp) async throws(StoreFault) -> Bool {
    // Attack on ourselves: one import that cannot be settled stops all pruning. Its fault comes last.
    let settled: Result<Bool, StoreFault>
    do throws(StoreFault) { settled = .success(try await settleImport(at: now)) } catch { settled = .failure(error) }
    if try await write(at: now, { [pruner = memory.pruner] rows in try pruner.step(at: now, rows) }) { return true }
    return try settled.get()
  }

  func read<Value: Sendable>(_ body: @escaping @Sendable (Database.Transaction) throws -> Value)
    async throws(StoreFault) -> Value
  {
    do { return try await memory.timing.record(.read) { try await database.read(body) } } catch {
      throw StoreFault(error)
    }
  }

  func write<Value: Sendable>(
    at moment: Timestamp, _ body: @escaping @Sendable (Database.Transaction) throws -> Value
  ) async throws(StoreFault) -> Value {
    do { return try await memory.timing.record(.write) { try await database.write(at: moment, body) } } catch {
      throw StoreFault(error)
    }
  }

  private func decode<Value: Decodable>(_ type: Value.Type, _ json: [UInt8]) throws(StoreFault) -> Value {
    do { return try JSON.decode(type, json) } catch { throw StoreFault(error) }
  }
}

extension SQLStore {
  package func reserve(_ request: ReservationRequest) async throws(StoreFault) -> ReservationResult {
    try await write(at: request.now) { rows in try request.reserve(rows) }
  }

  package func ledgerState(_ query: LedgerQuery, at now: Timestamp) async throws(StoreFault) -> LedgerState {
    try await read { rows in try Ledger(query.limits, query.timer, at: now, rows).state(with: query.timer, at: now) }
  }

  package func locks(at now: Timestamp) async throws(StoreFault) -> [LockRecord] {
    try await read { rows in try LockRecord.all(at: now, rows) }
  }

  package func locks(about traces: [String], at now: Timestamp) async throws(StoreFault) -> [LockRecord] {
    try await read { rows in try LockRecord.about(traces, at: now, rows) }
  }

  package func failedAttempts(at counters: [[UInt8]]) async throws(StoreFault) -> [FailedAttempt] {
    var found: [FailedAttempt] = []
    for start in stride(from: 0, to: counters.count, by: FailedAttemptRows.stretch) {
      let stretch = Array(counters[start..<min(counters.count, start + FailedAttemptRows.stretch)])
      found += try await read { rows in try FailedAttemptRows.all(at: stretch, rows) }
    }
    return found
  }

  package func liftLock(_ id: String, at now: Timestamp) async throws(StoreFault) -> Bool {
    try await write(at: now) { rows in try LockRecord.lift(id, at: now, rows) }
  }
}

extension SQLStore {
  package func flow(_ id: TokenHash) async throws(StoreFault) -> FlowRecord? {
    try decodeFlow(try await read { rows in try FlowRows.record(rows.rows([FlowRows.read(id)])[0]) }, id)
  }

  package func recentFlow(_ id: TokenHash) -> FlowRecord? { memory.decoded.record(id) }

  package func flow(_ id: TokenHash, withHolderOf identifier: Identifier) async throws(StoreFault) -> (
    flow: FlowRecord?, holder: Account?
  ) {
    let (encoded, holder) = try await read { rows in
      let found = try rows.rows([FlowRows.read(id), AccountRows.readHolder(of: identifier, with: id, rows.dialect)])
      return (try FlowRows.record(found[0]), try AccountReads.account(found[1]))
    }
    return (try decodeFlow(encoded, id), holder)
  }

  private func decodeFlow(_ encoded: [UInt8]?, _ id: TokenHash) throws(StoreFault) -> FlowRecord? {
    guard let encoded else { return nil }
    return if let record = memory.decoded.record(of: encoded, id) { record } else {
      try decode(FlowRecord.self, encoded)
    }
  }

  package func evictFlows(beyond bound: FlowBound, at now: Timestamp) async throws(StoreFault) -> Int {
    let surplus = try await read { rows in try FlowRows.surplus(beyond: bound, rows) }
    var removed = 0
    // In batches, so that others do not wait long.
    for start in stride(from: 0, to: surplus.count, by: FlowRows.stretch) {
      let stretch = Array(surplus[start..<min(surplus.count, start + FlowRows.stretch)])
      removed += try await write(at: now) { rows in try FlowRows.evict(stretch, rows) }
    }
    return removed
  }

  package func account(_ id: String) async throws(StoreFault) -> Account? {
    try await read { rows in try AccountRows.find(id, rows) }
  }

  package func accounts(after id: String?, limit: Int) async throws(StoreFault) -> [Account] {
    try await read { rows in try AccountRows.find(try AccountRows.ids(after: id, limit: limit, rows), rows) }
  }

  package func accounts(naming identifier: Identifier) async throws(StoreFault) -> [Account] {
    try await read { rows in try AccountRows.find(try AccountRows.ids(naming: identifier, rows), rows) }
  }

  package func account(holding identifier: Identifier) async throws(StoreFault) -> Account? {
    try await read { rows in try AccountRows.holder(of: identifier, rows) }
  }

  package func isTaken(_ identifier: Identifier) async throws(StoreFault) -> Bool {
    try await read { rows in try IdentifierRows.isTaken(identifier, rows) }
  }

  package func accounts(claiming identifier: Identifier, having provider: ProviderName?, limit: Int)
    async throws(StoreFault) -> [String]
  {
    try await read { rows in try AccountRows.claimants(of: identifier, having: provider, limit: limit, rows) }
  }

  package func providerRecord(of account: String, for provider: ProviderName) async throws(StoreFault) -> [UInt8]? {
    try await read { rows in try AccountRows.record(of: account, for: provider, rows) }
  }

  package func importedHashes(of provider: ProviderName) async throws(StoreFault) -> Set<HashWork> {
    try await read { rows in try AccountRows.importedHashes(of: provider, rows) }
  }

  package func factors(of account: String) async throws(StoreFault) -> [StoredFactor] {
    try await read { rows in try AccountRows.factors(of: account, rows) }
  }

  package func devices(of account: String, at now: Timestamp) async throws(StoreFault) -> [TrustedDevice] {
    try await read { rows in try DeviceRows.all(of: account, seenAfter: now - DeviceToken.lifetime, rows) }
  }

  package func groupCounts() async throws(StoreFault) -> [GroupName: Int] {
    try await read { rows in try GroupRows.counts(rows) }
  }

  package func members(of group: GroupName, after account: String?, limit: Int) async throws(StoreFault)
    -> [GroupMember]
  {
    try await read { rows in try GroupRows.members(of: group, after: account, limit: limit, rows) }
  }

  package func invitation(_ code: TokenHash) async throws(StoreFault) -> Invitation? {
    try await read { rows in try InvitationRows.find(code, rows) }
  }

  package func invitations(after id: String?, limit: Int, at now: Timestamp) async throws(StoreFault) -> [Invitation] {
    try await read { rows in try InvitationRows.all(after: id, limit: limit, at: now, rows) }
  }

  package func memberships(of account: String) async throws(StoreFault) -> [GroupMember] {
    try await read { rows in try GroupRows.memberships(of: account, rows) }
  }

  package func expireUnverified(unusedSince moment: Timestamp, at now: Timestamp) async throws(StoreFault)
    -> ExpiredAccounts
  {
    let (expired, sessions) = try await write(at: now) { rows in
      let notifications = ChangeNotifications()
      let (removed, hasMore) = try UnverifiedAccounts.expire(unusedSince: moment, notifications, rows)
      try notifications.write(at: now, rows)
      return (ExpiredAccounts(removed: removed, hasMore: hasMore), notifications.changes)
    }
    await memory.committed.notify(sessions)
    if expired.removed > 0 { await database.forgetDeleted() }
    return expired
  }

  package func session(_ token: TokenHash) async throws(StoreFault) -> SessionSnapshot? {
    try await read { rows in try SessionRows.find(token, rows) }
  }

  package func sessions(of account: String) async throws(StoreFault) -> [Session] {
    try await read { rows in try SessionRows.all(of: account, rows) }
  }

  package func sessions(openedBy siteSession: String, limit: Int) async throws(StoreFault) -> [Session] {
    try await read { rows in try SessionRows.all(openedBy: siteSession, limit: limit, rows) }
  }

  package func session(replacing token: TokenHash, at now: Timestamp) async throws(StoreFault) -> Session? {
    let moment = now - ReplacedTokenRows.lifetime
    return try await read { rows in try SessionRows.find(replacing: token, after: moment, rows) }
  }

  package func touch(_ uses: [TokenHash: SessionUse]) async throws(StoreFault) {
    guard let latest = uses.values.map(\.at).max() else { return }
    // In the same order on all nodes, so that two that update the same sessions wait for each other but do not
    // deadlock.
    let sorted = uses.sorted { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }
    try await write(at: latest) { rows in
      for (token, use) in sorted { try SessionRows.touch(token, use, rows) }
    }
  }

  package func sessionChanges(after sequence: Int64) async throws(StoreFault) -> SessionChanges {
    try await read { rows in try SessionRows.changes(after: sequence, rows) }
  }

  package func append(_ events: [AuditEvent]) async throws(StoreFault) {
    guard let latest = events.map(\.at).max() else { return }
    let events = memory.places.located(events)
    let encoded = events.map { ($0, $0.json) }
    try await write(at: latest) { rows in
      for (event, json) in encoded { try EventRows.append(event, encoded: json, rows) }
    }
    memory.recorded.notify(events)
  }

  package func events(limit: Int) async throws(StoreFault) -> [AuditEvent] {
    var events: [AuditEvent] = []
    for json in try await read({ rows in try EventRows.latest(limit, rows) }) {
      events.append(try decode(AuditEvent.self, json))
    }
    return events
  }

  package func event(_ id: DecisionID) async throws(StoreFault) -> AuditEvent? {
    guard let json = try await read({ rows in try EventRows.find(id, rows) }) else { return nil }
    return try decode(AuditEvent.self, json)
  }
}

extension SQLStore {
  package func recordHeartbeat(_ node: ServingNode) async throws(StoreFault) -> [ServingNode] {
    try await write(at: node.seenAt) { rows in
      try NodeRows.put(node, rows)
      return try NodeRows.all(at: node.seenAt, rows)
    }
  }

  package func nodes(at now: Timestamp) async throws(StoreFault) -> [ServingNode] {
    try await read { rows in try NodeRows.all(at: now, rows) }
  }

  package func answers(to fingerprint: [UInt8]) async throws(StoreFault) -> Bool {
    try await read { rows in try MetaRows.owner(rows).map { $0.fingerprint == fingerprint } ?? true }
  }

  package func leave(_ id: String, at now: Timestamp) async throws(StoreFault) {
    try await write(at: now) { rows in try NodeRows.remove(id, rows) }
  }
}

extension StoreFault {
  /// The error as the store's callers see it. Contains no SQL and no values.
  init(_ error: any Error) {
    if let fault = error as? Self {
      self = fault
    } else if error is CancellationError {
      self.init("the request was abandoned")
    } else {
      self.init("a record of the store cannot be read")
    }
  }
}
