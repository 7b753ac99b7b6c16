import Foundation
import GRDB
import MoongateCore

/// One change, with what can be prepared before the transaction done: records are JSON already.
struct PreparedChange: Sendable {
  private let change: Change
  private let encoded: Data

  init(_ change: Change) throws {
    self.change = change
    encoded =
      switch change {
      case .putFlow(let record): try JSON.encode(record.next)
      case .putSession(let session), .replaceSession(_, by: let session): try JSON.encode(session.passed)
      case .audit(let event): Data(event.json)
      default: Data()
      }
  }

  /// Whether afterwards nothing may tell of a person that was there.
  var forgetsPerson: Bool { if case .deleteAccount = change { true } else { false } }

  /// The flow that it stores, as it is in the store afterwards.
  var flow: (FlowRecord, encoded: Data)? { if case .putFlow(let record) = change { (record.next, encoded) } else { nil } }

  /// - Returns: the locks that it began.
  /// - Throws: `ChangeConflict`.
  func apply(at now: Timestamp, _ db: Database) throws -> [LockBegun] {
    switch change {
    case .settle(let settlement): return try settlement.settle(db)
    case .putFlow(let record): try FlowRows.put(record, encoded: encoded, db)
    case .deleteFlow(let id): try FlowRows.delete(id, db)
    case .createAccount(let account): try AccountRows.create(account, at: now, db)
    case .verifyIdentifier(let account, let identifier): try AccountRows.verify(identifier, of: account, at: now, db)
    case .putProviderRecord(let account, let provider, let sealed):
      try AccountRows.put(sealed, of: account, for: provider, at: now, db)
    case .demandProviderRecord(let account, let provider, let hash):
      let sealed = try AccountRows.record(of: account, for: provider, db)
      guard sealed.map({ TokenHash(of: $0) }) == hash else { throw ChangeConflict(.recordChanged) }
    case .claimIdentifier(let account, let identifier): try AccountRows.claim(identifier, of: account, at: now, db)
    case .dropIdentifiers(let account, let kind, let kept): try AccountRows.drop(kind, of: account, except: kept, at: now, db)
    case .nameAccount(let account, let first, let last): try AccountRows.name(account, first: first, last: last, at: now, db)
    case .absorbAccount(let account, let heir): try AccountRows.absorb(account, into: heir, at: now, db)
    case .clearCounters(let limits):
      for limit in limits {
        var counter = try CounterRow(limit, at: now, db)
        try counter.forget(at: now, db)
      }
    case .seen(let account): try AccountRows.seen(account, at: now, db)
    case .setLocked(let account, let isLocked): try AccountRows.setLocked(account, isLocked, at: now, db)
    case .deleteAccount(let account, let traces): try Deleting.delete(account, traces: traces, at: now, db)
    case .putSession(let session): try SessionRows.put(session, passed: encoded, at: now, db)
    case .replaceSession(let token, let session):
      try SessionRows.demand(token, db)
      try SessionRows.end(token, at: now, db)
      try SessionRows.put(session, passed: encoded, at: now, db)
    case .endSession(let token): try SessionRows.end(token, at: now, db)
    case .endSessions(let account, let except): try SessionRows.end(of: account, except: except, at: now, db)
    case .clearTimer(let key): try db.run("DELETE FROM timer WHERE key = ?", [Data(key)])
    case .audit(let event): try EventRows.append(event, encoded: encoded, db)
    }
    return []
  }
}

extension FlowRecord {
  /// The same with the version that it is stored as.
  fileprivate var next: FlowRecord {
    var next = self
    next.version += 1
    return next
  }
}
