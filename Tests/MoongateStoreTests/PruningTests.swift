import Foundation
import GRDB
import MoongateCore
import MoongateStore
import MoongateTesting
import Testing

/// What pruning leaves, looked at row by row.
@Suite struct PruningTests {
  private let now = ManualClock.start

  @Test func theTrailKeepsItsLastHundredThousand() async throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1])
    let database = try DatabaseQueue(path: folder.path("moongate.db"))
    try await database.write { [now] db in
      try db.execute(
        sql: """
          WITH RECURSIVE counting (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counting WHERE n < 101234)
          INSERT INTO event (id, at, event) SELECT 'dc_' || n, \(now.milliseconds), x'' FROM counting
          """)
    }
    while try await store.prune(at: now) {}
    #expect(try await database.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM event") } == 100_000)
    #expect(try await database.read { db in try String.fetchOne(db, sql: "SELECT id FROM event ORDER BY number LIMIT 1") } == "dc_1235")
  }

  /// Rows of every table that a sign-in leaves behind go in time.
  @Test func nothingIsKeptForEver() async throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1])
    for number in 0..<20 { try await Crash.act(number, on: store) }
    let later = now + .seconds(40 * 86_400)
    while try await store.prune(at: later) {}
    let database = try DatabaseQueue(path: folder.path("moongate.db"))
    for table in ["counter", "tally", "pending", "timer", "flow", "session", "event"] {
      #expect(try await database.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)") } == 0, "\(table)")
    }
    #expect(try await database.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM account") } == 20)
  }

  /// A statement that walks a whole table would slow down with every person who ever came.
  @Test(arguments: [
    "SELECT counted FROM counter WHERE key = x'00'", "SELECT count(*) FROM pending WHERE counter = x'00' AND at > 1",
    "SELECT count(*) FROM tally WHERE counter = x'00' AND at <= 1", "SELECT record FROM flow WHERE hash = x'00'",
    "SELECT account FROM identifier WHERE kind = 'phone' AND value = '1' AND verified_at IS NOT NULL",
    "SELECT account FROM identifier WHERE kind = 'phone' AND value = '1' AND verified_at IS NULL AND account <> 'a'",
    "SELECT token FROM session WHERE account = 'a' AND (id = 'b' OR token = x'00')", "SELECT key FROM counter WHERE disabled_since IS NOT NULL",
    "SELECT key FROM counter WHERE locked_until > 1 AND disabled_since IS NULL",
    "SELECT event FROM event WHERE id = 'dc' ORDER BY number DESC LIMIT 1",
    "DELETE FROM flow WHERE number IN (SELECT number FROM flow WHERE forgotten_at <= 1 ORDER BY forgotten_at LIMIT 500)",
    "SELECT token FROM session_change WHERE number > 1 AND number <= 2",
  ])
  func looksUpByIndex(statement: String) async throws {
    let folder = try ScratchFolder()
    try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1]).close()
    let plan = try await DatabaseQueue(path: folder.path("moongate.db")).read { db in
      try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + statement).map { $0["detail"] as String }
    }
    #expect(!plan.contains { $0.hasPrefix("SCAN") && !$0.contains("USING INDEX counter_disabled") }, "\(plan)")
  }
}
