import MoongateCore

/// A value of a loaded file with its location.
struct LuaNode: Sendable {
  var value: LuaValue
  /// The location of the field that contains the value.
  var location: SourceLocation
}

/// The value of a configuration field.
indirect enum LuaValue: Sendable {
  case null
  case flag(Bool)
  case integer(Int64)
  case number(Double)
  case text(String)
  case table(LuaTable)
  case function(LuaFunction)
  /// Made by a constructor: `vary`, `env`, `any_of`, …
  case tagged(String, [LuaNode])
  /// Made by `deny`, with its reason.
  case denied(String)
  /// Any other value, described for messages, such as "a built-in function".
  case other(String)

  /// The value in messages, such as "the number 90" or "a table".
  var described: String {
    switch self {
    case .null: "nothing"
    case .flag(let flag): "\(flag)"
    case .integer(let integer): "the number \(integer)"
    case .number(let number): "the number \(number)"
    case .text(let text): text.utf8.count <= 60 ? "\"\(text)\"" : "a long text"
    case .table: "a table"
    case .function: "a function"
    case .tagged(let name, _): "\(name)"
    case .denied: "`deny`"
    case .other(let words): words
    }
  }
}

/// A function of a file, identified by the file and its number there.
struct LuaFunction: Sendable, Hashable {
  /// The file whose value contains the function.
  let file: String
  let number: Int32
  /// The line of its definition.
  let line: Int
  /// The shared file that defines it; nil: `file` does.
  var shared: String?

  /// The file that defines it.
  var source: String { shared ?? file }
  /// Where it is defined.
  var location: SourceLocation { SourceLocation(file: source, line: line) }
}

/// A file of `shared/`, which other files include by its name.
struct SharedFile: Sendable {
  /// The name in `include "name"`.
  let name: String
  /// Such as `shared/night.lua`.
  let file: String
  let bytes: [UInt8]

  /// The folder of these files.
  static let folder = "shared"
  /// The maximum size of such a file, in bytes.
  static let largest = 64 << 10
}

/// A table with fields, items, or both.
struct LuaTable: Sendable {
  var fields: [String: LuaNode] = [:]
  /// The values of the keys 1, 2, 3, … without a gap.
  var items: [LuaNode] = []
  /// The other keys, described for messages.
  var otherKeys: [(key: String, node: LuaNode)] = []

  /// Whether the table has no named fields.
  var isList: Bool { fields.isEmpty && otherKeys.isEmpty }
  var isEmpty: Bool { isList && items.isEmpty }
}
