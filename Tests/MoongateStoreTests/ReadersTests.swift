import Dispatch
import GRDB
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateStore

/// Reads that run beside a writer.
@Suite struct ReadersTests {
  private let folder: ScratchFolder
  private let writer: DatabaseQueue
  private let readers: Readers

  init() throws {
    folder = try ScratchFolder()
    let path = folder.path("reads.db")
    writer = try DatabaseQueue(path: path, configuration: SQLiteConfiguration.writing)
    try writer.write { db in try db.execute(sql: "CREATE TABLE seen (number INTEGER)") }
    readers = Readers(
      try (0..<2).map { _ in try DatabaseQueue(path: path, configuration: SQLiteConfiguration.reading) })
  }

  private static func count(_ db: Database) throws -> Int {
    try Int.fetchOne(db, sql: "SELECT count(*) FROM seen") ?? -1
  }

  @Test func readSeesOnlyEarlierCommits() throws {
    try writer.writeWithoutTransaction { db in
      try db.execute(sql: "BEGIN IMMEDIATE; INSERT INTO seen VALUES (1)")
      #expect(try readers.read(Self.count) == 0)
      try db.execute(sql: "COMMIT")
      #expect(try readers.read(Self.count) == 1)
    }
  }

  /// Attack: a session ends between two statements of one read.
  @Test func readSeesOneSnapshot() throws {
    try readers.read { db in
      #expect(try Self.count(db) == 0)
      try writer.write { db in try db.execute(sql: "INSERT INTO seen VALUES (1)") }
      #expect(try Self.count(db) == 0)
    }
    #expect(try readers.read(Self.count) == 1)
  }

  @Test func moreThreadsThanConnections() throws {
    let answers = Mutex<[Int]>([])
    DispatchQueue.concurrentPerform(iterations: 64) { _ in
      let answer = (try? readers.read(Self.count)) ?? -2
      answers.withLock { $0.append(answer) }
    }
    #expect(answers.withLock { $0 } == Array(repeating: 0, count: 64))
  }

  @Test func aReadThatFailsLeavesItsConnectionToTheNext() throws {
    for _ in 0..<4 {
      #expect(throws: DatabaseError.self) {
        try readers.read { db in _ = try SQLiteTransaction(db).row("SELECT * FROM nothing") }
      }
    }
    #expect(try readers.read(Self.count) == 0)
  }

  @Test func readersCannotWrite() throws {
    #expect(throws: DatabaseError.self) {
      try readers.read { db in try SQLiteTransaction(db).run("INSERT INTO seen VALUES (1)") }
    }
    #expect(try readers.read(Self.count) == 0)
  }
}
