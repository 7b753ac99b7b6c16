import Foundation
import GRDB
import MoongateCore

/// Removing a person. Every table that could tell of one is named here; counters and timers have keys that are keyed hashes, and say
/// nothing of whose they are.
enum Deleting {
  static func delete(_ account: String, traces: [String], at now: Timestamp, _ db: Database) throws {
    let names = try db.rows("SELECT value FROM identifier WHERE account = ?", [account]).map { $0[0] as String }
    // Identifiers, records and sessions go with it (ON DELETE CASCADE).
    guard try db.run("DELETE FROM account WHERE id = ?", [account]) > 0 else { throw ChangeConflict(.accountUnavailable) }
    try SessionRows.announce(account: account, at: now, db)
    try deleteFlows(naming: [account] + names, db)
    try blankEvents(naming: [account] + traces, db)
  }

  /// A flow's record is JSON with the account and the identifiers in it. Each text is looked for as JSON spells it.
  private static func deleteFlows(naming texts: [String], _ db: Database) throws {
    for text in texts {
      try db.run("DELETE FROM flow WHERE instr(CAST(record AS TEXT), ?) > 0", [String(decoding: try JSON.encode(text), as: UTF8.self)])
    }
  }

  private static func blankEvents(naming texts: [String], _ db: Database) throws {
    for text in texts {
      let spelled = String(decoding: try JSON.encode(text), as: UTF8.self)
      for row in try db.rows("SELECT number, event FROM event WHERE instr(CAST(event AS TEXT), ?) > 0", [spelled]) {
        let event = try JSON.decode(AuditEvent.self, row[1])
        try db.run("UPDATE event SET event = ? WHERE number = ?", [Data(event.anonymous.json), row[0] as Int64])
      }
    }
  }
}
