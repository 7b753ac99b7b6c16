import GRDB
import MoongateCore
import Synchronization

/// The connections that read a file.
///
/// A read runs where it is asked for. It finds a few rows, mostly in memory, and no writer keeps it waiting (WAL): the
/// two changes of threads that would spare its caller the wait cost several times as much as the read.
final class Readers: Sendable {
  private let all: [DatabaseQueue]
  private let free: Mutex<[DatabaseQueue]>

  /// - Parameter connections: at least one. With one for each thread that asks, none waits for another.
  init(_ connections: [DatabaseQueue]) {
    all = connections
    free = Mutex(connections)
  }

  /// Runs the body in a transaction of its own: it sees everything that was committed before, and nothing that comes
  /// meanwhile.
  /// - Throws: what the body throws, or what kept its transaction from beginning.
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

  /// Closes the connections. None may be at work.
  func close() throws { for connection in all { try connection.close() } }
}
