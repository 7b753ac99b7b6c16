import Foundation
import MoongateCore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateStore

/// What a server can do to its clients: hang up, stay silent, die, come back.
@Suite(.serialized, .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) struct PostgresOutageTests {
  private let now = ManualClock.start

  /// Waits until the condition holds; fails after the limit.
  private func eventually(_ what: Comment, within limit: Duration = .seconds(20), _ condition: () async throws -> Bool)
    async throws
  {
    let end = ContinuousClock.now + limit
    while try await !condition() {
      try #require(ContinuousClock.now < end, what)
      try await Task.sleep(for: .milliseconds(2))
    }
  }

  private func hangUp(of bench: PostgresBench) throws {
    try bench.server.sql(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '\(bench.name)'")
  }

  @Test func closedIdleConnectionsAreReplaced() async throws {
    let bench = try PostgresBench()
    let database = try bench.database()
    for round in 1...5 {
      try await database.add(round)
      try hangUp(of: bench)
      #expect(try await database.count() == round)
    }
  }

  /// What was not committed is retried on another connection, unnoticed by the caller.
  @Test func aConnectionThatIsClosedInTheMiddleIsReplaced() async throws {
    let bench = try PostgresBench()
    let database = try bench.database()
    let rounds = Mutex(0)
    try await database.write(at: now) { one in
      try one.run("INSERT INTO note (number) VALUES (1)")
      _ = try one.rows("SELECT 1")
      if counted(rounds) == 1 { try hangUp(of: bench) }
      _ = try one.rows("SELECT 2")
    }
    #expect(rounds.withLock { $0 } == 2)
    #expect(try await database.count() == 1)
    await #expect(throws: StoreFault.self) {
      try await database.write(at: now) { one in
        _ = try one.rows("SELECT 1")
        try hangUp(of: bench)
        _ = try one.rows("SELECT 2")
      }
    }
  }

