import Dispatch
import Foundation
import GRDB
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateStore

/// Writes that share a transaction: each succeeds or fails on its own, and all become durable together.
@Suite struct CommitQueueTests {
  private struct Refused: Error, Equatable {}

  private let database: DatabaseQueue
  private let commits: CommitQueue
  private let now = ManualClock.start

  init() throws {
    database = try DatabaseQueue(configuration: SQLiteConfiguration.base)
    try database.writeWithoutTransaction { db in
      try Schema.current.migrate(db, path: ":memory:")
      try db.execute(sql: "CREATE TABLE note (text TEXT NOT NULL UNIQUE); INSERT INTO meta VALUES (1, x'00', 0)")
    }
    commits = CommitQueue(writer: database, recorded: Timestamp(milliseconds: 0))
  }

  private func write(_ text: String, thenThrow: Bool = false) async throws {
    try await commits.write(at: now) { db in
      try db.execute(sql: "INSERT INTO note VALUES (?)", arguments: [text])
      if thenThrow { throw Refused() }
    }
  }

  private func notes() async throws -> [String] {
    try await database.read { db in try String.fetchAll(db, sql: "SELECT substr(text, 1, 8) FROM note ORDER BY 1") }
  }

  /// Runs the writes in one transaction: they queue up while the connection is blocked.
  private func together(_ writes: [@Sendable () async throws -> Void]) async -> [Result<Void, any Error>] {
    let gate = DispatchSemaphore(value: 0)
    database.asyncWriteWithoutTransaction { _ in gate.wait() }
    return await withTaskGroup(of: (Int, Result<Void, any Error>).self) { group in
      for (index, write) in writes.enumerated() {
        group.addTask {
          do { return (index, .success(try await write())) } catch { return (index, .failure(error)) }
        }
      }
      while commits.waiting < writes.count { await Task.yield() }
      gate.signal()
      var results: [Int: Result<Void, any Error>] = [:]
      for await (index, result) in group { results[index] = result }
      return writes.indices.compactMap { results[$0] }
    }
  }

  @Test func failedTransactionRollsBackOnlyItsOwnWrites() async throws {
    let results = await together([
      { try await write("one") }, { try await write("two", thenThrow: true) }, { try await write("three") },
      { try await write("three") },
    ])
    #expect(throws: Never.self) { try results[0].get() }
    #expect(throws: Refused()) { try results[1].get() }
    #expect(try await notes() == ["one", "three"])
    #expect(
      [results[2], results[3]].count { (try? $0.get()) == nil } == 1, "of two equal ones the second violates the table")
  }

  @Test func aFullDiskFailsTheTransactionAndIsRecoveredFrom() async throws {
    try await write("before")
    try await database.writeWithoutTransaction { db in
      let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
      try db.execute(sql: "PRAGMA max_page_count = \(pages)")
    }
    let long = String(repeating: "x", count: 100_000)
    for result in await together([{ try await write("lucky") }, { try await write(long) }]) {
      if case .failure(let error) = result { #expect((error as? DatabaseError)?.resultCode == .SQLITE_FULL) }
    }
    let kept = try await notes()
    #expect(kept == ["before"] || kept == ["before", "lucky"])
    #expect(try await database.read { db in try String.fetchOne(db, sql: "PRAGMA integrity_check") } == "ok")
    try await database.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA max_page_count = 1000000") }
    try await write(long)
    #expect(try await notes().last == "xxxxxxxx")
  }

  /// Attack: a client disconnects between a wrong attempt and its settlement to get the attempt back.
  @Test func cancelledCallerRollsNothingBack() async throws {
    let gate = DispatchSemaphore(value: 0)
    database.asyncWriteWithoutTransaction { _ in gate.wait() }
    let caller = Task { try await write("charged") }
    while commits.waiting < 1 { await Task.yield() }
    caller.cancel()
    gate.signal()
    try await caller.value
    #expect(try await notes() == ["charged"])
  }

  @Test func theLatestMomentIsRecordedWithTheWrite() async throws {
    try await commits.write(at: now) { _ in }
    try await commits.write(at: now - .seconds(5)) { _ in }
    #expect(
      try await database.read { db in try Int64.fetchOne(db, sql: "SELECT moment FROM meta") } == now.milliseconds)
  }
}
