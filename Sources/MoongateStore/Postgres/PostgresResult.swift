import CPostgres
import MoongateCore

/// The result of one statement.
final class PostgresResult {
  fileprivate let handle: OpaquePointer

  init(_ handle: OpaquePointer) { self.handle = handle }

  deinit { PQclear(handle) }

  var status: ExecStatusType { PQresultStatus(handle) }

  /// The number of changed rows; 0 for statements that change none.
  var changes: Int { Int(String(cString: PQcmdTuples(handle))) ?? 0 }

  /// The executed command: `COMMIT`, or `ROLLBACK` if the transaction had failed.
  var command: String { String(cString: PQcmdStatus(handle)) }

  var rows: [PostgresRow] { (0..<PQntuples(handle)).map { PostgresRow(result: self, index: $0) } }

  /// nil if the error is not the server's.
  var error: PostgresError? {
    field("C").flatMap { SQLState($0) }.map { .refused($0, constraint: field("n")) }
  }

  /// Whether the error ends the connection.
  var isFatal: Bool { ["FATAL", "PANIC"].contains(field("V")) }

  /// PostgreSQL documentation, "Error and Notice Message Fields".
  private func field(_ code: Unicode.Scalar) -> String? {
    PQresultErrorField(handle, Int32(code.value)).map { String(cString: $0) }
  }
}

/// A row in PostgreSQL's binary format.
package struct PostgresRow: SQLRow {
  fileprivate let result: PostgresResult
  fileprivate let index: Int32

  /// Type OIDs (pg_type.dat).
  private enum Kind {
    static let integers: [UInt32: Int32] = [20: 8, 23: 4, 21: 2, 16: 1]
    static let texts: Set<UInt32> = [25, 1043, 1042, 19, 705]
    static let bytes: UInt32 = 17
  }

  package func optionalInteger(_ column: Int) throws -> Int64? {
    guard let bytes = try present(column) else { return nil }
    guard let length = Kind.integers[kind(column)], bytes.count == Int(length) else { throw damaged("row") }
    let isNegative = length > 1 && bytes[0] >= 0x80
    return bytes.reduce(isNegative ? -1 : 0) { $0 << 8 | Int64($1) }
  }

  package func optionalText(_ column: Int) throws -> String? {
    guard let bytes = try present(column) else { return nil }
    guard Kind.texts.contains(kind(column)) else { throw damaged("row") }
    return String(decoding: bytes, as: UTF8.self)
  }

  package func optionalBytes(_ column: Int) throws -> [UInt8]? {
    guard let bytes = try present(column) else { return nil }
    guard kind(column) == Kind.bytes else { throw damaged("row") }
    return Array(bytes)
  }

  private func kind(_ column: Int) -> UInt32 { PQftype(result.handle, Int32(column)) }

  private func present(_ column: Int) throws -> UnsafeRawBufferPointer? {
    guard column < PQnfields(result.handle), PQfformat(result.handle, Int32(column)) == 1 else { throw damaged("row") }
    guard PQgetisnull(result.handle, index, Int32(column)) == 0,
      let value = PQgetvalue(result.handle, index, Int32(column))
    else { return nil }
    return UnsafeRawBufferPointer(start: value, count: Int(PQgetlength(result.handle, index, Int32(column))))
  }
}
