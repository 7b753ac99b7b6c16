import MoongateCore

/// A database as the store needs it: transactions that are short, many at once, and durable when they return.
///
/// Errors that leave it are `StoreFault` (it could not be done), or what a body threw.
package protocol SQLDatabase: Sendable {
  /// What a body works with.
  associatedtype Transaction: SQLTransaction

  /// Runs the body in a transaction that reads. It sees one state of the database, and writes nothing.
  /// - Throws: what the body throws, or `StoreFault` for what kept the transaction from being carried out. May run the
  ///   body more than once.
  func read<Value: Sendable>(_ body: @escaping @Sendable (Transaction) throws -> Value) async throws -> Value

  /// Runs the body in a transaction that writes. When it returns, what was written survives the death of the process
  /// and of the database's own.
  ///
  /// The body may run more than once (a transaction that met another one begins anew), and while others' writes of
  /// the same transaction are not committed yet: it must do nothing but read and write the database. The caller's
  /// cancellation does not reach it: a client that hangs up in the middle of a try cannot take it back.
  /// - Parameter moment: recorded as the store's latest, within a second, unless there is a later one.
  /// - Throws: what the body throws, after its writes were taken back; or `StoreFault` for what made the transaction
  ///   fail.
  func write<Value: Sendable>(at moment: Timestamp, _ body: @escaping @Sendable (Transaction) throws -> Value)
    async throws -> Value

  /// Leaves nothing in files that tells of what was deleted; called after a person was deleted.
  func forgetDeleted() async

  /// Turns away what comes from now on, and lets go of the database once what runs has ended.
  func close() throws(StoreFault)
}
