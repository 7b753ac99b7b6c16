import Foundation
import GRDB
import MoongateCore
import MoongateSDK
import Synchronization

/// The store in one SQLite file, shared by the processes of one machine.
///
/// It owns tables and transactions. What limits, locks and timers mean it asks of the core.
package final class SQLiteStore: Store {
  private let database: DatabaseQueue
  private let commits: CommitQueue
  private let readers: Readers
  private let pruning = Pruning()
  private let decoded = DecodedFlows()
  private let door = Mutex(Door())

  /// Who is inside. GRDB does not survive a read of a connection that was closed, so the last one out closes it.
  private struct Door {
    var isOpen = true
    var inside = 0
  }

  /// Opens the store, makes it where there is none, and brings its schema up to date. Blocks while it does.
  /// - Parameters:
  ///   - path: of the file; `:memory:` for one that lives with this value.
  ///   - keyFingerprint: `KeyRing.fingerprint` of the master key: a store answers to the key it was made with.
  package init(path: String, keyFingerprint: [UInt8]) throws(StoreRefusal) {
    let file = DatabaseFile(path: path)
    let isFile = path != ":memory:"
    if isFile {
      try file.create()
      _ = try file.inspect()
      try file.tighten()
    }
    do {
      database =
        isFile
        ? try DatabaseQueue(path: path, configuration: SQLiteConfiguration.writing) : try DatabaseQueue(configuration: SQLiteConfiguration.base)
      let recorded = try database.writeWithoutTransaction { db in
        try Schema.migrate(db, path: path)
        try db.run("INSERT OR IGNORE INTO meta (id, fingerprint, moment) VALUES (1, ?, 0)", [Data(keyFingerprint)])
        guard let meta = try db.row("SELECT fingerprint, moment FROM meta"), meta.bytes(0) == keyFingerprint else {
          throw StoreRefusal.otherKey(path: path)
        }
        return meta.moment(1)
      }
      commits = CommitQueue(writer: database, recorded: recorded, runsInPlace: !isFile)
      readers = Readers(
        isFile
          ? try (0..<SQLiteConfiguration.readers).map { _ in try DatabaseQueue(path: path, configuration: SQLiteConfiguration.reading) } : [database])
      if isFile { try file.tighten() }
    } catch {
      throw file.refusal(error)
    }
  }

  /// Turns away what comes from now on, and closes the file once what runs has ended.
  package func close() throws(StoreFault) {
    let isLast = door.withLock { door in
      defer { door.isOpen = false }
      return door.isOpen && door.inside == 0
    }
    if isLast { try closeFile() }
  }

  package func latestMoment() async throws(StoreFault) -> Timestamp {
    try await read { db in try db.row("SELECT moment FROM meta")?.moment(0) ?? Timestamp(milliseconds: 0) }
  }

  package func apply(_ changes: [Change], at now: Timestamp) async throws(StoreFault) -> ApplyResult {
    do {
      let prepared = try changes.map(PreparedChange.init)
      let locks = try await working {
        let locks = try await commits.write(at: now) { db in try prepared.flatMap { try $0.apply(at: now, db) } }
        if prepared.contains(where: \.forgetsPerson) { await emptyLog() }
        return locks
      }
      for change in prepared { if let (record, encoded) = change.flow { decoded.keep(record, encoded: encoded) } }
      return .applied(locks: locks)
    } catch let error as ChangeConflict {
      return .conflict(error.conflict)
    } catch {
      throw StoreFault(error)
    }
  }

  package func prune(at now: Timestamp) async throws(StoreFault) -> Bool {
    try await write(at: now) { [pruning] db in try pruning.step(at: now, db) }
  }

  private func read<Value>(_ body: (Database) throws -> Value) async throws(StoreFault) -> Value {
    do { return try await working { try readers.read(body) } } catch { throw StoreFault(error) }
  }

  private func write<Value: Sendable>(
    at moment: Timestamp, _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws(StoreFault) -> Value {
    do { return try await working { try await commits.write(at: moment, body) } } catch { throw StoreFault(error) }
  }

  private func working<Value>(_ body: () async throws -> Value) async throws -> Value {
    try door.withLock { door throws(StoreFault) in
      guard door.isOpen else { throw StoreFault("the store is closed") }
      door.inside += 1
    }
    defer {
      let isLast = door.withLock { door in
        door.inside -= 1
        return !door.isOpen && door.inside == 0
      }
      if isLast { try? closeFile() }
    }
    return try await body()
  }

  /// Empties the log, which holds what pages were before a person was deleted. That needs a moment in which nobody reads, and holds other
  /// writes up for a quarter of a second at a time at most. Where there is no such moment, the next deletion, or the last process to end, does it.
  private func emptyLog() async {
    for _ in 0..<8 {
      let emptied = try? await database.writeWithoutTransaction { db in
        try db.execute(sql: "PRAGMA busy_timeout = 250")
        defer { try? db.execute(sql: "PRAGMA busy_timeout = \(Int(SQLiteConfiguration.busyTimeout * 1000))") }
        return try db.checkpoint(.truncate)
      }
      if emptied != nil { return }
    }
  }

  private func closeFile() throws(StoreFault) {
    do {
      // The connection that writes is the last: it brings the log into the file.
      try readers.close()
      try database.close()
    } catch {
      throw StoreFault(error)
    }
  }
}

extension SQLiteStore {
  package func reserve(_ request: ReservationRequest) async throws(StoreFault) -> ReservationResult {
    try await write(at: request.now) { db in try request.reserve(db) }
  }

  package func standing(_ limits: [ResolvedLimit], _ timer: ResendTimer?, at now: Timestamp) async throws(StoreFault) -> LedgerStanding {
    try await read { db in
      let running = try timer.flatMap { timer in try TimerRow(timer.key, db).flatMap { $0.isClosed(to: timer, at: now) ? $0 : nil } }
      return LedgerStanding(counters: try limits.map { try CounterRow($0, at: now, db).state }, resendAt: running?.resendAt)
    }
  }

  package func locks(at now: Timestamp) async throws(StoreFault) -> [LockRecord] { try await read { db in try LockRecord.all(at: now, db) } }

  package func liftLock(_ id: String, at now: Timestamp) async throws(StoreFault) -> Bool {
    try await write(at: now) { db in try LockRecord.lift(id, at: now, db) }
  }
}

extension SQLiteStore {
  package func flow(_ id: TokenHash) async throws(StoreFault) -> FlowRecord? {
    guard let encoded = try await read({ db in try FlowRows.find(id, db) }) else { return nil }
    if let record = decoded.record(of: encoded, id) { return record }
    return try decode(FlowRecord.self, encoded)
  }

  package func account(_ id: String) async throws(StoreFault) -> Account? { try await read { db in try AccountRows.find(id, db) } }

  package func accounts(after id: String?, limit: Int) async throws(StoreFault) -> [Account] {
    try await read { db in try AccountRows.ids(after: id, limit: limit, db).compactMap { try AccountRows.find($0, db) } }
  }

  package func accounts(naming identifier: Identifier) async throws(StoreFault) -> [Account] {
    try await read { db in try AccountRows.ids(naming: identifier, db).compactMap { try AccountRows.find($0, db) } }
  }

  package func account(holding identifier: Identifier) async throws(StoreFault) -> Account? {
    // Attack: the time that an answer takes tells who is known. No account has an empty id, and it is looked for all the same.
    try await read { db in try AccountRows.find(try AccountRows.holder(of: identifier, db) ?? "", db) }
  }

  package func account(claiming identifier: Identifier, having provider: ProviderName) async throws(StoreFault) -> Account? {
    try await read { db in try AccountRows.claimant(of: identifier, having: provider, db).flatMap { try AccountRows.find($0, db) } }
  }

  package func providerRecord(of account: String, for provider: ProviderName) async throws(StoreFault) -> [UInt8]? {
    try await read { db in try AccountRows.record(of: account, for: provider, db).map { Array($0) } }
  }

  package func session(_ token: TokenHash) async throws(StoreFault) -> SessionSnapshot? { try await read { db in try SessionRows.find(token, db) } }

  package func sessions(of account: String) async throws(StoreFault) -> [Session] { try await read { db in try SessionRows.all(of: account, db) } }

  package func touch(_ seen: [TokenHash: Timestamp]) async throws(StoreFault) {
    guard let latest = seen.values.max() else { return }
    try await write(at: latest) { db in
      for (token, moment) in seen { try SessionRows.touch(token, at: moment, db) }
    }
  }

  package func sessionChanges(after sequence: Int64) async throws(StoreFault) -> SessionChanges {
    try await read { db in try SessionRows.changes(after: sequence, db) }
  }

  package func append(_ events: [AuditEvent]) async throws(StoreFault) {
    guard let latest = events.map(\.at).max() else { return }
    do {
      let encoded = events.map { ($0, Data($0.json)) }
      try await working {
        try await commits.write(at: latest) { db in
          for (event, json) in encoded { try EventRows.append(event, encoded: json, db) }
        }
      }
    } catch {
      throw StoreFault(error)
    }
  }

  package func events(limit: Int) async throws(StoreFault) -> [AuditEvent] {
    var events: [AuditEvent] = []
    for json in try await read({ db in try EventRows.latest(limit, db) }) { events.append(try decode(AuditEvent.self, json)) }
    return events
  }

  package func event(_ id: DecisionID) async throws(StoreFault) -> AuditEvent? {
    guard let json = try await read({ db in try EventRows.find(id, db) }) else { return nil }
    return try decode(AuditEvent.self, json)
  }

  private func decode<Value: Decodable>(_ type: Value.Type, _ json: Data) throws(StoreFault) -> Value {
    do { return try JSON.decode(type, json) } catch { throw StoreFault(error) }
  }
}
