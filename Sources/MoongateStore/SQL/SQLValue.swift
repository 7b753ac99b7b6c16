import MoongateCore

/// A value in a statement's arguments or results.
package enum SQLValue: Sendable, Equatable {
  case null
  /// All numbers in the schema have 64 bits. Times are milliseconds; Booleans are 0 and 1.
  case integer(Int64)
  case text(String)
  case bytes([UInt8])
}

extension SQLValue {
  init(_ moment: Timestamp?) { self = moment.map { .integer($0.milliseconds) } ?? .null }
  init(_ number: Int) { self = .integer(Int64(number)) }
  init(_ text: String?) { self = text.map(Self.text) ?? .null }
  init(_ bytes: [UInt8]?) { self = bytes.map(Self.bytes) ?? .null }
  init(_ isTrue: Bool) { self = .integer(isTrue ? 1 : 0) }
}

extension String {
  /// The text in storable form. PostgreSQL does not allow NUL in texts and refuses the whole statement, so a NUL in a
  /// name would cause a 503. All stores replace it, so that a store can be moved.
  var storable: String { utf8.contains(0) ? replacing("\0", with: "\u{fffd}") : self }
}

/// A row of a result. Columns are numbered from 0.
package protocol SQLRow {
  /// nil if the column is null.
  /// - Throws: `StoreFault` if it is not a number.
  func optionalInteger(_ column: Int) throws -> Int64?
  /// nil if the column is null.
  /// - Throws: `StoreFault` if it is not text.
  func optionalText(_ column: Int) throws -> String?
  /// nil if the column is null.
  /// - Throws: `StoreFault` if it is not bytes.
  func optionalBytes(_ column: Int) throws -> [UInt8]?
}

extension SQLRow {
  func integer(_ column: Int) throws -> Int64 { try present(optionalInteger(column)) }
  func count(_ column: Int) throws -> Int { Int(try integer(column)) }
  func isTrue(_ column: Int) throws -> Bool { try integer(column) != 0 }
  func text(_ column: Int) throws -> String { try present(optionalText(column)) }
  func bytes(_ column: Int) throws -> [UInt8] { try present(optionalBytes(column)) }
  func moment(_ column: Int) throws -> Timestamp { Timestamp(milliseconds: try integer(column)) }
  func optionalMoment(_ column: Int) throws -> Timestamp? {
    try optionalInteger(column).map(Timestamp.init(milliseconds:))
  }

  private func present<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw damaged("row") }
    return value
  }
}

/// The error for a row whose values do not have the columns' types, because another program wrote it.
func damaged(_ what: String) -> StoreFault { StoreFault("the store holds a damaged \(what)") }
