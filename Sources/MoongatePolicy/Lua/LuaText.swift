import MoongateSDK

extension String {
  /// The text as a literal of Lua.
  var quotedInLua: String {
    "\"\(replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n"))\""
  }
}

extension JSONClaim {
  /// The value in Lua syntax.
  package var asWritten: String {
    switch self {
    case .null: "nil"
    case .flag(let flag): "\(flag)"
    case .number(let number): Int64(exactly: number).map(String.init) ?? "\(number)"
    case .integer(let digits): digits
    case .text(let text): text.quotedInLua
    case .list(let items): items.isEmpty ? "{}" : "{ \(items.map(\.asWritten).joined(separator: ", ")) }"
    case .object(let members): members.mapValues(\.asWritten).asLuaTable
    }
  }
}

extension [String: String] {
  /// A table of Lua with these values, which are in Lua syntax.
  var asLuaTable: String {
    if isEmpty { return "{}" }
    let entries = sorted { $0.key < $1.key }.map { name, value in
      "\(name.wholeMatch(of: /[A-Za-z_][A-Za-z0-9_]*/) == nil ? "[\(name.quotedInLua)]" : name) = \(value)"
    }
    return "{ \(entries.joined(separator: ", ")) }"
  }
}
