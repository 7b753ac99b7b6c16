import MoongateCore

/// A value that goes into a statement, or comes out of one.
package enum SQLValue: Sendable, Equatable {
  case null
  /// Every number of the schema has 64 bits: moments are milliseconds, truths are 0 and 1.
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
  /// As every store keeps it. PostgreSQL's texts hold no NUL, and it refuses the whole statement for one: whoever puts
  /// it into a name must not get a 503 for it. So that a store can be moved, no other keeps one either.
  var storable: String { utf8.contains(0) ? replacing("\0", with: "\u{fffd}") : self }
}

/// A row that was read. Columns count from 0.
package protocol SQLRow {
  /// nil where the column is null.
  /// - Throws: `StoreFault` where it holds something else than a number.
  func optionalInteger(_ column: Int) throws -> Int64?
  /// nil where the column is null.
  /// - Throws: `StoreFault` where it holds something else than text.
  func optionalText(_ column: Int) throws -> String?
  /// nil where the column is null.
  /// - Throws: `StoreFault` where it holds something else than bytes.
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

/// A row that does not hold what its column's type says: somebody else wrote it.
func damaged(_ what: String) -> StoreFault { StoreFault("the store holds a damaged \(what)") }
