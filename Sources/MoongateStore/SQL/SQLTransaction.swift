import MoongateCore

/// One transaction on one connection. What the store says in SQL it says once, for all databases.
///
/// Statements number their arguments `?1`, `?2`, …; each argument may stand more than once. A statement's text is the
/// key under which a connection keeps it prepared, so it holds no values.
package protocol SQLTransaction {
  /// What a statement reads.
  associatedtype Row: SQLRow

  /// What this database spells in its own way.
  var dialect: SQLDialect { get }

  /// Writes, or locks rows: what it finds is not looked at. The database may carry it out later, but before the next
  /// read: an error of it is thrown by what comes after, or ends the transaction.
  func run(_ sql: String, _ arguments: [SQLValue]) throws
  /// Writes, or looks whether there is a row. Where no row was changed or found, the transaction does not happen and
  /// fails with the conflict: at once, or at any time before its end.
  /// - Throws: `ChangeConflict`.
  func demand(_ sql: String, _ arguments: [SQLValue], orElse conflict: ApplyResult.Conflict) throws
  /// Writes.
  /// - Returns: how many rows it changed; of a statement that reads, how many it found.
  func changes(_ sql: String, _ arguments: [SQLValue]) throws -> Int
  /// Reads, in one round trip, each statement seeing all that was written before in this transaction. A statement that
  /// writes and says what (`RETURNING`) reads too.
  /// - Returns: the rows of each statement.
  func rows(_ reads: [SQLRead]) throws -> [[Row]]
  /// Tells those who wait for changes of sessions, on whatever node, that there are some; once the transaction is
  /// committed. They look now and then by themselves: a database that cannot call them does nothing.
  func wake() throws
  /// From now on statements may take as long as they do, and so may pauses between them: what gateways do must be done
  /// in seconds, what an operator waits for need not.
  func takeTime() throws
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
  /// Asks at once.
  package func demand(_ sql: String, _ arguments: [SQLValue], orElse conflict: ApplyResult.Conflict) throws {
    if try changes(sql, arguments) == 0 { throw ChangeConflict(conflict) }
  }

  /// Calls nobody.
  package func wake() throws {}

  /// Nothing hurries it.
  package func takeTime() throws {}
}

/// Where databases differ in words.
package enum SQLDialect: Sendable {
  case sqlite
  case postgres

  /// A statement that they do not both understand: the two side by side.
  func words(sqlite: String, postgres: String) -> String { self == .sqlite ? sqlite : postgres }
}

/// Stops a transaction because of what someone else did before. It does not happen.
struct ChangeConflict: Error {
  let conflict: ApplyResult.Conflict

  init(_ conflict: ApplyResult.Conflict) { self.conflict = conflict }
}
