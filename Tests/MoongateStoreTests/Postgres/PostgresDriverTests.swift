import Foundation
import MoongateCore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateStore

/// A database for one test, and the driver connected to it.
struct PostgresBench {
  let server: PostgresServer
  let name: String

  /// - Parameter server: nil for the shared one.
  init(_ server: PostgresServer? = nil, _ tables: String = "CREATE TABLE note (number BIGINT, text TEXT, bytes BYTEA)")
    throws
  {
    self.server = try server ?? #require(PostgresServer.shared)
    name = try self.server.makeDatabase()
    try self.server.sql(
      "\(tables); GRANT ALL ON ALL TABLES IN SCHEMA public TO moongate; GRANT ALL ON SCHEMA public TO moongate",
      in: name)
  }

  func database(_ timing: PostgresTiming = .patient, more: String = "pool=4") throws -> PostgresDatabase {
    PostgresDatabase(try PostgresAddress(server.url(name, more: more)), timing: timing, recordsMoments: false)
  }

  func sql(_ statements: String) throws -> String { try server.sql(statements, in: name) }
}

/// - Returns: the number of this round, counted from 1.
func counted(_ rounds: borrowing Mutex<Int>) -> Int {
  rounds.withLock { count in
    count += 1
    return count
  }
}

extension PostgresDatabase {
  func count() async throws -> Int {
    try await read { one in try one.row("SELECT count(*) FROM note")?.count(0) ?? -1 }
  }

  func add(_ number: Int) async throws {
    try await write(at: ManualClock.start) { one in
      try one.run("INSERT INTO note (number) VALUES (?1)", [SQLValue(number)])
    }
  }
}

