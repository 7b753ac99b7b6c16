import GRDB
import MoongateCore
import Synchronization

/// Executes writes one after the other on the write connection. Writes that are waiting when a transaction begins share
/// it, each in its own savepoint, because a commit costs about as much as several writes. A write is durable when its
/// caller continues.
///
/// Cancelling the caller's task does not cancel the write: a client that disconnects during an attempt cannot undo it.
final class CommitQueue: Sendable {
  private struct State {
    var waiting: [any Write] = []
    var isAtWork = false
  }

  /// The maximum number of writes that share a transaction, which bounds the wait of each.
  private static let most = 64

  private let writer: any DatabaseWriter
  private let runsInPlace: Bool
  private let state = Mutex(State())
  /// The latest time that is known to be in the database.
  private let recorded: Mutex<Timestamp>

  /// - Parameter runsInPlace: for an in-memory database, where a write is shorter than a thread switch.
  init(writer: any DatabaseWriter, recorded: Timestamp, runsInPlace: Bool = false) {
    self.writer = writer
    self.runsInPlace = runsInPlace
    self.recorded = Mutex(recorded)
  }

  /// The number of writes that wait for the connection.
  var waiting: Int { state.withLock { $0.waiting.count } }

  /// Runs the body inside a transaction. It may run before other writes in the same transaction are committed, so it
  /// must only write to the database.
  /// - Parameter moment: recorded as the store's latest time, unless a later one is recorded.
  /// - Throws: what the body throws, after its writes were rolled back; or why the transaction failed.
  func write<Value: Sendable>(at moment: Timestamp, _ body: @escaping @Sendable (Database) throws -> Value) async throws
    -> Value
  {
    try await withCheckedThrowingContinuation { continuation in
      enqueue(ContinuedWrite(moment: moment, body: body, continuation: continuation))
    }
  }

  private func enqueue(_ write: any Write) {
    let isIdle = state.withLock { state in
      state.waiting.append(write)
      defer { state.isAtWork = true }
      return !state.isAtWork
    }
    guard isIdle else { return }
    if runsInPlace { return writer.unsafeReentrantWrite(work) }
    writer.asyncWriteWithoutTransaction { db in
      ThreadPriority.answering.take()
      self.work(db)
    }
  }

  private func work(_ db: Database) {
    while true {
      let batch = state.withLock { state -> [any Write] in
        let batch = Array(state.waiting.prefix(Self.most))
        state.waiting.removeFirst(batch.count)
        if batch.isEmpty { state.isAtWork = false }
        return batch
      }
      if batch.isEmpty { return }
      do {
        try commit(batch, db)
        for write in batch { write.finish() }
      } catch {
        for write in batch { write.fail(error) }
      }
    }
  }

  private func commit(_ batch: [any Write], _ db: Database) throws {
    let transaction = SQLiteTransaction(db)
    let known = recorded.withLock { $0 }
    let latest = batch.reduce(known) { max($0, $1.moment) }
    try transaction.run("BEGIN IMMEDIATE")
    do {
      for write in batch {
        try transaction.run("SAVEPOINT one")
        do {
          try write.run(db)
        } catch {
          // A full disk and similar errors end the whole transaction (sqlite.org/lang_transaction.html), so all its
          // writes fail.
          guard db.isInsideTransaction else { throw error }
          try transaction.run("ROLLBACK TO one")
          write.refuse(error)
        }
        try transaction.run("RELEASE one")
      }
      if latest > known { try transaction.run("UPDATE meta SET moment = ?1 WHERE moment < ?1", [SQLValue(latest)]) }
      try transaction.run("COMMIT")
    } catch {
      if db.isInsideTransaction { try? transaction.run("ROLLBACK") }
      throw error
    }
    recorded.withLock { $0 = latest }
  }
}

/// A waiting write.
private protocol Write: Sendable {
  var moment: Timestamp { get }
  func run(_ db: Database) throws
  /// The write was rolled back; the transaction continues without it.
  func refuse(_ error: any Error)
  /// The transaction was committed.
  func finish()
  /// The transaction failed.
  func fail(_ error: any Error)
}

private final class ContinuedWrite<Value: Sendable>: Write {
  let moment: Timestamp
  private let body: @Sendable (Database) throws -> Value
  private let continuation: CheckedContinuation<Value, any Error>
  private let result = Mutex<Result<Value, any Error>?>(nil)

  init(
    moment: Timestamp, body: @escaping @Sendable (Database) throws -> Value,
    continuation: CheckedContinuation<Value, any Error>
  ) {
    self.moment = moment
    self.body = body
    self.continuation = continuation
  }

  func run(_ db: Database) throws {
    let value = try body(db)
    result.withLock { $0 = .success(value) }
  }

  func refuse(_ error: any Error) { result.withLock { $0 = .failure(error) } }

  func finish() { continuation.resume(with: result.withLock { $0 } ?? .failure(StoreFault("a write did not run"))) }

  func fail(_ error: any Error) { continuation.resume(throwing: error) }
}
