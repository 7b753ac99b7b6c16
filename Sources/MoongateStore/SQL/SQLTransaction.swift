import MoongateCore

/// A transaction on a connection. The store's SQL is written once for all databases.
///
/// Statements number their arguments `?1`, `?2`, …; each may occur more than once. Connections cache prepared
/// statements by their text, so texts contain no values.
package protocol SQLTransaction {
  /// A row that a statement returns.
  associatedtype Row: SQLRow

  /// The SQL dialect of this database.
  var dialect: SQLDialect { get }

  /// Executes a statement that writes or locks rows, without a result. The database may execute it later, but before
  /// the next read. Its error is thrown by a later call, or ends the transaction.
  func run(_ sql: String, _ arguments: [SQLValue]) throws
  /// Executes a statement that must change or find at least one row. Otherwise the transaction has no effect and fails
  /// with the conflict, now or at any time before its end.
  /// - Throws: `ChangeConflict`.
  func demand(_ sql: String, _ arguments: [SQLValue], orElse conflict: ApplyResult.Conflict) throws
  /// Executes a statement that writes.
  /// - Returns: the number of changed rows; for a statement that reads, the number of rows found.
  func changes(_ sql: String, _ arguments: [SQLValue]) throws -> Int
  /// Executes reads in one round trip. Each statement sees everything written before in this transaction. A writing
  /// statement with `RETURNING` counts as a read.
  /// - Returns: the rows of each statement.
  func rows(_ reads: [SQLRead]) throws -> [[Row]]
  /// Executes reads at the end of a writing transaction, together with COMMIT, so that they cost no round trip. Nothing
  /// else may be read afterwards.
  /// - Parameter use: called with the rows of each statement, now or once the transaction is committed. Not called if
  ///   the transaction has written nothing.
  func rows(atEnd reads: [SQLRead], _ use: @escaping ([[Row]]) -> Void) throws
  /// Notifies the pollers of session changes on all nodes once the transaction is committed. They also poll
  /// periodically, so a database without notifications does nothing.
  func wake() throws
  /// Removes the time limits of statements, and of pauses between them, from now on. For operators' commands; gateways
  /// must finish in seconds.
  func allowLongRun() throws
}

/// A statement that reads.
package struct SQLRead: Sendable {
  package let sql: String
  package let arguments: [SQLValue]

  package init(_ sql: String, _ arguments: [SQLValue] = []) {
    self.sql = sql
    self.arguments = arguments
  }
}

extension SQLTransaction {
  func run(_ sql: String) throws { try run(sql, []) }

  func rows(_ sql: String, _ arguments: [SQLValue] = []) throws -> [Row] { try rows([SQLRead(sql, arguments)])[0] }

  /// The first row.
  func row(_ sql: String, _ arguments: [SQLValue] = []) throws -> Row? { try rows(sql, arguments).first }
}

extension SQLTransaction {
  /// Checks immediately.
  package func demand(_ sql: String, _ arguments: [SQLValue], orElse conflict: ApplyResult.Conflict) throws {
    if try changes(sql, arguments) == 0 { throw ChangeConflict(conflict) }
  }

  /// Executes the reads immediately.
  package func rows(atEnd reads: [SQLRead], _ use: @escaping ([[Row]]) -> Void) throws { use(try rows(reads)) }

  /// Does nothing.
  package func wake() throws {}

  /// Does nothing, because there are no time limits.
  package func allowLongRun() throws {}
}

/// The SQL dialects of the databases.
package enum SQLDialect: Sendable {
  case sqlite
  case postgres

  /// Chooses between two texts of a statement that the dialects do not share.
  func words(sqlite: String, postgres: String) -> String {
    switch self {
    case .sqlite: sqlite
    case .postgres: postgres
    }
  }
}

/// Aborts a transaction because of an earlier change by someone else. The transaction has no effect.
struct ChangeConflict: Error {
  let conflict: ApplyResult.Conflict

  init(_ conflict: ApplyResult.Conflict) { self.conflict = conflict }
}
