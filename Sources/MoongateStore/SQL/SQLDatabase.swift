import MoongateCore

/// A database as the store uses it: many short concurrent transactions that are durable when they return.
///
/// It throws `StoreFault` for failures, and rethrows errors of a body.
package protocol SQLDatabase: Sendable {
  /// The transaction that a body uses.
  associatedtype Transaction: SQLTransaction

  /// Runs the body in a read transaction with a consistent snapshot.
  /// - Throws: what the body throws, or `StoreFault` if the transaction failed. May run the body more than once.
  func read<Value: Sendable>(_ body: @escaping @Sendable (Transaction) throws -> Value) async throws -> Value

  /// Runs the body in a write transaction. When it returns, the writes survive a crash of the process and of the
  /// database server.
  ///
  /// The body may run more than once (a transaction that conflicts with another one is retried), and before other
  /// writes in the same transaction are committed. It must only read and write the database. Cancelling the caller's
  /// task does not cancel the transaction: a client that disconnects during an attempt cannot undo it.
  /// - Parameter moment: recorded as the store's latest time, within a second, unless a later one is recorded.
  /// - Throws: what the body throws, after its writes were rolled back; or `StoreFault` if the transaction failed.
  func write<Value: Sendable>(at moment: Timestamp, _ body: @escaping @Sendable (Transaction) throws -> Value)
    async throws -> Value

  /// Removes traces of deleted data from the database's files. Called after a user was deleted.
  func forgetDeleted() async

  /// Refuses new work, and closes the database once running work has ended.
  func close() throws(StoreFault)
}
