import Foundation
import GRDB
import MoongateCore

extension Settlement {
  /// Ends the reservation at each of its counters.
  ///
  /// A counter where it is gone (a lock began, an operator lifted one) or has been unsettled for so long that it counts
  /// as a failure already is left as it is: a settlement that comes late or twice changes nothing.
  /// - Returns: the locks that it began.
  func settle(_ db: Database) throws -> [LockBegun] {
    var locks: [LockBegun] = []
    for limit in limits.sorted(by: { $0.counter.lexicographicallyPrecedes($1.counter) }) {
      guard let moment = try take(limit, db) else { continue }
      switch outcome {
      case .success where limit.counts == .all, .refundPerson where !limit.key.isPersonal:
        var counter = try CounterRow(limit, at: now, db)
        try counter.tidy(db)
        try counter.keep(reservation, at: moment, db)
      case .success where limit.counts == .consecutiveFailures:
        var counter = try CounterRow(limit, at: now, db)
        try counter.reset(db)
      case .success, .refund, .refundPerson: break
      case .failure:
        var counter = try CounterRow(limit, at: now, db)
        try counter.tidy(db)
        try counter.keep(reservation, at: moment, db)
        switch counter.state.afterFailure(limit, at: now) {
        case .lock(let lock):
          try counter.begin(lock, db)
          locks.append(LockBegun(limit: limit, until: lock.until))
        case .disable:
          try counter.disable(db)
          locks.append(LockBegun(limit: limit, until: nil))
        default: break
        }
      }
    }
    if let timer {
      switch outcome {
      case .success, .failure: try timer.confirm(reservation, db)
      case .refund, .refundPerson: try timer.restore(reservation, at: now, db)
      }
    }
    return locks
  }

  /// Takes the try out of those that are being judged.
  /// - Returns: when it was reserved; nil where it is not among them.
  private func take(_ limit: ResolvedLimit, _ db: Database) throws -> Timestamp? {
    let arguments: StatementArguments = [Data(limit.counter), Data(reservation.bytes), (now - CounterState.patience).milliseconds]
    let moment = try db.row("SELECT at FROM pending WHERE counter = ? AND reservation = ? AND at > ?", arguments)?.moment(0)
    if moment != nil { try db.run("DELETE FROM pending WHERE counter = ? AND reservation = ? AND at > ?", arguments) }
    return moment
  }
}