/// Statements, values and transactions.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) struct PostgresDriverTests {
  private let bench: PostgresBench
  private let database: PostgresDatabase
  private let now = ManualClock.start

  init() throws {
    bench = try PostgresBench()
    database = try bench.database()
  }

  @Test(arguments: [
    [SQLValue.integer(0), .text(""), .bytes([])], [.integer(.max), .text("आशा 🌙 $1 ?1 '"), .bytes([0, 255, 39, 92])],
    [.integer(.min), .null, .null],
    [.null, .text("a"), .bytes([UInt8](repeating: 7, count: 300_000))],
    [.integer(-1), .text(String(repeating: "x", count: 100_000)), .null],
  ])
  func valuesRoundTrip(values: [SQLValue]) async throws {
    try await database.write(at: now) { one in try one.run("INSERT INTO note VALUES (?1, ?2, ?3)", values) }
    let back = try await database.read { one in
      try one.rows("SELECT number, text, bytes FROM note").map { row in
        [
          try row.optionalInteger(0).map(SQLValue.integer) ?? .null, SQLValue(try row.optionalText(1)),
          SQLValue(try row.optionalBytes(2)),
        ]
      }
    }
    #expect(back == [values])
  }

  /// Operations that an operator waits for may exceed the time limits of serving, on the server and in the driver. They
  /// take a second here, with limits of tenths.
  @Test func operatorWorkExceedsTheServingLimits() async throws {
    let short = PostgresTiming(
      connect: .seconds(3), statement: .milliseconds(200), lock: .milliseconds(200), silence: .milliseconds(300),
      queue: .seconds(3))
    let snapshot = try PostgresSnapshot(url: bench.server.url(bench.name), timing: short)
    #expect(throws: StoreFault.self) { try snapshot.read(Slow(takesTime: false)) }
    #expect(try snapshot.read(Slow(takesTime: true)) == 1)
    #expect(try snapshot.write(Slow(takesTime: true)) == 1)
  }

  private struct Slow: SnapshotWork {
    let takesTime: Bool

    func run(_ rows: some SQLTransaction) throws -> Int? {
      if takesTime { try rows.allowLongRun() }
      return try rows.row("SELECT 1::bigint FROM (SELECT pg_sleep(1)) AS slept")?.count(0)
    }
  }

  /// Of gateways that start at once, one creates the tables and the others wait for it, however long that takes.
  @Test func migrationWaitsForAnotherMigration() async throws {
    let short = PostgresTiming(
      connect: .seconds(3), statement: .milliseconds(200), lock: .milliseconds(200), silence: .milliseconds(300),
      queue: .seconds(3))
    let name = try bench.server.makeDatabase()
    let other = Task.detached { [bench] in
      try bench.server.sql(
        "BEGIN; SELECT pg_advisory_xact_lock(\(Schema.application)); SELECT pg_sleep(1); COMMIT", in: name)
    }
    while try bench.server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", in: name) == "0" {}
    #expect(try PostgresSnapshot(url: bench.server.url(name), timing: short).migrate() == 0)
    _ = try await other.value
  }

  /// Attack: a name with a NUL, which PostgreSQL refuses, would be answered with 503.
  @Test func nulIsReplaced() async throws {
    try await database.write(at: now) { one in try one.run("INSERT INTO note (text) VALUES (?1)", [.text("a\0b")]) }
    #expect(try await database.read { one in try one.row("SELECT text FROM note")?.text(0) } == "a\u{fffd}b")
  }

  @Test func aColumnOfAnotherTypeIsAFault() async throws {
    try await database.add(1)
    await #expect(throws: StoreFault("the store holds a damaged row")) {
      try await database.read { one in try one.row("SELECT number FROM note")?.text(0) }
    }
    await #expect(throws: StoreFault.self) {
      try await database.read { one in try one.row("SELECT text FROM note")?.integer(0) }
    }
    await #expect(throws: StoreFault.self) {
      try await database.read { one in try one.row("SELECT number FROM note")?.integer(7) }
    }
  }

  @Test func argumentsAreNumberedOutsideOfQuotesOnly() {
    #expect(
      PostgresText.translated("SELECT ?1, '?1', \"?2\", ?12 ? 'it''s ?1' ?2")
        == "SELECT $1, '?1', \"?2\", $12 ? 'it''s ?1' $2")
  }

  /// A reservation takes two round trips because of this.
  @Test func writesAreSentWithTheNextReadOrCommit() async throws {
    try await database.add(0)
    let before = database.metrics.count
    try await database.write(at: now) { one in
      try one.run("INSERT INTO note (number) VALUES (?1)", [.integer(1)])
      try one.run("INSERT INTO note (number) VALUES (?1)", [.integer(2)])
      let rows = try one.rows([
        SQLRead("SELECT count(*) FROM note"),
        SQLRead("SELECT number FROM note WHERE number > ?1 ORDER BY number", [.integer(0)]),
      ])
      let numbers = try rows[1].map { row in try row.integer(0) }
      #expect(try rows[0][0].integer(0) == 3)
      #expect(numbers == [1, 2])
      try one.run("DELETE FROM note WHERE number = ?1", [.integer(1)])
    }
    let written = database.metrics.count
    #expect(written.roundTrips - before.roundTrips == 2)
    #expect(written.statements - before.statements == 7, "BEGIN, two to write, two to read, one more, COMMIT")
    #expect(try await database.count() == 2)
    #expect(
      database.metrics.count.roundTrips - written.roundTrips == 1,
      "a read-only transaction does not wait for its COMMIT")
    #expect(try await database.read { _ in 7 } == 7)
    #expect(database.metrics.count.roundTrips - written.roundTrips == 1)
  }

  @Test func changesAreCounted() async throws {
    for number in 0..<3 { try await database.add(number) }
    let counts = try await database.write(at: now) { one in
      [
        try one.changes("UPDATE note SET text = ?1 WHERE number > ?2", [.text("x"), .integer(0)]),
        try one.changes("DELETE FROM note WHERE number = ?1", [.integer(9)]),
        try one.changes("SELECT 1 FROM note WHERE text = ?1", [.text("x")]),
      ]
    }
    #expect(counts == [2, 0, 2])
  }

  @Test(arguments: [
    "UPDATE note SET text = 'x' WHERE number = ?1", "DELETE FROM note WHERE number = ?1",
    "SELECT 1 FROM note WHERE number = ?1",
    "SELECT 1 FROM note WHERE number = ?1 FOR UPDATE",
    "INSERT INTO note (number) SELECT number FROM note WHERE number = ?1",
  ])
  func unmetDemandRollsBackTheTransaction(statement: String) async throws {
    try await database.add(1)
    let before = database.metrics.count.roundTrips
    await #expect(throws: ChangeConflict.self) {
      try await database.write(at: now) { one in
        try one.run("INSERT INTO note (number) VALUES (5)")
        try one.demand("SELECT 1 FROM note WHERE number = ?1", [.integer(1)], orElse: .flowChanged)
        try one.demand(statement, [.integer(7)], orElse: .sessionEnded)
        try one.run("INSERT INTO note (number) VALUES (6)")
      }
    }
    #expect(database.metrics.count.roundTrips - before == 1)
    #expect(try await database.count() == 1)
    do {
      try await database.write(at: now) { one in
        try one.demand(statement, [.integer(7)], orElse: .recordChanged)
        _ = try one.rows("SELECT 1")
      }
    } catch let error as ChangeConflict {
      #expect(error.conflict == .recordChanged)
    }
    try await database.write(at: now) { one in try one.demand(statement, [.integer(1)], orElse: .sessionEnded) }
  }

  @Test func errorInTheBodyRollsItsWritesBack() async throws {
    struct Refused: Error {}
    await #expect(throws: Refused.self) {
      try await database.write(at: now) { one in
        try one.run("INSERT INTO note (number) VALUES (1)")
        _ = try one.rows("SELECT 1")
        throw Refused()
      }
    }
    #expect(try await database.count() == 0)
  }

  /// Otherwise the next user of the connection would be inside the earlier transaction.
  @Test func unsentInvalidStatementIsRolledBack() async throws {
    struct Refused: Error {}
    let single = try bench.database(more: "pool=1")
    await #expect(throws: Refused.self) {
      try await single.write(at: now) { one in
        try one.run("INSERT INTO note (number) VALUES (1)")
        try one.run("INSERT INTO note (number) VALUES (1 / 0)")
        throw Refused()
      }
    }
    #expect(try await single.count() == 0)
  }

  /// Attack: a body that continues after an error must not commit a part of its work.
  @Test func anErrorThatABodySwallowsStillFailsTheTransaction() async throws {
    await #expect(throws: StoreFault.self) {
      try await database.write(at: now) { one in
        try one.run("INSERT INTO note (number) VALUES (1)")
        _ = try? one.rows("SELECT 1 / 0")
        try? one.run("INSERT INTO note (number) VALUES (2)")
      }
    }
    #expect(try await database.count() == 0)
  }

  /// Errors contain no SQL, no values and no names.
  @Test func errorsContainOnlyTheCode() async throws {
    await #expect(throws: StoreFault("PostgreSQL: error 22003")) {
      try await database.write(at: now) { one in
        try one.run("INSERT INTO note (number) VALUES (?1 * 9223372036854775807)", [.integer(1234567)])
      }
    }
    await #expect(throws: StoreFault("PostgreSQL: a table is missing (42P01)")) {
      try await database.read { one in try one.rows("SELECT * FROM secret").count }
    }
    #expect(try await database.count() == 0)
  }

  @Test func readIsASnapshotAndWritesNothing() async throws {
    let other = try bench.database()
    let rounds = Mutex(0)
    let counts = try await database.read { one in
      let first = try one.row("SELECT count(*) FROM note")?.count(0)
      let done = DispatchSemaphore(value: 0)
      let round = counted(rounds)
      Task {
        try? await other.add(round)
        done.signal()
      }
      done.wait()
      return [first, try one.row("SELECT count(*) FROM note")?.count(0)]
    }
    // A body that reads a second time is restarted, in a transaction with one snapshot.
    #expect(counts == [1, 1] && rounds.withLock { $0 } == 2)
    #expect(try await database.count() == 2)
    await #expect(throws: StoreFault.self) {
      try await database.read { one in
        try one.rows([SQLRead("INSERT INTO note (number) VALUES (2) RETURNING number")]).count
      }
    }
  }

  /// A single read needs no BEGIN and COMMIT; all statements that are sent together still see one snapshot and write
  /// nothing.
  @Test func readIsOneRoundTripAndOneSnapshot() async throws {
    // Opens a connection.
    #expect(try await database.count() == 0)
    let before = database.metrics.count
    let found = try await database.read { one in
      try one.rows([
        SQLRead("SELECT current_setting('transaction_isolation')"),
        SQLRead("SELECT current_setting('transaction_read_only')"),
      ]).map { try $0[0].text(0) }
    }
    #expect(found == ["repeatable read", "on"])
    #expect(
      database.metrics.count.statements - before.statements == 2
        && database.metrics.count.roundTrips - before.roundTrips == 1)
    let other = try bench.database()
    async let counts = database.read { one in
      try one.rows([
        SQLRead("SELECT count(*) FROM note"), SQLRead("SELECT pg_sleep(1)::text"), SQLRead("SELECT count(*) FROM note"),
      ])
      .enumerated().map { $0.offset == 1 ? -1 : try $0.element[0].count(0) }
    }
    while try bench.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "0" {
      await Task.yield()
    }
    try await other.add(1)
    #expect(try await counts == [0, -1, 0])
  }

  @Test func readOnlyTransactionCannotWrite() async throws {
    let single = try bench.database(more: "pool=1")
    await #expect(throws: StoreFault("a write in a read-only transaction")) {
      try await single.read { one in try one.run("INSERT INTO note (number) VALUES (1)") }
    }
    try await single.add(2)
    #expect(try await single.count() == 1, "nothing of it fell into the next transaction")
  }

  /// Attack: guesses at one number without end. Each occupies a connection while it waits for the one before it.
  @Test func readsDoNotWaitForRowLocks() async throws {
    try await database.add(1)
    let holds = Mutex(false)
    let mayGo = DispatchSemaphore(value: 0)
    async let holder: Void = database.write(at: now) { one in
      _ = try one.rows("SELECT number FROM note WHERE number = 1 FOR UPDATE")
      holds.withLock { $0 = true }
      mayGo.wait()
    }
    // Releases the waiting transaction even if the test fails.
    defer { mayGo.signal() }
    while !holds.withLock({ $0 }) { await Task.yield() }
    let two = try bench.database(more: "pool=2")
    async let writes: Void = withThrowingTaskGroup(of: Void.self) { [now] group in
      for _ in 0..<6 {
        group.addTask {
          try await two.write(at: now) { one in
            try one.run("UPDATE note SET text = coalesce(text, '') || 'x' WHERE number = 1")
          }
        }
      }
      try await group.waitForAll()
    }
    while try bench.sql(
      "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '\(bench.name)'") == "0"
    {
      try await Task.sleep(for: .milliseconds(2))
    }
    #expect(try await two.count() == 1)
    mayGo.signal()
    try await holder
    try await writes
    #expect(try bench.sql("SELECT text FROM note") == "xxxxxx")
  }

  @Test func commitsAreDurableRegardlessOfServerDefaults() async throws {
    try bench.server.sql(
      "ALTER DATABASE \(bench.name) SET synchronous_commit = off; ALTER DATABASE \(bench.name) SET search_path = public, other"
    )
    let fresh = try bench.database()
    let settings = try await fresh.read { one in
      try one.rows(
        "SELECT current_setting(name) FROM (VALUES ('synchronous_commit'), ('search_path'), ('client_encoding')) AS listed (name)"
      ).map {
        try $0.text(0)
      }
    }
    #expect(settings == ["on", "public, pg_temp", "UTF8"])
  }

  @Test func conflictingTransactionsAreRetried() async throws {
    try await database.add(1)
    try await database.add(2)
    let rounds = 40
    try await withThrowingTaskGroup(of: Void.self) { group in
      for round in 0..<rounds {
        group.addTask { [database, now] in
          let order: [Int64] = round % 2 == 0 ? [1, 2] : [2, 1]
          try await database.write(at: now) { one in
            for number in order {
              _ = try one.rows("SELECT number FROM note WHERE number = ?1 FOR UPDATE", [.integer(number)])
              try one.run("UPDATE note SET text = coalesce(text, '') || 'x' WHERE number = ?1", [.integer(number)])
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try bench.sql("SELECT length(text) FROM note") == "\(rounds)\n\(rounds)")
  }

  @Test func conflictingTransactionIsRetriedAFewTimes() async throws {
    let rounds = Mutex(0)
    let meeting = "DO $$BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END$$"
    try await database.write(at: now) { one in
      try one.run("INSERT INTO note (number) VALUES (1)")
      if counted(rounds) < 4 { try one.run(meeting) }
    }
    #expect(rounds.withLock { $0 } == 4)
    #expect(try await database.count() == 1)
    await #expect(throws: StoreFault("PostgreSQL: kept conflicting with other transactions (40001)")) {
      try await database.write(at: now) { one in try one.run(meeting) }
    }
  }

  @Test func closedDatabaseRefusesNewWork() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<50 { group.addTask { [database] in try? await database.add(number) } }
      try database.close()
      try await group.waitForAll()
    }
    await #expect(throws: StoreFault("the store is closed")) { try await database.count() }
  }

  @Test func parallelCallsShareFewConnections() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<400 { group.addTask { [database] in try await database.add(number) } }
      try await group.waitForAll()
    }
    #expect(try await database.count() == 400)
    #expect(database.metrics.count.connects <= 4)
  }

  @Test func aScriptIsOfManyStatements() async throws {
    try await database.write(at: now) { one in
      try one.script("CREATE TABLE a (id BIGINT); CREATE TABLE b (id BIGINT); INSERT INTO b VALUES (1), (2)")
      #expect(try one.row("SELECT count(*) FROM b")?.integer(0) == 2)
    }
    await #expect(throws: StoreFault.self) {
      try await database.write(at: now) { one in try one.script("CREATE TABLE c (id BIGINT); SELECT 1 / 0") }
    }
    #expect(try bench.sql("SELECT count(*) FROM pg_class WHERE relname IN ('a', 'b', 'c')") == "2")
  }
}
