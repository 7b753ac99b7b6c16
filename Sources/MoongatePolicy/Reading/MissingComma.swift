/// Finds the field of a table behind which a comma is missing. Lua names the line of what comes next, where nothing is
/// wrong.
enum MissingComma {
  /// - Parameter failure: of the parser.
  /// - Returns: the line on which the field ends; nil where the text is wrong in another way.
  static func line(in text: [UInt8], before failure: LuaState.Failure) -> Int? {
    guard failure.message.hasPrefix("'}' expected") else { return nil }
    var tokens = LuaTokens(text)
    // What is open at each place: tables, and blocks within them.
    var isTable: [Bool] = []
    var last: LuaToken?
    var current = tokens.next()
    while let token = current {
      let next = tokens.next()
      if token.line == failure.line, isTable.last == true, let last, endsValue(last), beginsField(token, next) {
        return last.line
      }
      switch token.kind {
      case .symbol(.openBrace): isTable.append(true)
      case .opener: isTable.append(false)
      case .symbol(.closeBrace), .closer: _ = isTable.popLast()
      default: break
      }
      (last, current) = (token, next)
    }
    return nil
  }

  private static func endsValue(_ token: LuaToken) -> Bool {
    switch token.kind {
    case .number, .closer: true
    case .keyword(let word): ["true", "false", "nil"].contains(word)
    default: token.endsExpression
    }
  }

  /// Whether a field, or an item of a list, begins here.
  private static func beginsField(_ token: LuaToken, _ next: LuaToken?) -> Bool {
    switch token.kind {
    case .name, .symbol(.openBrace), .symbol(.openBracket), .string, .number: true
    case .opener(let word): word == "function"
    case .keyword(let word): ["true", "false", "nil"].contains(word) && next != nil
    default: false
    }
  }
}
