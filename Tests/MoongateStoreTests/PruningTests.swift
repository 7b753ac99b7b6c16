import Foundation
import GRDB
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

/// What pruning leaves behind, row by row.
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
    #expect(
      try await database.read { db in try String.fetchOne(db, sql: "SELECT id FROM event ORDER BY number LIMIT 1") }
        == "dc_1235")
  }

  /// Attack: junk requests, each refused with an event in the trail, push the events of a sign-in out.
  @Test func refusalsDoNotDisplaceSecurityEvents() async throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1])
    let database = try DatabaseQueue(path: folder.path("moongate.db"))
    try await store.append([AuditEvent(id: DecisionID(text: "dc_signin"), at: now, kind: .sessionStarted)])
    try await store.append([AuditEvent(id: DecisionID(text: "dc_first"), at: now, kind: .refused)])
    try await database.write { [now] db in
      try db.execute(
        sql: """
          WITH RECURSIVE counting (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counting WHERE n < 101234)
          INSERT INTO event (id, at, event, quota) SELECT 'dc_' || n, \(now.milliseconds), x'', 2 FROM counting
          """)
    }
    while try await store.prune(at: now) {}
    #expect(try await store.event(DecisionID(text: "dc_signin")) != nil)
    #expect(try await store.event(DecisionID(text: "dc_first")) == nil)
    #expect(
      try await database.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM event WHERE quota = 2") }
        == 100_000)
  }

  /// Rows that a sign-in leaves in any table are removed in time.
  @Test func allEntriesExpire() async throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1])
    for number in 0..<20 { try await Crash.act(number, on: store) }
    let later = now + .seconds(40 * 86_400)
    while try await store.prune(at: later) {}
    let database = try DatabaseQueue(path: folder.path("moongate.db"))
    for table in ["counter", "tally", "pending", "timer", "flow", "session", "event"] {
      #expect(
        try await database.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)") } == 0, "\(table)")
    }
    #expect(try await database.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM account") } == 20)
  }

  /// Gateways record their own times: of two changes, the second may be slightly older.
  @Test func changesOfSessionsKeepNumbersWithoutGaps() async throws {
    let folder = try ScratchFolder()
    let path = folder.path("moongate.db")
    let store = try SQLiteStore(path: path, keyFingerprint: [1])
    let database = try DatabaseQueue(path: path)
    let (old, young) = (now.milliseconds - 3_600_000, now.milliseconds - 3_599_999)
    try await database.write { db in
      for (index, at) in [old, old, young, old, young].enumerated() {
        try db.execute(sql: "INSERT INTO session_change VALUES (?, ?, NULL, 'ac_1')", arguments: [index + 1, at])
      }
    }
    while try await store.prune(at: now) {}
    #expect(
      try await database.read { db in try Int.fetchAll(db, sql: "SELECT number FROM session_change ORDER BY 1") } == [
        3, 4, 5,
      ])
    #expect(try StoreCopier(.sqlite(path: path)).check().findings == [])
    while try await store.prune(at: now + .seconds(1)) {}
    #expect(try await database.read { db in try Int.fetchAll(db, sql: "SELECT number FROM session_change") } == [5])
  }

  /// Attack on ourselves: an import that cannot be settled keeps everything else from being deleted. Its fault is told
  /// at the end.
  @Test func aFailingSettlementStopsNothingElse() async throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1])
    let database = try DatabaseQueue(path: folder.path("moongate.db"))
    _ = try #require(try await store.beginImport(at: now - .seconds(90)))
    try await database.write { [now] db in
      try db.execute(
        sql: """
          INSERT INTO account (id, created_at, last_seen_at, is_locked) VALUES ('ac_1', 0, 0, 2);
          CREATE TRIGGER account_stays BEFORE DELETE ON account BEGIN SELECT raise(ABORT, 'it stays'); END;
          """)
      try db.execute(
        sql: """
          WITH RECURSIVE counting (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counting WHERE n < 3000)
          INSERT INTO pending
            SELECT CAST(printf('%05d', n) AS BLOB), CAST(printf('%05d', n) AS BLOB), 1, ? FROM counting
          """, arguments: [now.milliseconds - 3_600_000])
    }
    var fault: StoreFault?
    do throws(StoreFault) { while try await store.prune(at: now) {} } catch { fault = error }
    #expect(fault != nil)
    #expect(try await database.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM pending") } == 0)
    try await database.write { db in try db.execute(sql: "DROP TRIGGER account_stays") }
    while try await store.prune(at: now) {}
    #expect(try await store.account("ac_1") == nil)
  }

  /// Attempts of processes that died, in any number: no step of pruning reads more of them than of any other table.
  @Test func abandonedAttemptsAreDeletedInSmallSteps() async throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1])
    let database = try DatabaseQueue(path: folder.path("moongate.db"))
    let (dead, young) = (now.milliseconds - 3_600_000, now.milliseconds)
    try await database.write { db in
      try db.execute(
        sql: """
          WITH RECURSIVE counting (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counting WHERE n < 3000)
          INSERT INTO pending SELECT CAST(printf('%05d', n / 3) AS BLOB), CAST(printf('%05d', n) AS BLOB), 1, iif(n % 10 = 0, ?, ?) FROM counting
          """, arguments: [young, dead])
    }
    let left = { try await database.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM pending") ?? -1 } }
    var before = try await left()
    var goesOn = true
    while goesOn {
      goesOn = try await store.prune(at: now)
      let after = try await left()
      #expect(before - after <= 502, "a stretch, and what else its last key has")
      before = after
    }
    #expect(try await left() == 300)
  }

  /// A transaction that has locked the counter counts the attempt in one statement and moves it in the next, with a
  /// time that it was given before it waited for the lock.
  @Test func attemptsAreKeptForTenSecondsAfterTheirWindow() async throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1])
    let database = try DatabaseQueue(path: folder.path("moongate.db"))
    try await database.write { [now] db in
      try db.execute(
        sql: "INSERT INTO pending VALUES (x'01', x'02', ?, ?)",
        arguments: [now.milliseconds - 60_000, now.milliseconds])
    }
    while try await store.prune(at: now + .milliseconds(9999)) {}
    #expect(try await database.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM pending") } == 1)
    while try await store.prune(at: now + .seconds(10)) {}
    #expect(try await database.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM pending") } == 0)
  }

  /// Flows are searched in batches after the transaction that deletes the user; all flows of the user are removed, and
  /// no others.
  @Test func manyFlowsForgetThePersonEverywhere() async throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1])
    let account = Account(
      id: "ac_1", createdAt: now, lastSeenAt: now,
      identifiers: [
        HeldIdentifier(
          identifier: Identifier(kind: .phone, value: "+919999999999", display: "", attributes: [:]), verifiedAt: now)
      ])
    _ = try await store.apply([.createAccount(account)], at: now)
    let database = try DatabaseQueue(path: folder.path("moongate.db"))
    let theirs = [1, 999, 1000, 1001, 2000, 2001, 2500]
    try await database.write { db in
      for number in 1...2500 {
        // The numbers have gaps.
        let place = number * (number < 1500 ? 1 : 7)
        let name = !theirs.contains(number) ? "ac_12" : number.isMultiple(of: 2) ? "ac_1" : "+919999999999"
        try db.execute(
          sql: "INSERT INTO flow (number, hash, version, forgotten_at, record) VALUES (?, ?, 1, ?, CAST(? AS BLOB))",
          arguments: [place, "\(number)", Int64.max, #"{"a":"\#(name)"}"#])
      }
    }
    #expect(try await store.apply([.deleteAccount("ac_1", traces: [])], at: now) == .applied(locks: []))
    let left = try await database.read { db in
      try Int.fetchOne(db, sql: "SELECT count(*) FROM flow WHERE instr(record, CAST('\"ac_12\"' AS BLOB)) > 0")
    }
    #expect(left == 2500 - theirs.count)
    #expect(try await database.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM flow") } == left)
  }

  /// The trail is searched in batches before the transaction that deletes the user, and its latest part within that
  /// transaction.
  @Test func aLongTrailForgetsThePersonEverywhere() async throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(path: folder.path("moongate.db"), keyFingerprint: [1])
    let account = Account(id: "ac_1", createdAt: now, lastSeenAt: now)
    _ = try await store.apply([.createAccount(account)], at: now)
    let database = try DatabaseQueue(path: folder.path("moongate.db"))
    for (number, name) in [
      (1, "ac_1"), (2, "ac_12"), (4999, "ac_1"), (5001, "ac_1"), (17_000, "ac_1"), (17_001, "ac_2"),
    ] {
      var event = AuditEvent(id: DecisionID(text: "dc_\(number)"), at: now, kind: .refused)
      event.account = name
      event.detail = ["rule": "\(name == "ac_1" ? "theirs" : "other")"]
      let json = Data(event.json)
      try await database.write { [now] db in
        try db.execute(
          sql: "INSERT INTO event (number, id, at, event) VALUES (?, ?, ?, ?)",
          arguments: [number, "dc", now.milliseconds, json])
      }
    }
    #expect(try await store.apply([.deleteAccount("ac_1", traces: ["tr"])], at: now) == .applied(locks: []))
    let kept = try await store.events(limit: 10)
    #expect(kept.map(\.account) == ["ac_2", nil, nil, nil, "ac_12", nil])
    #expect(try await store.apply([.deleteAccount("ac_1", traces: [])], at: now) == .conflict(.accountUnavailable))
  }
}