  /// No false success, and nothing executed twice.
  @Test func killedBackendsNeitherLoseNorRepeatWrites() async throws {
    let bench = try PostgresBench(nil, "CREATE TABLE note (number BIGINT)")
    let database = try bench.database()
    let isOver = Mutex(false)
    let killer = Task.detached {
      while !isOver.withLock({ $0 }) {
        try hangUp(of: bench)
        try bench.server.sql("SELECT pg_sleep(0.03)")
      }
    }
    let results = await withTaskGroup(of: (Int, Bool?).self) { group in
      for number in 0..<300 {
        group.addTask {
          do {
            try await database.write(at: now) { one in
              _ = try one.rows("SELECT count(*) FROM note WHERE number = ?1", [SQLValue(number)])
              _ = try one.rows("SELECT pg_sleep(0.01)::text")
              try one.run("INSERT INTO note VALUES (?1)", [SQLValue(number)])
            }
            return (number, true)
          } catch {
            return (number, "\(error)".contains("not known") ? nil : false)
          }
        }
      }
      return await group.reduce(into: [Int: Bool?]()) { $0[$1.0] = $1.1 }
    }
    isOver.withLock { $0 = true }
    try await killer.value
    let found = try bench.sql("SELECT number, count(*) FROM note GROUP BY 1").split(separator: "\n")
    let counts = Dictionary(
      uniqueKeysWithValues: found.map { line in
        (Int(line.split(separator: "|")[0]) ?? -1, line.split(separator: "|")[1])
      })
    #expect(counts.values.allSatisfy { $0 == "1" })
    for (number, result) in results {
      if let result { #expect(result == (counts[number] != nil), "\(number)") }
    }
    #expect(results.values.count { $0 == .some(true) } > 0)
  }

  @Test func aServerThatDiesIsAFaultAtOnceAndIsFoundAgainByItself() async throws {
    let server = try PostgresServer()
    let bench = try PostgresBench(server)
    let database = try bench.database(.serving)
    var acknowledged: [Int] = []
    for number in 0..<200 {
      if number % 60 == 30 { try server.kill() }
      let began = ContinuousClock.now
      do {
        try await database.add(number)
        acknowledged.append(number)
      } catch {
        #expect(ContinuousClock.now - began < .seconds(3))
      }
      if number % 60 == 50 {
        #expect(database.isOut)
        // Nobody waits for a server that is known to be down.
        let began = ContinuousClock.now
        for _ in 0..<100 { await #expect(throws: StoreFault.self) { try await database.count() } }
        #expect(ContinuousClock.now - began < .seconds(1))
        try server.start()
        let since = ContinuousClock.now
        try await eventually("it is found again") { (try? await database.count()) != nil }
        #expect(ContinuousClock.now - since < .seconds(3))
      }
    }
    let kept = Set(try bench.sql("SELECT number FROM note").split(separator: "\n").compactMap { Int($0) })
    #expect(acknowledged.allSatisfy(kept.contains) && acknowledged.count > 100)
    server.end()
  }

  /// Like a network that drops packets: connections stay open, and nothing arrives.
  @Test func silentServerIsAFaultWithinSeconds() async throws {
    let server = try PostgresServer()
    let bench = try PostgresBench(server)
    let database = try bench.database(.serving)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<20 { group.addTask { try await database.add(number) } }
      try await group.waitForAll()
    }
    try server.suspend()
    let began = ContinuousClock.now
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<100 {
        group.addTask { await #expect(throws: StoreFault.self) { try await database.add(number) } }
      }
    }
    #expect(ContinuousClock.now - began < .seconds(4))
    let then = ContinuousClock.now
    for _ in 0..<100 { await #expect(throws: StoreFault.self) { try await database.count() } }
    #expect(ContinuousClock.now - then < .seconds(1), "during a known outage, calls fail at once")
    try server.resume()
    try await eventually("it is found again") { (try? await database.count()) != nil }
    server.end()
  }

  /// After a failover, connections to the former server fall silent one by one, beside good ones to the new server.
  @Test func earlierSilenceIsNotAnOutage() throws {
    let address = try PostgresAddress("postgres://a@127.0.0.1:1/x")
    let pool = PostgresPool(address, timing: .serving, metrics: PostgresMetrics(), jitter: { 0.5 })
    let (first, second) = (PostgresWorker(pool: pool), PostgresWorker(pool: pool))
    let (generation, sameGeneration) = (pool.connected(first), pool.connected(second))
    #expect(pool.lost(first, connectionGeneration: generation, silent: true, after: nil) && pool.isOut)
    let next = pool.connected(first)
    #expect(!pool.isOut)
    #expect(pool.lost(second, connectionGeneration: sameGeneration, silent: true, after: nil), "it connects anew")
    #expect(!pool.isOut)
    #expect(pool.lost(first, connectionGeneration: next, silent: true, after: nil) && pool.isOut)
  }

  @Test func aLockThatIsHeldForLongIsAFaultAndNoOutage() async throws {
    let bench = try PostgresBench()
    var short = PostgresTiming.serving
    short.lock = .milliseconds(200)
    let database = try bench.database(short)
    try await database.add(1)
    let holder = try bench.database()
    try await holder.write(at: now) { one in
      _ = try one.rows("SELECT number FROM note FOR UPDATE")
      let done = DispatchSemaphore(value: 0)
      Task {
        await #expect(throws: StoreFault("busy: PostgreSQL did not grant a lock in time")) {
          try await database.write(at: now) { other in _ = try other.rows("SELECT number FROM note FOR UPDATE") }
        }
        let count = try? await database.count()
        #expect(count == 1)
        done.signal()
      }
      done.wait()
    }
  }

  @Test func waitForAConnectionTimesOut() async throws {
    let bench = try PostgresBench()
    var short = PostgresTiming.patient
    short.queue = .milliseconds(150)
    let database = try bench.database(short, more: "pool=1")
    try await eventually("the only connection is made") { (try? await database.add(1)) != nil }
    let before = database.metrics.count.busy
    let (begun, announce) = AsyncStream.makeStream(of: Void.self)
    let gate = DispatchSemaphore(value: 0)
    async let held: Void = database.write(at: now) { _ in
      announce.yield()
      gate.wait()
    }
    for await _ in begun { break }
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<(PostgresPool.mostWaiting + 50) {
        group.addTask {
          await #expect(throws: StoreFault("busy: no connection to PostgreSQL was free in time")) {
            try await database.count()
          }
        }
      }
    }
    gate.signal()
    try await held
    #expect(try await database.count() == 1)
    #expect(database.metrics.count.busy - before == PostgresPool.mostWaiting + 50)
  }

  /// A server that refuses more connections: the existing ones are used.
  @Test func workContinuesWithFewerConnections() async throws {
    let bench = try PostgresBench()
    try bench.server.sql("ALTER ROLE moongate CONNECTION LIMIT -1; ALTER DATABASE \(bench.name) CONNECTION LIMIT 2")
    let database = try bench.database(more: "pool=8")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<300 { group.addTask { try await database.add(number) } }
      try await group.waitForAll()
    }
    #expect(try await database.count() == 300)
  }

  @Test func connectionRefusedIsReported() async throws {
    let database = PostgresDatabase(
      try PostgresAddress("postgres://a@127.0.0.1:1/x"), timing: .serving, recordsMoments: false)
    for _ in 0..<10 {
      await #expect(throws: StoreFault("PostgreSQL is not available: nothing listens at its address")) {
        try await database.count()
      }
    }
    #expect(database.metrics.count.refusedConnects < 10)
    try database.close()
  }

  /// Of several servers, the writable one is found.
  @Test func writableServerIsFoundAmongSeveral() async throws {
    let bench = try PostgresBench()
    let url = "postgres://moongate:a%20secret@127.0.0.1:1,127.0.0.1:\(bench.server.port)/\(bench.name)"
    let database = PostgresDatabase(try PostgresAddress(url), timing: .patient, recordsMoments: false)
    #expect(try await database.count() == 0)
  }

  /// Regression: OpenSSL cleans itself up at exit unless told not to, and a gateway that exited while connecting
  /// crashed.
  @Test func exitWhileConnectingDoesNotCrash() throws {
    let server = try #require(PostgresServer.shared)
    for _ in 0..<10 {
      let writer = Process()
      writer.executableURL = storeWriter
      // A refused client has been through all of OpenSSL's random number code.
      writer.arguments = [server.url("postgres", password: "guess"), "leave"]
      writer.environment = ["SWIFT_BACKTRACE": "enable=no"]
      try writer.run()
      writer.waitUntilExit()
      #expect(writer.terminationReason == .exit && writer.terminationStatus == 0)
    }
  }
}
