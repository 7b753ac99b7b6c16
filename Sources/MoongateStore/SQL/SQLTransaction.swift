import MoongateCore

/// One transaction on one connection. What the store says in SQL it says once, for all databases.
///
/// Statements number their arguments `?1`, `?2`, …; each argument may stand more than once. A statement's text is the key under which a connection
/// keeps it prepared, so it holds no values.
protocol SQLTransaction {
  associatedtype Row: SQLRow

  /// What this database spells in its own way.
  var dialect: SQLDialect { get }

  /// Writes. The database may carry it out later, but before the next read: an error of it is thrown by what comes after, or ends the transaction.
  func run(_ sql: String, _ arguments: [SQLValue]) throws
  /// Writes.
  /// - Returns: how many rows it changed.
  func changes(_ sql: String, _ arguments: [SQLValue]) throws -> Int
  /// Reads, in one round trip, each statement seeing all that was written before in this transaction.
  /// - Returns: the rows of each statement.
  func rows(_ reads: [SQLRead]) throws -> [[Row]]
}

/// A statement that reads.
struct SQLRead {
  let sql: String
  let arguments: [SQLValue]

  init(_ sql: String, _ arguments: [SQLValue] = []) {
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

/// Where databases differ in words.
enum SQLDialect: Sendable {
  case sqlite
  case postgres

  /// The smaller of two expressions.
  func least(_ first: String, _ second: String) -> String { self == .sqlite ? "min(\(first), \(second))" : "least(\(first), \(second))" }
  /// The greater of two expressions.
  func greatest(_ first: String, _ second: String) -> String { self == .sqlite ? "max(\(first), \(second))" : "greatest(\(first), \(second))" }
}

/// Stops a transaction because of what someone else did before.
struct ChangeConflict: Error {
  let conflict: ApplyResult.Conflict

  init(_ conflict: ApplyResult.Conflict) { self.conflict = conflict }
}
