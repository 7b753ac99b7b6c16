import GRDB
import MoongateCore
import Synchronization

/// The read connections of a file.
///
/// A read runs on the calling thread. It reads a few rows, mostly from memory, and never waits for a writer (WAL), so
/// switching threads would cost several times as much as the read.
final class Readers: Sendable {
  private let all: [DatabaseQueue]
  private let free: Mutex<[DatabaseQueue]>

  /// - Parameter connections: at least one. With one for each calling thread, no thread waits for another.
  init(_ connections: [DatabaseQueue]) {
    all = connections
    free = Mutex(connections)
  }

  /// Runs the body in a read transaction: it sees everything that was committed before, and nothing that is committed
  /// meanwhile.
  /// - Throws: what the body throws, or why the transaction could not begin.
  func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    let taken = free.withLock { $0.popLast() }
    defer { if let taken { free.withLock { $0.append(taken) } } }
    return try (taken ?? all[0]).writeWithoutTransaction { db in
      let transaction = SQLiteTransaction(db)
      try transaction.run("BEGIN")
      defer { do { try transaction.run("COMMIT") } catch { try? transaction.run("ROLLBACK") } }
      return try body(db)
    }
  }

  /// Closes the connections. None may be in use.
  func close() throws { for connection in all { try connection.close() } }
}
