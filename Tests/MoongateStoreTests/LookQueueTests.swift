import Dispatch
import GRDB
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateStore

/// Reads that share transactions.
@Suite struct LookQueueTests {
  /// A read that joined a transaction which had begun before would miss what was acknowledged to its caller meanwhile.
  @Test func aReadThatWaitedSeesWhatWasCommittedBeforeIt() async throws {
    let folder = try ScratchFolder()
    let pool = try DatabasePool(path: folder.path("looks.db"), configuration: SQLiteConfiguration.base)
    try await pool.write { db in try db.execute(sql: "CREATE TABLE seen (number INTEGER)") }
    let looks = LookQueue(reader: pool)
    let width = SQLiteConfiguration.base.maximumReaderCount
    let gate = DispatchSemaphore(value: 0)
    let (entered, announce) = AsyncStream.makeStream(of: Void.self)
    let count: @Sendable (Database) throws -> Int = { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM seen") ?? -1 }
    try await withThrowingTaskGroup(of: Int.self) { group in
      // All readers are inside of a transaction that has begun.
      for _ in 0..<width {
        group.addTask {
          try await looks.read { db in
            let before = try count(db)
            announce.yield()
            gate.wait()
            return before
          }
        }
      }
      var inside = 0
      for await _ in entered {
        inside += 1
        if inside == width { break }
      }
      try await pool.write { db in try db.execute(sql: "INSERT INTO seen VALUES (1)") }
      for _ in 0..<20 { group.addTask { try await looks.read(count) } }
      // Until they wait in the queue.
      while looks.waiting < 20 { await Task.yield() }
      for _ in 0..<width { gate.signal() }
      var answers: [Int] = []
      for try await answer in group { answers.append(answer) }
      #expect(answers.sorted() == Array(repeating: 0, count: width) + Array(repeating: 1, count: 20))
    }
  }
}
