import Foundation
import GRDB
import MoongateCore

/// Statements are prepared once per connection and used again.
extension Database {
  /// - Returns: how many rows it changed.
  @discardableResult
  func run(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> Int {
    try cachedStatement(sql: sql).execute(arguments: arguments)
    return changesCount
  }

  /// The first row; the statement must not write.
  func row(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> Row? {
    try Row.fetchOne(try cachedStatement(sql: sql), arguments: arguments)
  }

  /// All rows.
  func rows(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> [Row] {
    try Row.fetchAll(try cachedStatement(sql: sql), arguments: arguments)
  }
}

extension Row {
  func moment(_ column: Int) -> Timestamp { Timestamp(milliseconds: self[column]) }

  func optionalMoment(_ column: Int) -> Timestamp? { (self[column] as Int64?).map(Timestamp.init(milliseconds:)) }

  func bytes(_ column: Int) -> [UInt8] { Array(self[column] as Data) }
}

extension StoreFault {
  /// What an error of the database means to whoever asked the store. Holds no SQL and no values.
  init(_ error: any Error) {
    if let fault = error as? Self {
      self = fault
    } else if let error = error as? DatabaseError {
      self.init("SQLite: \(error.words)")
    } else if error is CancellationError {
      self.init("the request was given up")
    } else {
      self.init("a record of the store cannot be read")
    }
  }
}
