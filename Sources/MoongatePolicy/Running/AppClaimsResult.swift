import MoongateCore
import MoongateSDK

/// Reads what the function `claims` of an app returned.
enum AppClaimsResult {
  /// Claims travel in headers and addresses of apps.
  private static let mostClaims = 64
  private static let mostBytes = 4_096
  private static let longestText = 1_024
  private static let mostDepth = 4

  /// Why a value cannot be a claim.
  struct Problem: Error {
    let message: String
  }

  /// - Parameter node: the table that the function returned.
  static func read(_ node: LuaNode) throws(Problem) -> [String: JSONClaim] {
    guard case .table(let table) = node.value, table.items.isEmpty, table.otherKeys.isEmpty else {
      throw Problem(message: "returned a list: write names, as in { role = \"Admin\" }")
    }
    guard table.fields.count <= mostClaims else {
      throw Problem(message: "returned \(table.fields.count) claims; at most \(mostClaims) are possible")
    }
    var size = 0
    var claims: [String: JSONClaim] = [:]
    for (name, node) in table.fields.sorted(by: { $0.key < $1.key }) {
      if let problem = problem(of: name) { throw Problem(message: "returned the claim `\(name)`, which \(problem)") }
      size += name.utf8.count
      claims[name] = try read(node, in: name, depth: 1, &size)
    }
    guard size <= mostBytes else {
      throw Problem(message: "returned claims of \(size) bytes; at most \(mostBytes) are possible")
    }
    return claims
  }

  /// Why a function must not return a claim of this name; nil if it may.
  static func problem(of name: String) -> String? {
    if AppClaims.reserved.contains(name) { return "the gateway itself writes: choose another name" }
    if name.wholeMatch(of: /[A-Za-z_][A-Za-z0-9_.:\/\-]{0,127}/) == nil {
      return "is no name: use 1 to 128 letters, digits, `_`, `.`, `:`, `/` and `-`, beginning with a letter or `_`"
    }
    return nil
  }

  /// One claim.
  static func value(of node: LuaNode, in name: String) throws(Problem) -> JSONClaim {
    var size = 0
    return try read(node, in: name, depth: 1, &size)
  }

  private static func read(_ node: LuaNode, in name: String, depth: Int, _ size: inout Int) throws(Problem) -> JSONClaim
  {
    size += 8
    switch node.value {
    case .flag(let flag): return .flag(flag)
    case .integer(let integer):
      return integer.magnitude < 1 << 53 ? .number(Double(integer)) : .integer(digits: String(integer))
    case .number(let number) where number.isFinite: return .number(number)
    case .text(let text):
      size += text.utf8.count
      guard text.utf8.count <= longestText,
        text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) })
      else {
        throw Problem(
          message: "\(name) must be a text of at most \(longestText) bytes without control characters")
      }
      return .text(text)
    case .table(let table):
      guard depth < mostDepth else { throw Problem(message: "\(name) has tables nested more than \(mostDepth) deep") }
      // An empty table is an empty list, such as the roles of somebody who has none.
      if table.isList {
        var list: [JSONClaim] = []
        for item in table.items { list.append(try read(item, in: name, depth: depth + 1, &size)) }
        return .list(list)
      }
      guard table.items.isEmpty, table.otherKeys.isEmpty else {
        throw Problem(message: "\(name) must be a list or have names, but not both")
      }
      var members: [String: JSONClaim] = [:]
      for (key, item) in table.fields.sorted(by: { $0.key < $1.key }) {
        size += key.utf8.count
        members[key] = try read(item, in: name, depth: depth + 1, &size)
      }
      return .object(members)
    default:
      throw Problem(message: "\(name) must be a text, a number, true, false or a table, but is \(node.value.described)")
    }
  }
}

/// Finds reserved claims that functions return in tables that are written out, as in `return { sub = f.now }`, without
/// calling them.
struct ReservedClaims {
  let functions: FunctionTable
  let problems: Problems

  /// - Parameters:
  ///   - names: the functions.
  ///   - sources: the texts of the files, by name.
  func check(_ names: [FunctionName], _ sources: [String: LuaFiles.Source]) {
    let bodies = Dictionary(grouping: names.compactMap { functions.entries[$0]?.function }, by: \.source)
    for (file, functions) in bodies.sorted(by: { $0.key < $1.key }) {
      guard let bytes = sources[file]?.bytes else { continue }
      for found in Self.find(in: bytes, functionsAt: Set(functions.map(\.line))) {
        guard let problem = AppClaimsResult.problem(of: found.name) else { continue }
        problems.add(
          SourceLocation(file: file, line: found.line), "", "returns the claim `\(found.name)`, which \(problem)")
      }
    }
  }

  /// The keys of the tables that these functions return, but not functions inside them.
  static func find(in source: [UInt8], functionsAt lines: Set<Int>) -> [(name: String, line: Int)] {
    var found: [(name: String, line: Int)] = []
    // For each open block: whether its code belongs to one of the functions.
    var blocks: [Bool] = []
    // The number of open brackets of a returned table, and the blocks that were open before it; nil outside of one.
    var table: (depth: Int, blocks: Int)?
    var last: [LuaToken] = []
    var tokens = LuaTokens(source)
    while let token = tokens.next() {
      switch token.kind {
      case .opener(let word):
        blocks.append(word == "function" ? blocks.last != true && lines.contains(token.line) : blocks.last ?? false)
      case .closer: _ = blocks.popLast()
      case .symbol(.openBrace), .symbol(.openParen), .symbol(.openBracket):
        if let open = table {
          table = (open.depth + 1, open.blocks)
        } else if token.kind == .symbol(.openBrace), last.last?.kind == .keyword("return"), blocks.last == true {
          table = (1, blocks.count)
        }
      case .symbol(.closeBrace), .symbol(.closeParen), .symbol(.closeBracket):
        if let open = table { table = open.depth > 1 ? (open.depth - 1, open.blocks) : nil }
      case .symbol(.assign):
        if let open = table, open.depth == 1, open.blocks == blocks.count, let key = key(last) {
          found.append((key, token.line))
        }
      default: break
      }
      last = last.suffix(3) + [token]
    }
    return found
  }

  /// The key of `{ name =`, `, name =` or `["name"] =`; nil for another end of the tokens.
  private static func key(_ tokens: [LuaToken]) -> String? {
    guard let last = tokens.last, tokens.count > 1 else { return nil }
    switch (tokens[tokens.count - 2].kind, last.kind) {
    case (.symbol(.openBrace), .name(let name)), (.symbol(.separator), .name(let name)): return name
    case (.string(let text), .symbol(.closeBracket)): return text
    default: return nil
    }
  }
}
