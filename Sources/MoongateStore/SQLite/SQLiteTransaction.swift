import GRDB
import GRDBSQLite
import MoongateCore

/// A SQLite transaction. Statements are prepared once per connection, and executed immediately.
///
/// GRDB manages connections and prepared statements. Execution uses SQLite's C API directly: a sign-in executes about
/// fifty statements, and converting values twice would cost as much as the lookups.
package struct SQLiteTransaction: SQLTransaction {
  private let db: Database

  init(_ db: Database) { self.db = db }

  package var dialect: SQLDialect { .sqlite }

  package func run(_ sql: String, _ arguments: [SQLValue]) throws { _ = try rows(sql, arguments) }

  package func changes(_ sql: String, _ arguments: [SQLValue]) throws -> Int {
    let statement = try db.cachedStatement(sql: sql).sqliteStatement
    let found = try rows(statement, arguments)
    return sqlite3_column_count(statement) == 0 ? Int(sqlite3_changes(sqlite3_db_handle(statement))) : found.count
  }

  package func rows(_ reads: [SQLRead]) throws -> [[SQLiteRow]] { try reads.map { try rows($0.sql, $0.arguments) } }

  func rows(_ sql: String, _ arguments: [SQLValue] = []) throws -> [SQLiteRow] {
    try rows(try db.cachedStatement(sql: sql).sqliteStatement, arguments)
  }

  private func rows(_ statement: SQLiteStatement, _ arguments: [SQLValue]) throws -> [SQLiteRow] {
    guard Int(sqlite3_bind_parameter_count(statement)) == arguments.count else {
      throw DatabaseError(resultCode: .SQLITE_MISUSE)
    }
    for (index, argument) in arguments.enumerated() { try bind(argument, to: statement, Int32(index + 1)) }
    defer { sqlite3_reset(statement) }
    var rows: [SQLiteRow] = []
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW: rows.append(SQLiteRow(statement))
      case SQLITE_DONE: return rows
      case let code: throw DatabaseError(resultCode: ResultCode(rawValue: code))
      }
    }
  }

  private func bind(_ value: SQLValue, to statement: SQLiteStatement, _ index: Int32) throws {
    let code =
      switch value {
      case .null: sqlite3_bind_null(statement, index)
      case .integer(let number): sqlite3_bind_int64(statement, index, number)
      case .text(let text): Self.bindText(statement, index, text.storable)
      case .bytes(let bytes): bytes.withUnsafeBytes { Self.bindBytes(statement, index, $0) }
      }
    if code != SQLITE_OK { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
  }

  /// SQLite must copy the argument, because it reads it after the call.
  private static var copied: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

  private static func bindText(_ statement: SQLiteStatement, _ index: Int32, _ text: String) -> Int32 {
    var text = text
    return text.withUTF8 { text in
      // Without an address, the value would be NULL.
      guard let start = text.baseAddress, !text.isEmpty else {
        return sqlite3_bind_text(statement, index, "", 0, copied)
      }
      return start.withMemoryRebound(to: CChar.self, capacity: text.count) {
        sqlite3_bind_text(statement, index, $0, Int32(clamping: text.count), copied)
      }
    }
  }

  private static func bindBytes(_ statement: SQLiteStatement, _ index: Int32, _ bytes: UnsafeRawBufferPointer) -> Int32
  {
    guard let start = bytes.baseAddress, !bytes.isEmpty else { return sqlite3_bind_zeroblob(statement, index, 0) }
    return sqlite3_bind_blob(statement, index, start, Int32(clamping: bytes.count), copied)
  }
}

/// A row of a SQLite result.
package struct SQLiteRow: SQLRow {
  private let values: [SQLValue]

  init(_ statement: SQLiteStatement) {
    values = (0..<sqlite3_column_count(statement)).map { column in
      switch sqlite3_column_type(statement, column) {
      case SQLITE_NULL: .null
      case SQLITE_INTEGER: .integer(sqlite3_column_int64(statement, column))
      case SQLITE_BLOB:
        .bytes(
          [UInt8](
            UnsafeRawBufferPointer(
              start: sqlite3_column_blob(statement, column), count: Int(sqlite3_column_bytes(statement, column)))))
      default:
        // None of our tables has floating-point numbers. As text, such a value is refused where an integer is expected.
        .text(
          String(
            decoding: UnsafeBufferPointer(
              start: sqlite3_column_text(statement, column), count: Int(sqlite3_column_bytes(statement, column))),
            as: UTF8.self))
      }
    }
  }

  package func optionalInteger(_ column: Int) throws -> Int64? {
    switch values[column] {
    case .integer(let number): return number
    case .null: return nil
    default: throw damaged("number")
    }
  }

  package func optionalText(_ column: Int) throws -> String? {
    switch values[column] {
    case .text(let text): return text
    case .null: return nil
    default: throw damaged("text")
    }
  }

  package func optionalBytes(_ column: Int) throws -> [UInt8]? {
    switch values[column] {
    case .bytes(let bytes): return bytes
    case .null: return nil
    default: throw damaged("value")
    }
  }
}
