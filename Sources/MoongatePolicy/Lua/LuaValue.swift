import MoongateCore

/// A value of a loaded file and where it was said.
struct LuaNode: Sendable {
  var value: LuaValue
  /// Of the field that holds it.
  var location: SourceLocation
}

/// What a field of a configuration may hold.
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
  /// Anything else, in words: "a function of the gateway's own".
  case other(String)

  /// For messages: "the number 90", "a table".
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
    case .other(let words): words
    }
  }
}

/// A function of a file: the file's place in the list of sources, and the function's number within it.
struct LuaFunction: Sendable, Hashable {
  let file: String
  let number: Int32
  /// Where it is defined.
  let line: Int
}

/// A table: names, a list, or both.
struct LuaTable: Sendable {
  var fields: [String: LuaNode] = [:]
  /// 1, 2, 3, … without a gap.
  var items: [LuaNode] = []
  /// Keys that are neither, in words.
  var otherKeys: [(key: String, node: LuaNode)] = []

  /// Whether it holds items and no names.
  var isList: Bool { fields.isEmpty && otherKeys.isEmpty }
  var isEmpty: Bool { isList && items.isEmpty }
}
