import Foundation
import MoongateCore
import MoongateSDK

/// JSON of records. Encoded and decoded in the caller's task, so that other tasks do not wait for it.
enum JSON {
  static func encode(_ value: some Encodable) throws -> [UInt8] { Array(try JSONEncoder().encode(value)) }

  static func decode<Value: Decodable>(_ type: Value.Type, _ json: some Sequence<UInt8>) throws -> Value {
    try JSONDecoder().decode(type, from: Data(json))
  }
}

extension SQLValue {
  /// The value as a text of JSON.
  static func json(_ value: some Encodable) throws -> SQLValue {
    .text(String(decoding: try JSON.encode(value), as: UTF8.self))
  }
}

extension SQLRow {
  /// The identifier of the kind whose value, display and attributes are in the column and those after it.
  /// - Parameter groups: the column with the groups of a federated identity.
  func identifier(_ kind: IdentifierKind, at column: Int, groups: Int) throws -> Identifier {
    Identifier(
      kind: kind, value: try text(column), display: try text(column + 1),
      attributes: try JSON.decode([String: String].self, try text(column + 2).utf8),
      groups: try optionalText(groups).map { try JSON.decode([String].self, $0.utf8) } ?? [])
  }

  /// The names of groups, which are stored as a list in JSON.
  func groups(_ column: Int) throws -> [GroupName] {
    try JSON.decode([String].self, try text(column).utf8).compactMap { GroupName(rawValue: $0) }
  }
}
